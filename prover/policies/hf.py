"""The embedded policy: a local transformers model that answers many episodes as one batch."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as hf_logging

from prover.errors import ConfigError, DataError, TokenError
from prover.policies.codec import HFCodec
from prover.policies.decoder import Decoder, Rows
from prover.policies.engine import Counters, Engine
from prover.policies.modules import ModuleDecoder
from prover.policies.plain import PlainDecoder
from prover.policies.prefixes import PrefixStore
from prover.policies.trie import choice_trie
from prover.records import Completion, Request

_QUIET_TICKS = 4  # turns of the event loop without a new request before a batch starts


class HFPolicy:
    """A causal language model of transformers behind the ``Policy`` protocol.

    Requests of all tasks of the event loop are gathered until none has come for a few turns of the loop, then served
    together in the loop's thread. Attention caches are kept between requests, so that a prompt which continues or
    branches off a known sequence costs only its new tokens.

    A reply is a function of its request's ids, sampling and seed, and of the weights. The batch and the kept caches
    enter in one way only: fp32 kernels may round differently for different shapes, about 1e-6 in the logits, and a
    token changes only if its uniform number lies that close to a step of the cumulative distribution.

    ``model`` may be trained in place. Call ``updated()`` afterwards; changed weights are noticed in any case before the
    next batch, through the version counters that torch keeps for its parameters.
    """

    def __init__(
        self,
        model: Any,
        codec: HFCodec,
        *,
        context_limit: int | None = None,
        max_batch: int = 64,
        cache_bytes: int = 1 << 30,
    ) -> None:
        """Serve ``model`` (fp32, on the CPU).

        Args:
            model: A causal language model of transformers.
            codec: Turns text into the model's ids.
            context_limit: Most tokens of prompt and reply together; by default what the model was configured for.
            max_batch: Most requests that run at once.
            cache_bytes: Memory for attention caches between requests.
        """
        known = getattr(model.config, "max_position_embeddings", None)
        if context_limit is None:
            context_limit = known
        if context_limit is None or context_limit < 2 or (known and context_limit > known):
            raise ConfigError(
                f"expected a context_limit of 2 to {known or 'any number of'} tokens, got {context_limit}; "
                "set context_limit to what the model can hold"
            )
        if len(codec.tokenizer) > model.config.vocab_size:
            raise ConfigError(
                f"expected a tokenizer of at most {model.config.vocab_size} tokens, got {len(codec.tokenizer)}; "
                "use the tokenizer that belongs to the model"
            )
        if max_batch < 1:
            raise ConfigError(f"expected max_batch of at least 1, got {max_batch}; set how many requests run at once")
        self.model = model
        self.codec = codec
        self.version = 0
        self.context_limit = context_limit
        self.max_batch = max_batch
        decoder: Decoder = PlainDecoder(model) if PlainDecoder.supports(model) else ModuleDecoder(model)
        self._engine = Engine(decoder, PrefixStore(cache_bytes, truncates=decoder.truncates), codec.eos_ids)
        self._weights = self._weights_version()
        self._calls: list[_Call] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        context_limit: int | None = None,
        max_batch: int = 64,
        cache_bytes: int = 1 << 30,
    ) -> "HFPolicy":
        """Load model and tokenizer from a local folder as ``save`` or ``save_pretrained`` writes it.

        Nothing is downloaded and no code of the folder is run.

        Raises:
            DataError: There is no model at ``path``, or its weights are not complete.
        """
        path = Path(path)
        if not (path / "config.json").is_file():
            raise DataError(f"expected a model folder with a config.json, got {path}; give the path of a saved model")
        options = {"local_files_only": True, "trust_remote_code": False}
        try:
            with _no_progress_bars():
                model, report = AutoModelForCausalLM.from_pretrained(
                    path,
                    dtype=torch.float32,
                    attn_implementation="sdpa",
                    use_safetensors=True,
                    output_loading_info=True,
                    **options,
                )
            tokenizer = AutoTokenizer.from_pretrained(path, **options)
        except Exception as error:
            raise DataError(
                f"expected a folder with config, weights (safetensors) and tokenizer that transformers can load, got "
                f"{type(error).__name__} for {path}: {str(error).strip().partition(chr(10))[0]}; save the policy anew, "
                "or name another"
            ) from error
        if missing := sorted(report["missing_keys"]):
            # transformers would go on with random weights in their place, other ones every time.
            raise DataError(
                f"expected all weights of the model in {path}, got none for {', '.join(missing)}; save the whole model"
            )
        # As they lie in the file they may start anywhere, and kernels round by how memory is aligned.
        for parameter in model.parameters():
            parameter.data = parameter.data.clone()
        codec = HFCodec(tokenizer, eos_ids=_eos_ids(model))
        return cls(model.eval(), codec, context_limit=context_limit, max_batch=max_batch, cache_bytes=cache_bytes)

    def save(self, path: str | Path) -> None:
        """Write weights (safetensors), config, tokenizer and chat template to a folder that ``load`` reads."""
        with _no_progress_bars():
            self.model.save_pretrained(path)
        self.codec.tokenizer.save_pretrained(path)

    @property
    def counters(self) -> Counters:
        """Work done so far."""
        return self._engine.counters

    def forget(self) -> None:
        """Drop the attention caches, so that what comes next is computed as in a fresh process, rounding included."""
        self._engine.decoder.refresh()
        self._engine.store.clear()

    def updated(self) -> None:
        """The weights have changed: count a new version and forget the attention caches."""
        self.version += 1
        self.forget()
        self._weights = self._weights_version()

    @torch.inference_mode()
    def features(
        self, ids: Sequence[NDArray[np.int64]], places: Sequence[Sequence[int]], *, batch: int
    ) -> NDArray[np.float32]:
        """See ``TrainablePolicy.features``. Rows of like length share a forward pass; the output layer does not run."""
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        found: dict[int, NDArray[np.float32]] = {}
        training = self.model.training
        self.model.eval()
        try:
            for start in range(0, len(order), batch):
                part = order[start : start + batch]
                rows = [torch.from_numpy(ids[row]) for row in part]
                mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
                padded = pad_sequence(rows, batch_first=True)
                inputs = {"input_ids": padded.to(self.model.device), "attention_mask": mask.to(self.model.device)}
                hidden = self.model.base_model(**inputs, use_cache=False).last_hidden_state.float().cpu().numpy()
                found |= {row: hidden[line, list(places[row])] for line, row in enumerate(part)}
        finally:
            self.model.train(training)
        empty = np.empty((0, self.model.config.hidden_size), np.float32)
        return np.concatenate([empty, *(found[row] for row in range(len(ids)))])

    def open(self, capacity: int) -> Rows:
        """One row with room for ``capacity`` tokens, to be continued by hand, apart from all requests and their caches.

        It is of use until the weights change.
        """
        if self._weights_version() != self._weights:
            self.updated()
        return self._engine.decoder.open([None], capacity)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer every request, in order.

        Raises:
            TokenError: A request is empty, does not fit into the context, or has choices that do not fit; nothing is
                run then.
        """
        for request in requests:
            self._check(request)
        if not requests:
            return []
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # The loop that was to serve what is still waiting is gone, and the waiting tasks with it.
            self._loop, self._calls = loop, []
        call = _Call(list(requests), loop.create_future())
        self._calls.append(call)
        if len(self._calls) == 1:
            loop.call_soon(self._tick, 1, 0)
        return await call.future

    def _tick(self, seen: int, quiet: int) -> None:
        """Wait while requests keep coming, then serve them."""
        if len(self._calls) > seen or quiet < _QUIET_TICKS:
            quiet = 0 if len(self._calls) > seen else quiet + 1
            asyncio.get_running_loop().call_soon(self._tick, len(self._calls), quiet)
            return
        calls, self._calls = [call for call in self._calls if not call.future.done()], []
        self._serve(calls)

    def _serve(self, calls: "list[_Call]") -> None:
        """Run the requests in batches of similar length; what fails, fails for its own callers only."""
        if self._weights_version() != self._weights:
            self.updated()
        places = [(call, i) for call in calls for i in range(len(call.requests))]
        # Equal prompts come to stand together, so that they share a batch and are computed once.
        places.sort(key=lambda place: (len(place[0].requests[place[1]].ids), tuple(place[0].requests[place[1]].ids)))
        training = self.model.training
        self.model.eval()
        try:
            for start in range(0, len(places), self.max_batch):
                batch = [place for place in places[start : start + self.max_batch] if not place[0].future.done()]
                try:
                    completions = self._engine.serve([call.requests[i] for call, i in batch]) if batch else []
                except Exception as error:  # handed to those whose requests were in the batch
                    for call, _ in batch:
                        if not call.future.done():
                            call.future.set_exception(error)
                else:
                    for (call, i), completion in zip(batch, completions, strict=True):
                        call.done(i, completion)
        finally:
            self.model.train(training)

    def _check(self, request: Request) -> None:
        n, limit = len(request.ids), request.sampling.max_tokens
        if n < 1 or limit < 1:
            raise TokenError(f"expected a prompt and max_tokens of at least 1 token, got {n} and {limit}; check both")
        if n + limit > self.context_limit:
            raise TokenError(
                f"expected prompt and reply within {self.context_limit} tokens, got {n} + {limit}; "
                "end the episode before its context is full"
            )
        if request.sampling.temperature < 0:
            raise TokenError(f"expected a temperature of at least 0, got {request.sampling.temperature}; set 0 or more")
        if request.choices is not None:
            longest = choice_trie(request.choices, self.codec.eos_ids).depth
            if longest > limit:
                raise TokenError(f"expected choices of at most max_tokens={limit}, got {longest}; raise max_tokens")

    def _weights_version(self) -> int:
        # Every in-place write, an optimizer step or load_state_dict, counts a parameter's version up.
        return hash(tuple((id(parameter), parameter._version) for parameter in self.model.parameters()))


@dataclass(slots=True, eq=False)
class _Call:
    """One waiting call of ``generate``."""

    requests: list[Request]
    future: asyncio.Future[list[Completion]]
    completions: dict[int, Completion] | None = None

    def done(self, index: int, completion: Completion) -> None:
        """Note an answer; the last one wakes the caller."""
        self.completions = self.completions or {}
        self.completions[index] = completion
        if len(self.completions) == len(self.requests) and not self.future.done():
            self.future.set_result([self.completions[i] for i in range(len(self.requests))])


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Keep transformers from drawing bars over our own output."""
    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()


def _eos_ids(model: Any) -> frozenset[int]:
    """End tokens that the model's own settings name."""
    ids = model.generation_config.eos_token_id if model.generation_config else None
    ids = model.config.eos_token_id if ids is None else ids
    return frozenset([ids] if isinstance(ids, int) else ids or ())
