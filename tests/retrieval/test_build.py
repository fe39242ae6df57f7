"""From a config to a retriever."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from prover.errors import ConfigError, ServiceError, UnknownNameError
from prover.retrieval import Hit, Passage
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.build import open_retriever
from prover.retrieval.cache import CachedRetriever
from prover.retriever_config import Bm25RetrieverConfig, CustomRetrieverConfig, HttpRetrieverConfig


class First:
    """Finds the first passages, whatever the query."""

    fingerprint = "first"

    def __init__(self, passages: Sequence[Passage], skip: int = 0) -> None:
        self.passages = passages[skip:]

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        return [tuple(Hit(passage=passage, score=1.0) for passage in self.passages[:k]) for _ in queries]

    def close(self) -> None:
        pass


def custom(name: str, **options: Any) -> CustomRetrieverConfig:
    """A retriever of this file."""
    return CustomRetrieverConfig(kind=f"{__name__}:{name}", options=options)


class Nothing:
    """Takes a corpus and cannot search it."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        pass


def test_bm25_with_its_settings(passages: Sequence[Passage], tmp_path: Path) -> None:
    """Keys of the section reach the retriever, and the index is kept where it says."""
    opened = open_retriever(Bm25RetrieverConfig(k1=0.9, b=0.4, index_folder=tmp_path), passages)
    assert isinstance(opened, Bm25Retriever)
    assert opened.fingerprint == Bm25Retriever(passages, k1=0.9, b=0.4, cache=None).fingerprint
    assert (tmp_path / "retrieval" / f"bm25-{opened.fingerprint}").is_dir()


def test_indexes_are_kept_in_the_users_cache(
    passages: Sequence[Passage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a folder in the config."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    open_retriever(Bm25RetrieverConfig(), passages)
    assert len(list((tmp_path / "prover" / "retrieval").iterdir())) == 1


def test_kept_answers(passages: Sequence[Passage], tmp_path: Path) -> None:
    """They stand where the config says, else in memory."""
    for path, expected in [(tmp_path / "a.sqlite", tmp_path / "a.sqlite"), (None, ":memory:")]:
        config = Bm25RetrieverConfig(cache="run", cache_path=path, index_folder=tmp_path)
        opened = open_retriever(config, passages)
        assert isinstance(opened, CachedRetriever)
        assert (opened.path, opened.mode) == (expected, "run")
        assert opened.search(["salt"], 1)[0][0].passage.id == "c"
        opened.close()


def test_a_server(script: Any, tmp_path: Path) -> None:
    """It needs no corpus; its answers are kept, and the probe goes past them."""
    config = HttpRetrieverConfig(url=script.url, connections=3, retries=0, cache_path=tmp_path / "kept.sqlite")
    opened = open_retriever(config, probe="who")
    assert isinstance(opened, CachedRetriever)
    assert [opened.search(["who"], 1)[0][0].passage.text for _ in range(2)] == ["about who"] * 2
    opened.close()
    assert len(script.asked) == 2
    script.steps = [(404, {}, b"no")]
    with pytest.raises(ServiceError, match="404"):
        open_retriever(config, probe="who")
    replayed = config.model_copy(update={"cache": "replay"})
    offline = open_retriever(replayed, probe="whence")
    assert offline.search(["who"], 1)[0][0].passage.text == "about who"
    offline.close()
    assert len(script.asked) == 3


def test_a_retriever_of_ones_own(passages: Sequence[Passage]) -> None:
    """It gets the corpus and its options."""
    assert open_retriever(custom("First", skip=2), passages).search(["q"], 1)[0][0].passage.id == "d"


def test_mistakes(passages: Sequence[Passage]) -> None:
    """Unknown kinds, options that are not taken, what is no retriever, and no corpus."""
    with pytest.raises(UnknownNameError, match=r"retriever of kind 'bm52'.*'bm25'"):
        open_retriever(CustomRetrieverConfig(kind="bm52"), passages)
    with pytest.raises(ConfigError, match="does not take its options"):
        open_retriever(custom("First", depth=2), passages)
    with pytest.raises(ConfigError, match="search"):
        open_retriever(custom("Nothing"), passages)
    with pytest.raises(ConfigError, match="corpus for a retriever of kind 'bm25'"):
        open_retriever(Bm25RetrieverConfig())
