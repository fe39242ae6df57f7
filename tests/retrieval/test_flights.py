"""Requests under way."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from prover.retrieval.flights import Flights


def test_one_asks_and_all_get_it() -> None:
    """Of 16 threads that ask at once, one sees to it."""
    flights: Flights[str, int] = Flights()
    together = threading.Barrier(16)
    owners = []

    def ask(_: int) -> int:
        together.wait()
        asked, mine = flights.join(["q"])
        together.wait()
        if mine:
            owners.append(mine)
            flights.land("q", 7)
        return asked["q"].result(10)

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(ask, range(16))) == [7] * 16
    assert owners == [["q"]]


def test_errors_reach_all_who_wait() -> None:
    """A failure is for all who asked meanwhile, and the next one tries again."""
    flights: Flights[str, int] = Flights()
    asked, mine = flights.join(["q", "r"])
    joined, _ = flights.join(["q"])
    assert mine == ["q", "r"]
    flights.fail("q", OSError("no"))
    flights.land("r", 1)
    for future in (asked["q"], joined["q"]):
        with pytest.raises(OSError, match="no"):
            future.result(0)
    assert asked["r"].result(0) == 1
    assert flights.join(["q", "r"])[1] == ["q", "r"]
