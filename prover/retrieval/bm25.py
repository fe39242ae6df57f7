"""BM25 in this process: the retriever to use for corpora of up to about a million passages.

The scores are those of Lucene's formula (``k1`` 1.2, ``b`` 0.75) over title and text, computed by bm25s. See
``prover.retrieval.terms`` for what counts as a term.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import bm25s
import numpy as np

from prover.errors import ConfigError, DataError
from prover.retrieval.corpus import digest, in_order
from prover.retrieval.index_cache import cached
from prover.retrieval.ranking import best
from prover.retrieval.retriever import Hit, Passage
from prover.retrieval.terms import terms

_VERSION = 1
"""Counts changes of the terms and of the ranking."""


class Bm25Retriever:
    """Ranks passages by BM25. Results depend on the passages and the query alone.

    Args:
        passages: what can be found, in any order.
        k1: how soon further occurrences of a term stop to count.
        b: how much long passages are held back, 0 to 1.
        cache: folder of caches, where the index is kept by the hash of the passages; None keeps nothing on disk.

    Raises:
        DataError: there is no passage, none has a word, or an id is there twice.
    """

    def __init__(
        self, passages: Sequence[Passage], *, k1: float = 1.2, b: float = 0.75, cache: Path | None = None
    ) -> None:
        self._passages = in_order(passages)
        self.fingerprint = _fingerprint(digest(self._passages), k1, b)
        self._index = cached(
            f"bm25-{self.fingerprint}",
            cache,
            make=lambda folder: _made(self._passages, k1, b, folder),
            read=_read,
        )

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The ``k`` best passages of each query that share a term with it."""
        if k < 1:
            raise ConfigError(f"Expected to search for at least 1 passage, got k={k}.")
        answers = {query: self._answer(query, k) for query in dict.fromkeys(queries)}
        return [answers[query] for query in queries]

    def close(self) -> None:
        """Nothing to do: the index goes with the object."""

    def _answer(self, query: str, k: int) -> tuple[Hit, ...]:
        known = self._index.vocab_dict
        wanted = [known[term] for term in terms(query) if term in known]
        if not wanted:
            return ()
        scores = self._index.get_scores_from_ids(wanted)
        return tuple(
            Hit(passage=self._passages[place], score=float(scores[place])) for place in best(scores, k, above=0)
        )


def _fingerprint(corpus: str, k1: float, b: float) -> str:
    how = f"bm25 {_VERSION} bm25s {bm25s.__version__} {corpus} {float(k1)!r} {float(b)!r}"
    return sha256(how.encode()).hexdigest()[:32]


def _made(passages: Iterable[Passage], k1: float, b: float, folder: Path | None) -> bm25s.BM25:
    numbers: dict[str, int] = {}
    rows = [
        [numbers.setdefault(term, len(numbers)) for term in terms(f"{passage.title}\n{passage.text}")]
        for passage in passages
    ]
    if not numbers:
        raise DataError("Expected passages with words to search for, got none. Check the corpus.")
    index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    index.index((rows, numbers), create_empty_token=False, show_progress=False)
    if folder is not None:
        index.save(folder)
    return index


def _read(folder: Path) -> bm25s.BM25:
    index = bm25s.BM25.load(folder, mmap=True, show_progress=False)
    for name in ("data", "indices", "indptr"):
        # A plain view of the mapped file, without the cost of numpy's memmap class in every slice.
        index.scores[name] = np.asarray(index.scores[name])
    return index
