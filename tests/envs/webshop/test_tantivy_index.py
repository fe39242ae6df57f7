"""The index by tantivy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prover.envs.webshop.analysis import terms
from prover.envs.webshop.product import Product
from prover.envs.webshop.tantivy_index import TantivyIndex
from prover.errors import DataError


def test_what_is_found() -> None:
    """Documents with any of the terms; rare terms and short documents first."""
    index = TantivyIndex.build([("a", ["cap", "red"]), ("b", ["hat", "red"]), ("c", ["red"]), ("d", ["mug"])])
    assert [name for name, _ in index.search(["red", "hat"])] == ["b", "c", "a"]
    assert index.search(["none"]) == index.search([]) == []


def test_equal_scores_come_in_the_order_of_ids() -> None:
    """Also where far more documents than wanted score the same."""
    index = TantivyIndex.build([(f"{number:03d}", ["hat"]) for number in range(300)])
    assert [name for name, _ in index.search(["hat"], 3)] == ["000", "001", "002"]
    assert len({score for _, score in index.search(["hat"], 300)}) == 1


def test_a_term_twice_weighs_double() -> None:
    """As in the exact index."""
    index = TantivyIndex.build([("a", ["cap"]), ("b", ["hat"])])
    ((_, once),) = index.search(["hat"])
    ((_, twice),) = index.search(["hat", "hat"])
    assert twice == pytest.approx(2 * once)


@pytest.mark.parametrize("term", ['a"b', "terms:x", "AND", "(", "a\\", "*", "x^2", "\u6771"])
def test_terms_are_no_syntax(term: str) -> None:
    """Whatever is a term is only a term."""
    index = TantivyIndex.build([("a", [term]), ("b", ["x"])])
    assert [name for name, _ in index.search([term])] == ["a"]


def test_on_disk(tmp_path: Path) -> None:
    """What was built in a folder finds the same when it is opened, and is refused when its parts do not fit."""
    built = TantivyIndex.build([("a", ["cap"]), ("b", ["hat", "cap"])], tmp_path)
    assert TantivyIndex.load(tmp_path).search(["cap"]) == built.search(["cap"])
    (tmp_path / "ids.txt").write_text("a")
    with pytest.raises(ValueError, match=r"expected 1 documents in .* got 2"):
        TantivyIndex.load(tmp_path)


def test_unsorted_documents() -> None:
    """Ties depend on the order, so that another one is refused."""
    with pytest.raises(DataError, match="got 'a' after 'b'"):
        TantivyIndex.build([("b", ["hat"]), ("a", ["hat"])])


def test_how_near_it_is_to_lucene(recorded: Callable[[str], list[Any]], public: dict[str, Product]) -> None:
    """On WebShop's products 86 % of the first 10 and 90 % of the first 50 are Lucene's, mostly in another order."""
    index = TantivyIndex.build((asin, terms(public[asin].search_text)) for asin in sorted(public))
    queries = recorded("lucene_top50.jsonl.gz")
    shared, same = {10: 0.0, 50: 0.0}, 0
    for query in queries:
        expected = [asin for asin, _ in query["hits"]]
        found = [asin for asin, _ in index.search(terms(query["query"]))]
        for n in shared:
            shared[n] += len({*expected[:n]} & {*found[:n]}) / len(expected[:n])
        same += expected == found
    assert shared[10] / len(queries) == pytest.approx(0.86, abs=0.01)
    assert shared[50] / len(queries) == pytest.approx(0.90, abs=0.01)
    assert same < len(queries) / 10
