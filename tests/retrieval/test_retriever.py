"""The protocol of retrievers."""

from collections.abc import Sequence

from prover.retrieval import Hit, Passage, Retriever


class First:
    """Finds the query itself."""

    fingerprint = "first"

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        return [(Hit(passage=Passage(id="1", title=query, text="."), score=1.0),)[:k] for query in queries]

    def close(self) -> None:
        pass


def test_any_object_with_these_methods_is_a_retriever() -> None:
    """Nothing has to be inherited."""
    assert isinstance(First(), Retriever)
    assert not isinstance(object(), Retriever)
