"""The engine: answers a batch of requests, computing every prefix once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from prover.policies.decoder import Decoder, Rows
from prover.policies.prefixes import PrefixStore
from prover.policies.sampling import draw
from prover.policies.trie import ChoiceTrie, choice_trie
from prover.records import Completion, Request
from prover.seeds import generator


@dataclass(slots=True, kw_only=True)
class Counters:
    """What has been done since the engine was built."""

    requests: int = 0
    batches: int = 0
    prompt_tokens_computed: int = 0
    """Prompt tokens that went through the model."""
    prompt_tokens_reused: int = 0
    """Prompt tokens whose attention cache came from the store or from an equal prompt of the batch."""
    sampled_tokens: int = 0
    forced_tokens: int = 0
    """Sampled tokens that had no alternative; they need no forward pass of their own."""


class Engine:
    """Serves batches over a decoder and a prefix store."""

    def __init__(self, decoder: Decoder, store: PrefixStore, eos_ids: frozenset[int]) -> None:
        self.decoder = decoder
        self.store = store
        self.eos_ids = eos_ids
        self.counters = Counters()

    @torch.inference_mode()
    def serve(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer all requests as one batch.

        Equal prompts are computed once; a prompt starts from the longest beginning that the store knows. What was
        computed goes back into the store: all but the last token of prompt and reply, which no forward pass has seen.
        """
        replies = [_Reply(request, self.eos_ids) for request in requests]
        rows, logits = self._prefill(replies)
        where = list(range(len(replies)))  # reply served by each row
        live = list(range(len(replies)))  # rows still being written
        while True:
            _advance([replies[where[row]] for row in live], logits)
            live = [row for row in live if not replies[where[row]].finish]
            if not live:
                break
            if len(live) <= len(where) // 2:
                self._remember(rows, where, replies, set(range(len(where))) - set(live))
                rows, where = rows.select(live), [where[row] for row in live]
                live = list(range(len(where)))
            logits = rows.extend(live, [replies[where[row]].take_pending() for row in live])
        self._remember(rows, where, replies, range(len(where)))
        completions = [reply.completion() for reply in replies]
        self.counters.requests += len(requests)
        self.counters.batches += 1
        self.counters.sampled_tokens += sum(len(completion.ids) for completion in completions)
        self.counters.forced_tokens += sum(reply.forced for reply in replies)
        return completions

    def _prefill(self, replies: Sequence["_Reply"]) -> tuple[Rows, NDArray[np.float32]]:
        """Rows that hold the prompts, one for each reply, and the logits that follow."""
        index: dict[tuple[int, ...], int] = {}
        uses = [index.setdefault(reply.prompt, len(index)) for reply in replies]
        prefixes = [self.store.find(prompt) for prompt in index]
        known = [prefix.length if prefix else 0 for prefix in prefixes]
        capacity = max(len(reply.prompt) + reply.request.sampling.max_tokens for reply in replies)
        rows = self.decoder.open(prefixes, capacity)
        chunks = [prompt[n:] for prompt, n in zip(index, known, strict=True)]
        logits = rows.extend(range(len(index)), chunks)
        computed = sum(map(len, chunks))
        self.counters.prompt_tokens_computed += computed
        self.counters.prompt_tokens_reused += sum(len(reply.prompt) for reply in replies) - computed
        return (rows.select(uses), logits[uses]) if len(index) < len(replies) else (rows, logits)

    def _remember(self, rows: Rows, where: Sequence[int], replies: Sequence["_Reply"], done: Iterable[int]) -> None:
        for row in done:
            ids = replies[where[row]].ids[: rows.lengths[row]]
            if not self.store.covers(ids):
                self.store.add(ids, rows.keep(row))


def _advance(replies: Sequence["_Reply"], logits: NDArray[np.float32]) -> None:
    """Draw the next token of each reply from its row of logits."""
    free = [i for i, reply in enumerate(replies) if reply.allowed is None]
    restricted = [i for i, reply in enumerate(replies) if reply.allowed is not None]
    parts = [(free, logits[free])] if free else []
    if restricted:
        choices = [replies[i].allowed or () for i in restricted]
        scores = np.full((len(restricted), max(map(len, choices))), -np.inf, dtype=np.float32)
        for row, i, ids in zip(scores, restricted, choices, strict=True):
            row[: len(ids)] = logits[i, ids]
        parts.append((restricted, scores))
    for members, scores in parts:
        uniforms = np.array([replies[i].uniform for i in members])
        temperatures = np.array([replies[i].request.sampling.temperature for i in members])
        for i, column, logprob in zip(members, *draw(scores, uniforms, temperatures), strict=True):
            allowed = replies[i].allowed
            replies[i].write(int(column) if allowed is None else allowed[column], float(logprob))


@dataclass(slots=True)
class _Reply:
    """A reply while it is written."""

    request: Request
    eos_ids: frozenset[int]
    prompt: tuple[int, ...] = field(init=False)
    finish: str = ""
    """Empty while the reply goes on."""
    forced: int = 0
    _ids: list[int] = field(default_factory=list)
    _logprobs: list[float] = field(default_factory=list)
    _support: list[tuple[int, ...]] = field(default_factory=list)
    _fed: int = 0
    """Reply tokens that have been handed to the decoder."""
    _node: ChoiceTrie | None = None
    _uniforms: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.prompt = tuple(self.request.ids)
        # Token i is decided by number i, whatever happened to the tokens before it.
        self._uniforms = generator(self.request.seed).random(self.request.sampling.max_tokens)
        if self.request.choices is not None:
            self._node = choice_trie(self.request.choices, self.eos_ids)

    @property
    def ids(self) -> tuple[int, ...]:
        """Prompt and reply."""
        return self.prompt + tuple(self._ids)

    @property
    def allowed(self) -> tuple[int, ...] | None:
        """Ids that may come next; None for all."""
        return self._node.ids if self._node else None

    @property
    def uniform(self) -> float:
        """The number that decides the next token."""
        return float(self._uniforms[len(self._ids)])

    def write(self, id_: int, logprob: float) -> None:
        """Write down a drawn token, and those that follow it without alternative."""
        self._append(id_, logprob)
        while self._node and len(self._node.ids) == 1:
            self._append(self._node.ids[0], 0.0)

    def _append(self, id_: int, logprob: float) -> None:
        self._ids.append(id_)
        self._logprobs.append(logprob)
        if self._node:
            self._support.append(self._node.ids)
            self.forced += len(self._node.ids) == 1
            self._node = self._node.child(id_)
        if id_ in self.eos_ids:
            self.finish = "stop"
        elif len(self._ids) == self.request.sampling.max_tokens:
            self.finish = "length"

    def take_pending(self) -> list[int]:
        """Tokens that the decoder has not seen yet."""
        pending = self._ids[self._fed :]
        self._fed = len(self._ids)
        return pending

    def completion(self) -> Completion:
        """The finished reply."""
        return Completion(
            ids=tuple(self._ids),
            logprobs=tuple(self._logprobs),
            finish=self.finish,
            support=None if self.request.choices is None else tuple(self._support),
        )
