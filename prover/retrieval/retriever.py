"""What every retriever is: queries in, ranked passages out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that was found."""

    passage: Passage
    score: float
    """Higher is better; comparable within one result only."""


@runtime_checkable
class Retriever(Protocol):
    """Finds passages. May be called from many threads at once."""

    fingerprint: str
    """Stable hash of the corpus and of how it is searched: equal fingerprints give equal results."""

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The ``k`` best hits of each query, best first; ties by passage id. Fewer where no more match.

        Raises:
            ServiceError: a remote retriever gave no usable answer.
        """

    def close(self) -> None:
        """Free what it holds; may be called twice."""
