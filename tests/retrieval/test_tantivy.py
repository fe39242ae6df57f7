"""BM25 by tantivy."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from prover.errors import ConfigError
from prover.retrieval import Passage, Retriever, tantivy
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.tantivy import TantivyRetriever

QUERIES = [
    "old mill of Tesk",
    "who built bridges",
    "salt sea salt",
    "",
    "the of",
    "zebra",
    'title:"Tesk" AND (x~2 +',
    "mill",
]


def test_it_ranks_as_bm25(passages: Sequence[Passage]) -> None:
    """On passages so short that no length is rounded it agrees with the other engine; no query is a formula."""
    found = TantivyRetriever(passages)
    assert isinstance(found, Retriever)
    expected = Bm25Retriever(passages).search(QUERIES, 3)
    for hits, others in zip(found.search(QUERIES, 3), expected, strict=True):
        assert [hit.passage for hit in hits] == [hit.passage for hit in others]
        # Lucene, and tantivy with it, multiplies by k1 + 1, which changes no order.
        assert [hit.score for hit in hits] == pytest.approx([2.2 * hit.score for hit in others], rel=1e-5)


def test_ties_go_by_id() -> None:
    """However many tie."""
    same = [Passage(id=f"{number:03}", title="Twin", text="Two of a kind.") for number in range(100)]
    assert [hit.passage.id for hit in TantivyRetriever(same[::-1]).search(["twin"], 3)[0]] == ["000", "001", "002"]


def test_the_index_is_made_once(passages: Sequence[Passage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is opened, and answers the same; half of it is made anew."""
    first = TantivyRetriever(passages, cache=tmp_path)
    expected = TantivyRetriever(passages).search(QUERIES, 3)
    assert first.search(QUERIES, 3) == expected
    folder = tmp_path / "retrieval" / f"tantivy-{first.fingerprint}"
    largest = max(folder.iterdir(), key=lambda file: file.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1])
    assert TantivyRetriever(passages, cache=tmp_path).search(QUERIES, 3) == expected

    def fail(*_: object) -> None:
        raise AssertionError("an index was made")

    monkeypatch.setattr(tantivy, "_made", fail)
    assert TantivyRetriever(passages, cache=tmp_path).search(QUERIES, 3) == expected


def test_fingerprints(passages: Sequence[Passage]) -> None:
    """Another corpus has another, and so has another engine."""
    own = TantivyRetriever(passages).fingerprint
    assert TantivyRetriever(passages[::-1]).fingerprint == own
    assert len({own, TantivyRetriever(passages[1:]).fingerprint, Bm25Retriever(passages).fingerprint}) == 3


def test_nothing_to_return(passages: Sequence[Passage]) -> None:
    """A search for no passages is a mistake."""
    with pytest.raises(ConfigError, match="k=0"):
        TantivyRetriever(passages).search(["a"], 0)
