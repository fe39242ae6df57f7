"""The retriever behind the environments of a process: opened at the first search, shared by all of them."""

import atexit
import json
import threading
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from prover.envs.searchqa.library import Library
from prover.errors import ConfigError
from prover.retrieval.build import open_retriever
from prover.retrieval.retriever import Retriever
from prover.retriever_config import Bm25RetrieverConfig, HttpRetrieverConfig, RetrieverConfig

_SECTION: TypeAdapter[RetrieverConfig] = TypeAdapter(RetrieverConfig)
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

    It is closed when the process ends: an index, or the answers that a run keeps, outlive a single environment.

    Raises:
        ConfigError: it cannot be made.
        DataError: there are no passages for it.
    """
    remote = isinstance(config, HttpRetrieverConfig)
    key = ("" if remote else library.source, json.dumps(config.model_dump(mode="json"), sort_keys=True))
    with _lock:
        if key not in _open:
            _open[key] = open_retriever(config, None if remote else library.passages())
            atexit.register(_open[key].close)
        return _open[key]
