"""From a config to a retriever. What a kind needs is imported when it is asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from prover import build
from prover.errors import ConfigError
from prover.retrieval.cache import CachedRetriever
from prover.retrieval.index_cache import default_cache
from prover.retrieval.retriever import Passage, Retriever
from prover.retriever_config import CustomRetrieverConfig, HttpRetrieverConfig, RetrieverConfig, RetrieverSection

if TYPE_CHECKING:
    from prover.retrieval.http import HttpRetriever

_RETRIEVERS = {
    "bm25": "prover.retrieval.bm25:Bm25Retriever",
    "http": "prover.retrieval.http:HttpRetriever",
    "tantivy": "prover.retrieval.tantivy:TantivyRetriever",
    "dense": "prover.retrieval.dense:DenseRetriever",
}


def open_retriever(
    config: RetrieverConfig,
    passages: Sequence[Passage] | None = None,
    *,
    probe: str | None = None,
) -> Retriever:
    """The configured retriever with its cache of answers. One serves all threads of a process; share it.

    Args:
        config: what to open.
        passages: the corpus; a server has its own and needs none here.
        probe: a real question to ask a server at once, so that a wrong address shows before a run; not in ``replay``,
            where nothing is ever asked.

    Raises:
        UnknownNameError: nothing goes by that kind.
        ConfigError: there are no passages to search, or a package is not installed.
        DataError: the passages, a model or the file of kept answers are not what they should be.
        ServiceError: the server does not answer the probe, or finds nothing.
    """
    options = _options(config)
    if not isinstance(config, HttpRetrieverConfig):
        if passages is None:
            raise ConfigError(f"Expected a corpus for a retriever of kind {config.kind!r}, got none. Name one.")
        options["passages"] = passages
    made = build.find("retriever of kind", config.kind, _RETRIEVERS, "prover.retrievers")
    retriever: Retriever = build.taking(made, options, f"retriever {config.kind!r}")(**options)
    if not isinstance(retriever, Retriever):
        raise ConfigError(
            f"Expected retriever {config.kind!r} to have a fingerprint, search(queries, k) and close(), got "
            f"{type(retriever).__name__} without one of them."
        )
    try:
        if probe is not None and isinstance(config, HttpRetrieverConfig) and config.cache != "replay":
            cast("HttpRetriever", retriever).probe(probe)
        return keeping(retriever, config)
    except BaseException:
        retriever.close()
        raise


def keeping(retriever: Retriever, config: RetrieverConfig) -> Retriever:
    """A retriever with the cache of answers that the config asks for: in ``cache_path``, without one in memory.

    Raises:
        DataError: the file of kept answers is not what it should be.
    """
    if config.cache == "off":
        return retriever
    return CachedRetriever(retriever, config.cache_path or ":memory:", config.cache)


def _options(config: RetrieverConfig) -> dict[str, Any]:
    """Keyword arguments of the retriever's class."""
    if isinstance(config, CustomRetrieverConfig):
        return dict(config.options)
    options = config.model_dump(exclude={"kind", "index_folder", *RetrieverSection.model_fields})
    if not isinstance(config, HttpRetrieverConfig):
        options["cache"] = config.index_folder or default_cache()
    return options
