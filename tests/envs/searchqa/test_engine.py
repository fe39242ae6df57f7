"""The retriever of a process."""

import re
from pathlib import Path
from typing import Any

import pytest

from prover.envs.searchqa.engine import probe, section, shared_retriever
from prover.envs.searchqa.library import open_library
from prover.errors import ConfigError, DataError, ServiceError
from prover.retrieval.cache import CachedRetriever
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


def test_files_of_kept_answers_share_an_index(folder: Path, tmp_path: Path) -> None:
    """What two runs keep lies in two files, over one retriever; without a cache that retriever is what is shared."""
    library = open_library(str(folder))
    plain = shared_retriever(Bm25RetrieverConfig(b=0.5), library)
    runs = [Bm25RetrieverConfig(b=0.5, cache="run").kept_in(tmp_path / name) for name in ("one", "two")]
    one, two = (shared_retriever(run, library) for run in runs)
    assert isinstance(one, CachedRetriever)
    assert isinstance(two, CachedRetriever)
    assert one.inner is two.inner is plain
    one.search(["tall bridge"], 3)
    assert (tmp_path / "one" / "retrieval.sqlite").is_file()
    assert shared_retriever(runs[0], library) is one


def test_a_probe_is_short(drifting: Any) -> None:
    """One question, asked twice at most whatever the run may do; nobody is asked where answers are replayed."""
    config = HttpRetrieverConfig(url=drifting.url, retries=99, pause_s=0.001, cache="run")
    probe(config, "river bridge")
    assert drifting.asked == ["river bridge"]
    drifting.failure = ServiceError("the index is loading", "server")
    with pytest.raises(ServiceError, match=re.escape(drifting.url)):
        probe(config, "river bridge")
    assert len(drifting.asked) == 3
    probe(config.model_copy(update={"cache": "replay"}), "river bridge")
    probe(Bm25RetrieverConfig(), "river bridge")
    assert len(drifting.asked) == 3
