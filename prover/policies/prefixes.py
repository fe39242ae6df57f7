"""The store of attention caches: which beginning of a prompt has been computed already."""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

_WIDTH = 4  # bytes of one id in a key


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prefix:
    """What a decoder has to know about a sequence in order to continue it. Its tensors are never written again."""

    length: int
    """Tokens that went into it."""
    tensors: tuple[torch.Tensor, ...]
    """The decoder's own; attention tensors hold at least ``length`` positions."""

    @property
    def nbytes(self) -> int:
        """Memory of the tensors in bytes."""
        return sum(tensor.nbytes for tensor in self.tensors)


class PrefixStore:
    """Cached sequences, looked up by the longest beginning that a prompt shares with any of them.

    Keys are the ids as big-endian bytes in one sorted list: among sorted strings, the longest common beginning with any
    of them is the one with a neighbour of the insertion point. So a look-up costs two comparisons, ids are compared
    exactly (there is no hash that could collide), and a branch off the middle of a trajectory finds what it shares.

    Attention caches may be cut to any shorter length, recurrent states may not: with ``truncates`` False only entries
    that are beginnings of the prompt as a whole are found. The least recently used entries leave first.
    """

    def __init__(self, budget: int, *, truncates: bool = True) -> None:
        """Hold at most ``budget`` bytes."""
        self.budget = budget
        self.truncates = truncates
        self.nbytes = 0
        """Bytes held now."""
        self._keys: list[bytes] = []
        self._entries: OrderedDict[bytes, Prefix] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, ids: Sequence[int]) -> Prefix | None:
        """The longest known beginning of ``ids`` that leaves at least one token to compute; None if there is none."""
        wanted = _key(ids)[:-_WIDTH]
        key, shared = self._nearest(wanted) if self.truncates else self._whole(wanted)
        if not shared:
            return None
        self._entries.move_to_end(key)
        return Prefix(length=shared // _WIDTH, tensors=self._entries[key].tensors)

    def covers(self, ids: Sequence[int]) -> bool:
        """Whether adding ``ids`` would bring nothing new."""
        key = _key(ids)
        if not self.truncates:
            return key in self._entries
        at = bisect_left(self._keys, key)
        return at < len(self._keys) and self._keys[at].startswith(key)

    def add(self, ids: Sequence[int], prefix: Prefix) -> None:
        """Remember ``ids``; entries that it extends go, where a cut of it serves as well."""
        key = _key(ids)
        if key in self._entries or prefix.nbytes > self.budget:
            return
        insort(self._keys, key)
        self._entries[key] = prefix
        self.nbytes += prefix.nbytes
        if self.truncates:
            at = bisect_left(self._keys, key)
            while at and key.startswith(self._keys[at - 1]):
                at -= 1
                self._drop(self._keys[at])
        while self.nbytes > self.budget:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._keys.clear()
        self._entries.clear()
        self.nbytes = 0

    def _nearest(self, wanted: bytes) -> tuple[bytes, int]:
        """The key that shares most with ``wanted``, and how many bytes (whole ids) they share."""
        at = bisect_right(self._keys, wanted)
        best, most = b"", 0
        for key in self._keys[max(at - 1, 0) : at + 1]:
            if (shared := _shared(key, wanted)) > most:
                best, most = key, shared
        return best, most

    def _whole(self, wanted: bytes) -> tuple[bytes, int]:
        """The longest key that is a beginning of ``wanted``, and its length in bytes."""
        while wanted and (at := bisect_right(self._keys, wanted)):
            # Every string between a beginning of `wanted` and `wanted` itself starts with that beginning, so the key
            # just below bounds how long a beginning can be.
            key = self._keys[at - 1]
            shared = _shared(key, wanted)
            if shared == len(key):
                return key, shared
            wanted = wanted[:shared]
        return b"", 0

    def _drop(self, key: bytes) -> None:
        del self._keys[bisect_left(self._keys, key)]
        self.nbytes -= self._entries.pop(key).nbytes


def _key(ids: Sequence[int]) -> bytes:
    return np.asarray(ids, dtype=">u4").tobytes()


def _shared(a: bytes, b: bytes) -> int:
    """Length of the common beginning in bytes, whole ids only."""
    n = min(len(a), len(b))
    differ = np.frombuffer(a[:n], dtype=">u4") != np.frombuffer(b[:n], dtype=">u4")
    return int(differ.argmax()) * _WIDTH if differ.any() else n
