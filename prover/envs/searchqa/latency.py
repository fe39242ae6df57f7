"""Latency: how long searches took, as counters that can be summed over processes."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

WITHIN_MS = (1, 10, 100, 1_000, 10_000)
"""Bounds that searches are counted by, in milliseconds."""


class Latency:
    """Counts searches; may be used from many threads.

    >>> latency = Latency()
    >>> with latency.of_a_search():
    ...     pass
    >>> found = latency.drain()
    >>> found["searches"], found["searches_failed"], found["searches_within_10000ms"]
    (1.0, 0.0, 1.0)
    >>> latency.drain()
    {}
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._seconds = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def of_a_search(self) -> Iterator[None]:
        """Measure the block; what it raises counts as a failed search."""
        start = time.perf_counter()
        failed = 1
        try:
            yield
            failed = 0
        finally:
            seconds = time.perf_counter() - start
            within = [f"searches_within_{bound}ms" for bound in WITHIN_MS if 1000 * seconds <= bound]
            with self._lock:
                self._counts.update(["searches", *within])
                self._counts["searches_failed"] += failed
                self._seconds += seconds

    def drain(self) -> dict[str, float]:
        """What was counted since the last call; nothing if nobody searched.

        ``searches`` and ``searches_failed``, ``search_seconds`` summed over them, waiting included, and
        ``searches_within_<bound>ms`` for each bound.
        """
        with self._lock:
            counts, seconds = self._counts, self._seconds
            self._counts, self._seconds = Counter(), 0.0
        if not counts:
            return {}
        names = ["searches", "searches_failed", *(f"searches_within_{bound}ms" for bound in WITHIN_MS)]
        return {name: float(counts[name]) for name in names} | {"search_seconds": seconds}
