"""Requests under way: whoever asks for what is under way waits for it, and nobody asks twice."""

import threading
from collections.abc import Hashable, Iterable
from concurrent.futures import Future
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Flights(Generic[Key, Value]):
    """What is under way, by key; for many threads.

    >>> flights = Flights()
    >>> asked, mine = flights.join(["a", "b", "a"])
    >>> mine
    ['a', 'b']
    >>> flights.join(["b"])[1]
    []
    >>> flights.land("b", 2)
    >>> asked["b"].result()
    2
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[Key, Future[Value]] = {}

    def join(self, keys: Iterable[Key]) -> tuple[dict[Key, Future[Value]], list[Key]]:
        """What each key will bring, and the keys that the caller has to see to: to land or fail, each once."""
        asked: dict[Key, Future[Value]] = {}
        mine = []
        with self._lock:
            for key in keys:
                if key not in self._under_way:
                    self._under_way[key] = Future()
                    mine.append(key)
                asked[key] = self._under_way[key]
        return asked, mine

    def land(self, key: Key, value: Value) -> None:
        """Give all who wait for a key its value; it can be asked for anew from now on."""
        self._take(key).set_result(value)

    def fail(self, key: Key, error: BaseException) -> None:
        """Give all who wait for a key an error instead."""
        self._take(key).set_exception(error)

    def _take(self, key: Key) -> Future[Value]:
        with self._lock:
            return self._under_way.pop(key)
