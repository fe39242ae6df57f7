"""A small corpus, and a retriever that is watched."""

import threading
from collections.abc import Sequence

import pytest

from prover.errors import ServiceError
from prover.retrieval import Hit, Passage

RIVERS = (
    Passage(id="b", title="Morun", text="The river Morun springs below the old mill of Tesk."),
    Passage(id="a", title="Tesk", text="Tesk is a town with one mill, two bridges and no church."),
    Passage(id="d", title="Salo Beren", text="Salo Beren built both bridges of Tesk and drowned in the Morun."),
    Passage(id="c", title="Vint", text="Vint lies by the sea and trades in salt."),
)


@pytest.fixture
def passages() -> tuple[Passage, ...]:
    """Four passages about places that do not exist."""
    return RIVERS


class Watched:
    """Finds the query itself, with how often the retriever has been asked before, and counts."""

    fingerprint = "watched"

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], int]] = []
        self.closed = 0
        self.failure: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        self.asked.append((tuple(queries), k))
        number = len(self.asked)
        assert self.gate.wait(10)
        if self.failure is not None:
            raise self.failure
        return [
            (Hit(passage=Passage(id=query, title=f"title of {query}", text=f"answer {number}"), score=0.1),)
            for query in queries
        ]

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def watched() -> Watched:
    """A retriever that counts what it is asked."""
    return Watched()


@pytest.fixture
def outage() -> ServiceError:
    """What a retriever raises that has no answer."""
    return ServiceError("expected passages, got nothing", "server")
