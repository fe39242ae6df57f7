"""LLMJudge: a chat model compares the runs, looks things up, and names a segment."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self
from weakref import WeakValueDictionary

from prover.chat import Answer, Ask, Message, Tool, Usage
from prover.errors import ServiceError
from prover.judge_config import LLMJudgeConfig
from prover.judges.llm import prompt
from prover.judges.llm.cache import JudgementCache, Offline, key_of
from prover.judges.llm.lookup import Lookup, ToolName, WrongCallError, offered
from prover.judges.llm.reply import Refusal, Reply, read_reply, reply_schema
from prover.judges.llm.tally import Tally
from prover.judges.llm.view import View
from prover.protocols import Backend
from prover.records import Group, NoProposal, Proposal, Segment
from prover.seeds import derive
from prover.segments import choose_success

Mode = Literal["agentic", "single"]

_OPERATION = {"concurrency", "deadline_s", "budget_tokens", "budget_cost", "key_env", "timeout_s", "retries"}
_OPERATION |= {"price_prompt", "price_reply"}
"""Keys of a backend that do not decide what it answers."""
_TOOL_ERRORS = 2
"""Tool calls that may fail before the tools are taken away and the judge is asked afresh with one prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one group may take."""

    tool_calls: int = 6
    repairs: int = 3
    """Replies that may be refused before the judge is given up."""
    tokens: int = 120_000
    """Prompts and replies of all requests together."""
    seconds: float = 300.0
    reply_tokens: int = 1024
    """Limit of one reply."""
    view_chars: int = 24_000
    """Characters that the records of the first prompt should fit into."""


class LLMJudge:
    """Asks a chat model for the shortest segment of the shortest success that solves or avoids a recurring failure.

    Whatever the model or its service does, the answer is a proposal that can be measured, or a ``NoProposal``:

    * ``judge_<cause>``: no answer; ``cause`` is that of the ``ServiceError``, ``deadline``, or ``not_cached``.
    * ``refused_<code>``: answers, but none that could be used after all repairs (``reply.Refusal``).
    * ``orders_disagree``: the two orders named different segments.
    * ``no_contrast``, ``too_short``: there is nothing to judge.

    Args:
        backend: The chat model; ``aclose`` closes it.
        mode: ``agentic`` offers tools; ``single`` asks with one prompt, for small models.
        tools: What is offered.
        max_length: Longest segment, in turns.
        limits: What one group may take.
        temperature: Of the model's sampling.
        two_orders: Ask twice, the second time with the runs in the opposite order, and keep what both name.
        cache: Where judgements are stored; None stores none.
        identity: What stored judgements know the model by; the name of the backend if left out.
    """

    name = "llm"

    def __init__(
        self,
        backend: Backend,
        *,
        mode: Mode = "agentic",
        tools: Sequence[ToolName] = ("search_trajectory", "get_segment"),
        max_length: int = 4,
        limits: Limits | None = None,
        temperature: float = 0.0,
        two_orders: bool = False,
        cache: JudgementCache | None = None,
        identity: str | None = None,
    ) -> None:
        self.backend = backend
        self.mode: Mode = mode
        self.tools = tuple(tools)
        self.max_length = max_length
        self.limits = limits or Limits()
        self.temperature = temperature
        self.two_orders = two_orders
        self.cache = cache
        self.identity = identity or backend.name
        self._tally = Tally()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    def of(cls, config: LLMJudgeConfig, backend: Callable[[], Backend], folder: Path | None) -> Self:
        """The configured judge.

        Args:
            config: Its section.
            backend: Opens the chat model of that section; not called where judgements are replayed.
            folder: Run folder, for judgements that have no file of their own; None stores those nowhere.

        Raises:
            DataError: judgements are to be replayed and there are none, or the file holds something else.
        """
        path = config.cache_path or (None if folder is None else folder / "judge_cache.jsonl")
        cache = None if config.cache == "off" or path is None else JudgementCache(path)
        if cache is not None:
            cache.load(needed=config.cache == "replay")
        return cls(
            Offline() if config.cache == "replay" else backend(),
            identity=config.backend.model_dump_json(exclude=_OPERATION),
            mode=config.mode,
            tools=config.tools,
            max_length=config.max_length,
            limits=Limits(
                tool_calls=config.tool_calls,
                repairs=config.repairs,
                tokens=config.group_tokens,
                seconds=config.group_seconds,
                reply_tokens=config.reply_tokens,
                view_chars=config.view_chars,
            ),
            temperature=config.temperature,
            two_orders=config.two_orders,
            cache=cache,
        )

    @property
    def tokens(self) -> int:
        """Tokens that the model has read and written since the judge was made."""
        return self._tally.total.tokens

    @property
    def repairs(self) -> int:
        """Replies that were sent back since the judge was made."""
        return self._tally.repairs

    def stats(self) -> dict[str, Any]:
        """See ``Tally.drain``."""
        return self._tally.drain()

    async def aclose(self) -> None:
        """Close the backend."""
        await self.backend.aclose()

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """Judge a group, or remember how it was judged; the seed draws labels, order and boundary."""
        if not 0 < group.n_success < len(group.trajectories):
            return NoProposal(reason="no_contrast", detail=f"{group.n_success} of {len(group.trajectories)} succeeded")
        if group.trajectories[choose_success(group)].n_turns < 2:
            return NoProposal(reason="too_short", detail="the success has one turn")
        if not any(run.n_turns for run in group.trajectories if not run.success):
            return NoProposal(reason="no_contrast", detail="no failed run has a turn")
        if self.cache is None:
            return await self._judge(group, seed)
        key = key_of(group, **self._settings())
        # Of equal groups in flight one is judged, the others wait for it.
        async with self._locks.setdefault(key, asyncio.Lock()):
            stored = self.cache.get(key)
            if stored is not None:
                self._tally.counts["cache_hits"] += 1
                return stored
            judgement = await self._judge(group, seed)
            if isinstance(judgement, Proposal) or not judgement.reason.startswith("judge_"):
                self.cache.put(key, judgement, task=group.task.id, model=self.backend.name, seed=seed)
            return judgement

    def _settings(self) -> dict[str, Any]:
        """All that decides a judgement besides the group."""
        limits = self.limits
        return {
            "model": self.identity,
            "prompt": prompt.VERSION,
            "mode": self.mode,
            "tools": self.tools,
            "max_length": self.max_length,
            "temperature": self.temperature,
            "two_orders": self.two_orders,
            "limits": [limits.tool_calls, limits.repairs, limits.tokens, limits.reply_tokens, limits.view_chars],
        }

    async def _judge(self, group: Group, seed: int) -> Proposal | NoProposal:
        account = _Account(limits=self.limits)
        try:
            async with asyncio.timeout(self.limits.seconds) as deadline:
                first = await self._ask_for(View.draw(group, seed), derive(seed, 2), account)
                if not self.two_orders or isinstance(first, NoProposal):
                    return first
                second = await self._ask_for(View.draw(group, seed, reverse=True), derive(seed, 3), account)
        except ServiceError as error:
            return NoProposal(reason=f"judge_{error.cause}", detail=str(error))
        except TimeoutError:
            if not deadline.expired():
                raise
            return NoProposal(reason="judge_deadline", detail=f"no judgement within {self.limits.seconds:g} s")
        if isinstance(second, NoProposal):
            return second
        self._tally.counts["orders_compared"] += 1
        if first.segment == second.segment:
            return first
        self._tally.counts["orders_flipped"] += 1
        named = " and ".join(f"turns {s.start}..{s.end}" for s in (first.segment, second.segment))
        return NoProposal(reason="orders_disagree", detail=named)

    async def _ask_for(self, view: View, seed: int, account: "_Account") -> Proposal | NoProposal:
        """One judgement in one order."""
        self._tally.counts["judged"] += 1
        tools = offered(self.tools) if self.mode == "agentic" and self.limits.tool_calls else ()
        reply = await self._talk(view, tools, seed, account)
        if isinstance(reply, Refusal):
            return NoProposal(reason=f"refused_{reply.code}", detail=reply.detail)
        labels, runs = view.labels, view.group.trajectories
        cited = ", ".join(f"member {runs[labels[e.trajectory]].member} turn {e.turn}" for e in reply.evidence)
        return Proposal(
            segment=Segment(trajectory=view.chosen, start=reply.start_turn, end=reply.end_turn),
            reason=f"{reply.reason} (failure mode: {reply.failure_mode}; evidence: {cited})",
            judge=self.name,
        )

    async def _talk(self, view: View, tools: tuple[Tool, ...], seed: int, account: "_Account") -> Reply | Refusal:
        """The conversation: calls of tools, then a reply, repaired where it cannot be used."""
        counts, calls_left, errors = self._tally.counts, self.limits.tool_calls if tools else 0, 0
        messages = prompt.conversation(
            view, budget=self.limits.view_chars, max_length=self.max_length, tool_calls=calls_left
        )
        lookup = Lookup(view, self.tools)
        while True:
            answer = await self._ask(messages, tools if calls_left else (), view, derive(seed, len(messages)), account)
            if answer is None:
                return Refusal("token_limit", f"{account.usage.tokens} tokens")
            if answer.tool_calls and calls_left:
                messages.append(Message(role="assistant", content=answer.text, tool_calls=answer.tool_calls))
                for call in answer.tool_calls:
                    try:
                        found = lookup.answer(call) if calls_left else "The tools cannot be used any more. Answer now."
                    except WrongCallError as failure:
                        found = str(failure)
                        errors += 1
                        counts["tool_errors"] += 1
                    messages.append(Message(role="tool", content=found, tool_call_id=call.id))
                    counts["tool_calls"] += bool(calls_left)
                    calls_left = max(calls_left - 1, 0)
                if errors >= _TOOL_ERRORS:
                    counts["fallbacks"] += 1
                    return await self._talk(view, (), derive(seed, 0), account)
                continue
            read = self._read(answer, view)
            if isinstance(read, Reply) or account.repairs_left == 0:
                return read
            account.repairs_left -= 1
            counts["repairs"] += 1
            calls_left = 0  # Without tools the backend can hold the model to the schema.
            messages.append(Message(role="assistant", content=answer.text[:4000] or "(nothing)"))
            messages.append(prompt.repair(read, view, self.max_length))

    def _read(self, answer: Answer, view: View) -> Reply | Refusal:
        read = read_reply(answer.text, success=view.success, failures=view.failures, max_length=self.max_length)
        if isinstance(read, Refusal):
            if answer.tool_calls:
                read = Refusal("tool_call", "a tool was called instead of an answer")
            elif answer.finish == "length":
                read = Refusal("cut", f"cut after {self.limits.reply_tokens} tokens")
            self._tally.refused[read.code] += 1
        return read

    async def _ask(
        self, messages: Sequence[Message], tools: tuple[Tool, ...], view: View, seed: int, account: "_Account"
    ) -> Answer | None:
        """One answer; None when the tokens of the group are used up."""
        if account.usage.tokens >= self.limits.tokens:
            return None
        schema = None if tools else reply_schema(success=view.success, failures=view.failures)
        answer = await self.backend.ask(
            Ask(
                messages=tuple(messages),
                tools=tools,
                schema=schema,
                max_tokens=self.limits.reply_tokens,
                temperature=self.temperature,
                seed=seed,
                deadline_s=max(account.ends - time.monotonic(), 0.0),
            )
        )
        account.usage += answer.usage
        self._tally.usage += answer.usage
        return answer


@dataclass(slots=True, kw_only=True)
class _Account:
    """What one group has left."""

    limits: Limits
    repairs_left: int = field(init=False)
    ends: float = field(init=False)
    """Time at which the group's seconds are used up."""
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self.repairs_left = self.limits.repairs
        self.ends = time.monotonic() + self.limits.seconds
