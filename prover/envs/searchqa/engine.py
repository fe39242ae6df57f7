"""The retriever of a process, shared by all its environments: opened when the first question is asked."""

import atexit
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from prover.envs.searchqa.library import Library
from prover.errors import ConfigError
from prover.retrieval.build import keeping, open_retriever
from prover.retrieval.retriever import Retriever
from prover.retriever_config import Bm25RetrieverConfig, HttpRetrieverConfig, RetrieverConfig

_SECTION: TypeAdapter[RetrieverConfig] = TypeAdapter(RetrieverConfig)
_PROBE_S = 20.0
"""Longest wait for a server before a run; later it has ``deadline_s``."""
_open: dict[tuple[str, str], Retriever] = {}
_lock = threading.Lock()


def section(options: Mapping[str, Any] | None) -> RetrieverConfig:
    """The config that keyword arguments spell out; BM25 in this process without any.

    Raises:
        ConfigError: a key or value is wrong.
    """
    if options is None:
        return Bm25RetrieverConfig()
    try:
        return _SECTION.validate_python(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"expected a section of a retriever, got in {where}: {first['msg']}; correct it") from error


def shared_retriever(config: RetrieverConfig, library: Library) -> Retriever:
    """The configured retriever over the library's passages, the same one for all who ask in this process.

    It is closed when the process ends: an index, or the answers that a run keeps, outlive a single environment. Several
    files of kept answers share an index.

    Raises:
        ConfigError: it cannot be made.
        DataError: there are no passages for it.
    """
    remote = isinstance(config, HttpRetrieverConfig)
    source = "" if remote else library.source
    bare = _keeping_nothing(config)
    with _lock:
        inner = _once(source, bare, lambda: open_retriever(bare, None if remote else library.passages()))
        return _once(source, config, lambda: keeping(inner, config))


def probe(config: RetrieverConfig, question: str) -> None:
    """Ask a server one real question, so that a wrong address or dialect shows within seconds; no other retriever.

    Nothing is asked where kept answers are replayed.

    Raises:
        ServiceError: the server does not answer, or finds nothing; the message names its URL.
    """
    if isinstance(config, HttpRetrieverConfig) and config.cache != "replay":
        hurried = {"retries": min(config.retries, 1), "deadline_s": min(config.deadline_s, _PROBE_S)}
        open_retriever(_keeping_nothing(config).model_copy(update=hurried), probe=question).close()


def _keeping_nothing(config: RetrieverConfig) -> RetrieverConfig:
    return config.model_copy(update={"cache": "off", "cache_path": None})


def _once(source: str, config: RetrieverConfig, make: Callable[[], Retriever]) -> Retriever:
    """What was made of this config before, or is made now; it is closed when the process ends."""
    key = (source, json.dumps(config.model_dump(mode="json"), sort_keys=True))
    if key not in _open:
        _open[key] = make()
        atexit.register(_open[key].close)
    return _open[key]
