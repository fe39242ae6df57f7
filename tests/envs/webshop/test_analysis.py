"""Lucene's English analysis."""

from collections.abc import Callable
from typing import Any

from prover.envs.webshop.analysis import STOP_WORDS, terms
from prover.envs.webshop.product import Product


def test_terms() -> None:
    """Possessive s and stop words go, the rest is stemmed; a stop word inside a word stays."""
    assert terms("The dogs' and the woman\u2019s shoes: a-line, sizes 3.5 IN no_stock") == [
        *("dog", "woman", "shoe", "line", "size", "3.5", "no_stock"),
    ]


def test_stop_words() -> None:
    """There are Lucene's 33."""
    assert len(STOP_WORDS) == 33


def test_terms_of_queries(recorded: Callable[[str], list[Any]]) -> None:
    """All recorded queries have Lucene's terms."""
    queries = recorded("lucene_top50.jsonl.gz")
    assert [query["query"] for query in queries if terms(query["query"]) != query["tokens"]] == []


def test_terms_of_products(recorded: Callable[[str], list[Any]], public: dict[str, Product]) -> None:
    """All of WebShop's 1000 products have Lucene's terms."""
    tokens = recorded("lucene_doc_tokens.jsonl.gz")
    assert len(tokens) == 1000
    assert [asin for asin, text in tokens if terms(public[asin].search_text) != text.split(" ")] == []
