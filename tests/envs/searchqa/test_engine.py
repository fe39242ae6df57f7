"""The retriever of a process."""

from pathlib import Path

import pytest

from prover.envs.searchqa.engine import section, shared_retriever
from prover.envs.searchqa.library import open_library
from prover.errors import ConfigError, DataError
from prover.retriever_config import Bm25RetrieverConfig, HttpRetrieverConfig


def test_sections() -> None:
    """Keyword arguments become a section; BM25 without any; mistakes are named."""
    assert section(None) == Bm25RetrieverConfig()
    found = section({"kind": "http", "url": "http://127.0.0.1:1"})
    assert isinstance(found, HttpRetrieverConfig)
    with pytest.raises(ConfigError, match=r"got in bm25\.kk: Extra inputs are not permitted"):
        section({"kind": "bm25", "kk": 1})


def test_one_for_all(folder: Path) -> None:
    """The same section over the same library is opened once; another section or library is another retriever."""
    library = open_library(str(folder))
    one = shared_retriever(Bm25RetrieverConfig(), library)
    assert shared_retriever(Bm25RetrieverConfig(), library) is one
    assert shared_retriever(Bm25RetrieverConfig(k1=0.5), library) is not one
    assert shared_retriever(Bm25RetrieverConfig(), open_library("generated")) is not one
    ((hit, *_),) = one.search(["tall bridge"], 3)
    assert hit.passage.title == "Tall Bridge"


def test_a_server_needs_no_corpus(folder: Path) -> None:
    """Without a corpus a server is asked, and BM25 says what is missing."""
    (folder / "corpus.jsonl").unlink()
    library = open_library(str(folder))
    pytest.importorskip("prover.retrieval.http")
    shared_retriever(HttpRetrieverConfig(url="http://127.0.0.1:1"), library)
    with pytest.raises(DataError, match="Expected a corpus"):
        shared_retriever(Bm25RetrieverConfig(), library)
