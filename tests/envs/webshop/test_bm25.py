"""Ranking."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.envs.webshop.analysis import terms
from prover.envs.webshop.bm25 import build, rounded_length
from prover.envs.webshop.product import Product
from prover.errors import DataError


@pytest.mark.parametrize(
    ("length", "expected"),
    [(39, 39), (40, 40), (41, 40), (55, 54), (56, 56), (87, 84), (88, 88), (103, 96), (104, 104)],
)
def test_lengths_are_rounded_down(length: int, expected: int) -> None:
    """Above 24 a length keeps four bits of what is above 24, the first included."""
    assert rounded_length(length) == expected


@given(st.integers(0, 10**6))
def test_rounding(length: int) -> None:
    """A rounded length is at most the length, more than seven eighths of it, and stays when rounded again."""
    rounded = rounded_length(length)
    assert length * 7 / 8 < rounded <= length or length == rounded
    assert rounded_length(rounded) == rounded


def test_score_by_hand() -> None:
    """The formula, with idf ln(1 + 1.5/1.5) = ln 2, and a mean length of 2."""
    index = build([("a", ["cap"]), ("b", ["hat", "hat", "red"])])
    weight = 2 * math.log(2)  # the query has the term twice
    norm = 0.9 * (0.6 + 0.4 * 3 / 2)
    assert index.search(["hat", "hat", "none"]) == [("b", pytest.approx(weight - weight / (1 + 2 / norm), rel=1e-6))]


def test_equal_scores_come_in_the_order_of_ids() -> None:
    """Also where not all of them are wanted."""
    index = build([(name, ["hat"]) for name in "abcde"])
    assert [name for name, _ in index.search(["hat"], 3)] == ["a", "b", "c"]


def test_nothing_found() -> None:
    """Unknown terms, no terms and an empty collection find nothing."""
    assert build([("a", ["hat"])]).search(["cap"]) == []
    assert build([("a", ["hat"])]).search([]) == []
    assert build([("a", [])]).search(["hat"]) == []
    assert build([]).search(["hat"]) == []


def test_unsorted_documents() -> None:
    """Ties depend on the order, so that another one is refused."""
    with pytest.raises(DataError, match="got 'a' after 'b'"):
        build([("b", ["hat"]), ("a", ["hat"])])


def test_lucene_with_its_own_terms(recorded: Callable[[str], list[Any]]) -> None:
    """All recorded queries have Lucene's 50 hits in Lucene's order, with its scores."""
    index = build([(asin, text.split(" ")) for asin, text in sorted(recorded("lucene_doc_tokens.jsonl.gz"))])
    for query in recorded("lucene_top50.jsonl.gz"):
        found = index.search(query["tokens"])
        assert [asin for asin, _ in found] == [asin for asin, _ in query["hits"]], query["query"]
        assert [score for _, score in found] == pytest.approx([score for _, score in query["hits"]], abs=1e-4)


def test_lucene_with_our_terms(recorded: Callable[[str], list[Any]], public: dict[str, Product]) -> None:
    """The same from the products' texts and the words of the queries."""
    index = build((asin, terms(public[asin].search_text)) for asin in sorted(public))
    for query in recorded("lucene_top50.jsonl.gz"):
        found = [asin for asin, _ in index.search(terms(query["query"]))]
        assert found == [asin for asin, _ in query["hits"]], query["query"]
