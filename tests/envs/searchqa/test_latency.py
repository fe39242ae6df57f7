"""Counters of how long searches took."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from prover.envs.searchqa.latency import Latency


def test_searches_are_counted_by_their_length() -> None:
    """A search of 15 ms and more is not within 10 ms, and all are counted in every bound above theirs."""
    latency = Latency()

    def search(seconds: float) -> None:
        with latency.of_a_search():
            time.sleep(seconds)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(search, [0.015] * 8))
    found = latency.drain()
    assert found["searches"] == found["searches_within_10000ms"] == 8
    assert found["searches_within_1ms"] == found["searches_within_10ms"] == found["searches_failed"] == 0
    assert found["search_seconds"] >= 8 * 0.015
    assert latency.drain() == {}


def test_failures_are_counted() -> None:
    """The error goes on to whoever searched."""
    latency = Latency()
    with pytest.raises(ConnectionError), latency.of_a_search():
        raise ConnectionError("down")
    found = latency.drain()
    assert (found["searches"], found["searches_failed"]) == (1, 1)
