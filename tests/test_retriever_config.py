"""Sections of retrievers."""

from pathlib import Path

import pytest

from prover.errors import ConfigError
from prover.retriever_config import (
    Bm25RetrieverConfig,
    CustomRetrieverConfig,
    DenseRetrieverConfig,
    HttpRetrieverConfig,
    RetrieverConfig,
    ServedConfig,
    TantivyRetrieverConfig,
)
from prover.sections import load


def read(*overrides: str) -> RetrieverConfig:
    """The retriever of a config."""
    return load(ServedConfig, None, ["corpus=here", *(f"retriever.{override}" for override in overrides)]).retriever


def test_the_kind_chooses_the_section() -> None:
    """BM25 is the default; any kind that is not shipped is a custom one."""
    assert isinstance(load(ServedConfig, None, ["corpus=here"]).retriever, Bm25RetrieverConfig)
    assert isinstance(read("kind=http", "url=http://here"), HttpRetrieverConfig)
    assert isinstance(read("kind=tantivy"), TantivyRetrieverConfig)
    assert isinstance(read("kind=dense", "model=encoder"), DenseRetrieverConfig)
    assert read("kind=my:Retriever", "options={depth: 3}") == CustomRetrieverConfig(
        kind="my:Retriever", options={"depth": 3}
    )


def test_answers_of_a_server_are_kept() -> None:
    """A server may answer otherwise the next time, so its answers are kept by default; others need not be."""
    assert read("kind=http", "url=http://here").cache == "run"
    assert read("kind=bm25").cache == "off"


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_what_is_kept_for_good_has_a_place(mode: str) -> None:
    """Recording and replaying need a file."""
    with pytest.raises(ConfigError, match="cache_path"):
        read("kind=bm25", f"cache={mode}")
    assert read("kind=bm25", f"cache={mode}", "cache_path=kept.sqlite").cache_path == Path("kept.sqlite")


@pytest.mark.parametrize(
    "overrides",
    [
        ("kind=http",),
        ("kind=http", "url=http://here", "dialect=verl"),
        ("kind=http", "url=http://here", "retries=-1"),
        ("kind=http", "url=http://here", "read_s=0"),
        ("kind=bm25", "b=2"),
        ("kind=bm25", "cache=always"),
        ("kind=dense",),
        ("kind=bm25", "model=encoder"),
    ],
)
def test_mistakes_are_refused(overrides: tuple[str, ...]) -> None:
    """Keys that are missing, unknown or out of range."""
    with pytest.raises(ConfigError, match="retriever"):
        read(*overrides)
