"""Dense retrieval in this process: the embeddings of a small encoder, compared with every passage (extra ``dense``).

An embedding is the mean of the last hidden states over the tokens of a text, divided by its length. Passages are
embedded once, in half precision, and kept on disk by the hash of corpus and encoder.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from prover.errors import ConfigError, DataError
from prover.retrieval.corpus import digest, in_order
from prover.retrieval.index_cache import cached
from prover.retrieval.ranking import best
from prover.retrieval.retriever import Hit, Passage

_VERSION = 1
"""Counts changes of the embeddings and of the ranking."""
_FILE = "embeddings.npy"
_WEIGHTS = ("*.json", "*.txt", "*.safetensors", "*.bin", "*.model")
_BATCH = 32
_SHOWN = 8192
"""Passages that are compared at once, in single precision."""


class DenseRetriever:
    """Ranks passages by the cosine between their embedding and the query's.

    Queries are embedded one by one, so that none depends on what else is asked.

    Args:
        passages: what can be found, in any order.
        model: folder of a transformers encoder with its tokenizer.
        query_prefix: what the encoder expects before a query.
        passage_prefix: what it expects before a passage.
        max_length: tokens of a text that are read.
        cache: folder of caches, where embeddings are kept; None keeps them in memory.

    Raises:
        DataError: there is no passage, an id is there twice, or the folder holds no encoder.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        model: Path,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_length: int = 256,
        cache: Path | None = None,
    ) -> None:
        self._passages = in_order(passages)
        if not (model / "config.json").is_file():
            raise DataError(f"Expected the folder of an encoder (config.json, weights, tokenizer), got {model}.")
        self._query_prefix, self._passage_prefix, self._max_length = query_prefix, passage_prefix, max_length
        how = (_VERSION, digest(self._passages), _hash_of(model), query_prefix, passage_prefix, max_length)
        self.fingerprint = hashlib.sha256(f"dense {how}".encode()).hexdigest()[:32]
        self._tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True)
        self._model = AutoModel.from_pretrained(model, local_files_only=True, dtype=torch.float32).eval()
        self._embeddings = cached(f"dense-{self.fingerprint}", cache, make=self._made, read=_read)

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The ``k`` passages nearest to each query; there are always as many as the corpus has."""
        if k < 1:
            raise ConfigError(f"Expected to search for at least 1 passage, got k={k}.")
        answers = {query: self._answer(query, k) for query in dict.fromkeys(queries)}
        return [answers[query] for query in queries]

    def close(self) -> None:
        """Nothing to do: the embeddings go with the object."""

    def _answer(self, query: str, k: int) -> tuple[Hit, ...]:
        wanted = self._embedded([self._query_prefix + query])[0]
        scores = np.concatenate(
            [
                self._embeddings[start : start + _SHOWN].astype(np.float32) @ wanted
                for start in range(0, len(self._passages), _SHOWN)
            ]
        )
        return tuple(Hit(passage=self._passages[place], score=float(scores[place])) for place in best(scores, k))

    def _made(self, folder: Path | None) -> NDArray[np.float16]:
        texts = [f"{self._passage_prefix}{passage.title}\n{passage.text}" for passage in self._passages]
        # Texts of like length together, so that little is computed on padding; the order depends on the corpus alone.
        order = sorted(range(len(texts)), key=lambda place: (len(texts[place]), place))
        embeddings = np.empty((len(texts), self._model.config.hidden_size), dtype=np.float16)
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            embeddings[places] = self._embedded([texts[place] for place in places])
        if folder is not None:
            np.save(folder / _FILE, embeddings, allow_pickle=False)
        return embeddings

    def _embedded(self, texts: list[str]) -> NDArray[np.float32]:
        """Embeddings of length 1, shape (len(texts), hidden size)."""
        tokens: Any = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self._max_length, return_tensors="pt"
        )
        with torch.inference_mode():
            states = self._model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1)
            means = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
            found: NDArray[np.float32] = torch.nn.functional.normalize(means, dim=-1).numpy()
        return found


def _hash_of(model: Path) -> str:
    """Hash of the files that an encoder is made of."""
    whole = hashlib.sha256()
    for file in sorted({file for pattern in _WEIGHTS for file in model.glob(pattern)}):
        with file.open("rb") as content:
            whole.update(f"{file.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _read(folder: Path) -> NDArray[np.float16]:
    embeddings: NDArray[np.float16] = np.load(folder / _FILE, mmap_mode="r", allow_pickle=False)
    return embeddings
