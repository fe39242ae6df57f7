"""What retrievers are made of: one section per kind, and how their answers are kept."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, model_validator

from prover.sections import Count, FilePath, NonNegative, Positive, Section, Share, by_kind

CacheMode = Literal["off", "run", "record", "replay"]
"""``off`` keeps no answers. ``run`` keeps those of a run, so that all who ask the same see the same. ``record`` keeps
them in a file for good, and ``replay`` answers from such a file alone."""
Dialect = Literal["search_r1", "verl_agent", "rerank"]
"""What a server is asked and answers: many queries (Search-R1, verl), one query (verl-agent), or many queries with two
stages (Search-R1's rerank server)."""


_KEPT = "retrieval.sqlite"
"""Name of the file of kept answers in the folder of a run."""


class RetrieverSection(Section):
    """Keys of every retriever."""

    cache: CacheMode = "off"
    """Whether answers are kept."""
    cache_path: FilePath | None = None
    """SQLite file of kept answers; ``run`` has one in the folder of the run when left out."""

    @model_validator(mode="after")
    def _a_file_that_stays(self) -> Self:
        if self.cache in ("record", "replay") and self.cache_path is None:
            raise ValueError(f"cache={self.cache} needs cache_path, the SQLite file to keep answers in")
        return self

    def kept_in(self, folder: Path) -> Self:
        """The same retriever, whose ``cache: run`` without a file of its own has one in the folder of the run."""
        if self.cache != "run" or self.cache_path is not None:
            return self
        return self.model_copy(update={"cache_path": folder / _KEPT})


class Bm25RetrieverConfig(RetrieverSection):
    """BM25 in this process."""

    kind: Literal["bm25"] = "bm25"
    k1: NonNegative = 1.2
    """How soon further occurrences of a term stop to count."""
    b: Share = 0.75
    """How much long passages are held back."""
    index_folder: FilePath | None = None
    """Where indexes are kept; the user's cache folder when left out."""


class TantivyRetrieverConfig(RetrieverSection):
    """Tantivy in this process, for large corpora (extra ``tantivy``)."""

    kind: Literal["tantivy"] = "tantivy"
    index_folder: FilePath | None = None
    """Where indexes are kept; the user's cache folder when left out."""


class DenseRetrieverConfig(RetrieverSection):
    """Embeddings of a small encoder in this process (extra ``dense``)."""

    kind: Literal["dense"] = "dense"
    model: FilePath
    """Folder of a transformers encoder with its tokenizer."""
    query_prefix: str = ""
    """What the encoder expects before a query, e.g. ``query:`` and a space for E5."""
    passage_prefix: str = ""
    """What it expects before a passage."""
    max_length: Count = 256
    """Tokens of a text that are read."""
    index_folder: FilePath | None = None
    """Where embeddings are kept; the user's cache folder when left out."""


class HttpRetrieverConfig(RetrieverSection):
    """A retrieval server."""

    kind: Literal["http"] = "http"
    url: Annotated[str, Field(min_length=1)]
    """Of the server; ``/retrieve`` is added where it has no path."""
    dialect: Dialect = "search_r1"
    """What the server is asked and answers."""
    index: str = ""
    """Names what the server searches, e.g. ``wiki-18 e5 flat``: kept answers belong to it, else to the URL."""
    topk_retrieval: Count = 10
    """Passages that a rerank server ranks anew."""
    connect_s: Positive = 5.0
    """Seconds to wait for a connection."""
    read_s: Positive = 30.0
    """Seconds to wait for (the next part of) an answer."""
    pool_s: Positive = 30.0
    """Seconds to wait for a free one of the connections."""
    deadline_s: Positive = 120.0
    """Seconds that a search may take with all its attempts."""
    retries: Annotated[int, Field(ge=0)] = 3
    """Further attempts after one that failed for a passing cause."""
    pause_s: Positive = 0.5
    """Longest pause before the first of them, in seconds; it doubles with each."""
    longest_pause_s: Positive = 30.0
    """Where that ends, in seconds."""
    connections: Count = 64
    """Connections at most."""
    window_s: NonNegative = 0.002
    """Seconds for which a query waits for others to share its request."""
    max_batch: Count = 512
    """Queries of one request at most."""
    cache: CacheMode = "run"
    """Whether answers are kept; by default a run sees the same passages from first to last."""


class CustomRetrieverConfig(RetrieverSection):
    """Any other retriever: ``module:Class`` or a name from the entry points ``prover.retrievers``."""

    kind: Annotated[str, Field(min_length=1)]
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the retriever, beside ``passages``, the corpus."""


RetrieverConfig = Annotated[
    Annotated[Bm25RetrieverConfig, Tag("bm25")]
    | Annotated[HttpRetrieverConfig, Tag("http")]
    | Annotated[TantivyRetrieverConfig, Tag("tantivy")]
    | Annotated[DenseRetrieverConfig, Tag("dense")]
    | Annotated[CustomRetrieverConfig, Tag("custom")],
    by_kind("bm25", "http", "tantivy", "dense"),
]
"""A retriever, chosen by ``kind``."""


class ServedConfig(Section):
    """What ``prover serve-retriever`` serves."""

    corpus: FilePath | None = None
    """JSONL file of passages, or a folder with ``corpus.jsonl`` or ``corpus.jsonl.gz``; another server needs none."""
    retriever: RetrieverConfig = Bm25RetrieverConfig()
    """What searches it."""
