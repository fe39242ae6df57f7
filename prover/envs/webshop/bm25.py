"""BM25 exactly as Lucene computes it, on arrays that can be memory-mapped.

The score of a document is the sum over the query's terms of ``w - w / (1 + tf / norm)`` with
``w = idf * (times the term occurs in the query)``, ``idf = ln(1 + (N - df + 0.5) / (df + 0.5))`` and
``norm = k1 * (1 - b + b * length / mean length)``, in single precision. Lucene keeps a length in one byte, so that
lengths above 40 are rounded down to three bits after the first; without that a third of the rankings differ.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def build(documents: Sequence[tuple[str, Sequence[str]]]) -> Index:
    """The index of documents, given as (id, terms)."""
    ordered = sorted(documents)
    postings: dict[str, list[tuple[int, int]]] = {}
    lengths = np.zeros(len(ordered), dtype=np.float32)
    total = 0
    for number, (_, terms) in enumerate(ordered):
        total += len(terms)
        lengths[number] = rounded_length(len(terms))
        for term, times in Counter(terms).items():
            postings.setdefault(term, []).append((number, times))
    size = sum(1 for _, terms in ordered if terms)
    mean = np.float32(total / max(size, 1)) or np.float32(1)
    inverse = np.float32(1) / (K1 * ((np.float32(1) - B) + B * lengths / mean))
    pairs = np.array([pair for term in sorted(postings) for pair in postings[term]], dtype=np.int32).reshape(-1, 2)
    counts = [len(postings[term]) for term in sorted(postings)]
    return Index(
        ids=tuple(name for name, _ in ordered),
        numbers={term: number for number, term in enumerate(sorted(postings))},
        starts=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64),
        documents=pairs[:, 0].copy(),
        divisors=np.float32(1) + pairs[:, 1].astype(np.float32) * inverse[pairs[:, 0]],
        size=size,
    )
