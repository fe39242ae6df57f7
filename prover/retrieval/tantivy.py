"""BM25 by tantivy, in this process and mostly on disk: for corpora of many millions of passages (extra ``tantivy``).

Terms and formula are those of ``prover.retrieval.bm25``, but lengths are kept in one byte, as in Lucene, so that scores
and now and then an order differ.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import cast

import tantivy
from tantivy import Index, Occur, Query

from prover.errors import ConfigError
from prover.retrieval.corpus import digest, in_order
from prover.retrieval.index_cache import cached
from prover.retrieval.retriever import Hit, Passage
from prover.retrieval.terms import terms

_VERSION = 1
"""Counts changes of the terms and of the ranking."""

_TERMS, _PLACE = "terms", "place"
_HEAP = 256_000_000  # bytes in memory before the writer begins another segment


class TantivyRetriever:
    """Ranks passages by BM25. Results depend on the passages and the query alone.

    Args:
        passages: what can be found, in any order.
        cache: folder of caches, where the index is kept by the hash of the passages; None keeps it in memory.

    Raises:
        DataError: there is no passage, or an id is there twice.
    """

    def __init__(self, passages: Sequence[Passage], *, cache: Path | None = None) -> None:
        self._passages = in_order(passages)
        how = f"tantivy {_VERSION} {version('tantivy')} {digest(self._passages)}"
        self.fingerprint = sha256(how.encode()).hexdigest()[:32]
        index = cached(
            f"tantivy-{self.fingerprint}",
            cache,
            make=lambda folder: _made(self._passages, folder),
            read=_read,
        )
        self._schema, self._searcher = index.schema, index.searcher()

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The ``k`` best passages of each query that share a term with it."""
        if k < 1:
            raise ConfigError(f"Expected to search for at least 1 passage, got k={k}.")
        answers = {query: self._answer(query, k) for query in dict.fromkeys(queries)}
        return [answers[query] for query in queries]

    def close(self) -> None:
        """Nothing to do: the index goes with the object."""

    def _answer(self, query: str, k: int) -> tuple[Hit, ...]:
        # Built as objects: tantivy's query language would read meaning into the characters of a term.
        parts = [
            (Occur.Should, Query.boost_query(Query.term_query(self._schema, _TERMS, term, "freq"), times))
            for term, times in Counter(terms(query)).items()
        ]
        limit = k
        while True:
            hits = self._searcher.search(Query.boolean_query(parts), limit + 1, count=False).hits
            # Equal scores across the end would leave the choice to how the index was cut into segments.
            if len(hits) <= limit or hits[limit][0] != hits[k - 1][0]:
                break
            limit *= 4
        places = cast("list[int]", self._searcher.fast_field_values(_PLACE, [address for _, address in hits]))
        best = sorted((-score, place) for (score, _), place in zip(hits, places, strict=True))[:k]
        return tuple(Hit(passage=self._passages[place], score=-score) for score, place in best)


def _made(passages: Sequence[Passage], folder: Path | None) -> Index:
    schema = tantivy.SchemaBuilder().add_text_field(_TERMS, tokenizer_name="whitespace", index_option="freq")
    # A signed number: filling an unsigned fast field makes tantivy 0.27's writer thread panic.
    index = Index(schema.add_integer_field(_PLACE, fast=True).build(), None if folder is None else str(folder))
    writer = index.writer(_HEAP, num_threads=1)
    for place, passage in enumerate(passages):
        document = tantivy.Document()
        document.add_text(_TERMS, " ".join(terms(f"{passage.title}\n{passage.text}")))
        document.add_integer(_PLACE, place)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def _read(folder: Path) -> Index:
    index = Index.open(str(folder))
    index.config_reader("manual")  # Nobody writes to it again, so that nothing needs to be watched.
    index.reload()
    return index
