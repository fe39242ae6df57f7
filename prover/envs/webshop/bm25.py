"""BM25 exactly as Lucene computes it, on arrays that can be memory-mapped.

The score of a document is the sum over the query's terms of ``w - w / (1 + tf / norm)`` with
``w = idf * (times the term occurs in the query)``, ``idf = ln(1 + (N - df + 0.5) / (df + 0.5))`` and
``norm = k1 * (1 - b + b * length / mean length)``, in single precision. Lucene keeps a length in one byte, so that
lengths above 40 are rounded down to three bits after the first; without that a third of the rankings differ.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from prover.errors import DataError

K1 = np.float32(0.9)
B = np.float32(0.4)
_EXACT = 24  # Lucene's byte holds shorter lengths as they are, and longer ones as a small float beside them.


def rounded_length(length: int) -> int:
    """A length after Lucene has kept it in a byte.

    >>> [rounded_length(n) for n in (0, 40, 41, 42, 57, 1000)]
    [0, 40, 40, 42, 56, 984]
    """
    if length < _EXACT:
        return length
    rest = length - _EXACT
    shift = max(rest.bit_length() - 4, 0)
    return _EXACT + (rest >> shift << shift)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Index:
    """An inverted index: for each term the documents that have it. Documents are numbered in the order of their ids."""

    ranking: ClassVar[str] = "Lucene-exact"
    """How it ranks, for manifests."""
    ids: tuple[str, ...]
    """Sorted ids of the documents, shape (D,)."""
    numbers: dict[str, int]
    """Term -> its number."""
    starts: NDArray[np.int64]
    """Where the documents of each term begin, shape (terms + 1,)."""
    documents: NDArray[np.int32]
    """Numbers of documents, ascending within a term, shape (P,)."""
    divisors: NDArray[np.float32]
    """``1 + tf / norm`` of a term in a document, shape (P,)."""
    size: int
    """Number of documents that have any term, N."""

    def search(self, terms: Iterable[str], n: int = 50) -> list[tuple[str, float]]:
        """The ``n`` best documents that have any of the terms, with their scores; equal scores in the order of ids."""
        scores = np.zeros(len(self.ids))
        for term, times in Counter(terms).items():
            number = self.numbers.get(term)
            if number is None:
                continue
            start, end = int(self.starts[number]), int(self.starts[number + 1])
            idf = np.log(1 + (self.size - (end - start) + 0.5) / (end - start + 0.5))
            weight = np.float32(times) * np.float32(idf)
            # No document occurs twice within a term.
            scores[self.documents[start:end]] += weight - weight / self.divisors[start:end]
        found = np.flatnonzero(scores)
        single = scores[found].astype(np.float32)
        if len(found) > n:
            bound = np.partition(single, len(single) - n)[len(single) - n]
            found, single = found[single >= bound], single[single >= bound]
        order = np.argsort(-single, kind="stable")[:n]
        return [(self.ids[found[place]], float(single[place])) for place in order]


def in_order(documents: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, Sequence[str]]]:
    """The documents one by one, checked to come in the order of their ids, by which equal scores are ranked.

    Raises:
        DataError: they do not, or one is there twice.
    """
    last = None
    for name, terms in documents:
        if last is not None and name <= last:
            raise DataError(f"expected documents in the order of their ids, got {name!r} after {last!r}; sort them")
        last = name
        yield name, terms


def build(documents: Iterable[tuple[str, Sequence[str]]]) -> Index:
    """The index of documents, given as (id, terms) in the order of their ids; only one at a time is held.

    Raises:
        DataError: the ids are not in order, or one is there twice.
    """
    ids: list[str] = []
    lengths: list[int] = []
    postings: dict[str, array[int]] = {}  # term -> document, times, document, times...
    total = size = 0
    for number, (name, terms) in enumerate(in_order(documents)):
        ids.append(name)
        lengths.append(rounded_length(len(terms)))
        total += len(terms)
        size += bool(terms)
        for term, times in Counter(terms).items():
            postings.setdefault(term, array("i")).extend((number, times))
    names = sorted(postings)
    pairs = np.concatenate([np.zeros(0, np.int32), *(np.frombuffer(postings[name], np.int32) for name in names)])
    numbers, times_of = pairs[::2].copy(), pairs[1::2].astype(np.float32)
    mean = np.float32(total / max(size, 1)) or np.float32(1)
    inverse = np.float32(1) / (K1 * ((np.float32(1) - B) + B * np.array(lengths, dtype=np.float32) / mean))
    return Index(
        ids=tuple(ids),
        numbers={name: number for number, name in enumerate(names)},
        starts=np.cumsum([0, *(len(postings[name]) // 2 for name in names)], dtype=np.int64),
        documents=numbers,
        divisors=np.float32(1) + times_of * inverse[numbers],
        size=size,
    )
