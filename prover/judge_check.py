"""Asks a judge about one known group and shows, step by step, what was said: the first thing to run with a new key."""

import asyncio
from collections.abc import Callable
from typing import Any

from prover import build
from prover.attribution import Attribution
from prover.chat import Answer, Ask
from prover.credit import CreditRule
from prover.errors import ServiceError
from prover.judge_config import JudgeConfig
from prover.protocols import Backend, Judge
from prover.records import EndReason, Group, Task, Trajectory, Turn
from prover.segments import choose_success

_SHOWN = 600
"""Characters of a message that are shown."""
_TASK = Task(id="shed", split="check")
_OPENING = (
    "You are in a yard. There are a shed, a porch and a well.\n\nYour task is to: bring the lantern from the shed."
)
_LOCKED = "The shed is locked."
PIVOT = 2
"""The turn of the success that no failure has: it takes the key."""


def known_group() -> Group:
    """Three runs made up for this purpose: who does not take the key from the porch stands before a locked shed."""
    won = _run(
        0,
        True,
        ("look at well", "The well is dry."),
        ("go to porch", "On the porch hangs an iron key."),
        ("take iron key", "You have the iron key."),
        ("open shed", "You turn the key. The shed is open. Inside is a lantern."),
        ("take lantern", "You have the lantern. The task is done."),
    )
    hasty = _run(1, False, ("open shed", _LOCKED), ("knock on shed", "Nobody answers."), ("open shed", _LOCKED))
    idle = _run(
        2,
        False,
        ("look at well", "The well is dry."),
        ("go to porch", "On the porch hangs an iron key."),
        ("open shed", _LOCKED),
        ("go to well", "You are at the well."),
        ("open shed", _LOCKED),
    )
    return Group(index=0, task=_TASK, trajectories=(hasty, won, idle))


def check(config: JudgeConfig, write: Callable[[str], None]) -> bool:
    """Ask the configured judge about the known group.

    Args:
        config: Section of the judge. Judgements are neither stored nor remembered.
        write: Takes the lines of the account.

    Returns:
        Whether the judge made a proposal that can be measured.

    Raises:
        ConfigError: The judge cannot be made.
    """
    if "cache" in type(config).model_fields:
        config = config.model_copy(update={"cache": "off"})
    judge = build.judge(config)
    if (backend := getattr(judge, "backend", None)) is not None:
        judge.backend = _Told(backend, write)  # type: ignore[attr-defined]  # judges that ask a model have one
        write(f"Asking {backend.name} about a made-up group of three runs, one of which succeeded.")
    return asyncio.run(_ask(judge, write))


async def _ask(judge: Judge, write: Callable[[str], None]) -> bool:
    group = known_group()
    # As a run asks it, and takes its answer: whatever it does, the account is written to the end.
    attribution = Attribution(judge=judge, verifier=None, rule=CreditRule())
    try:
        verdict = (await attribution.judge_groups([group], seed=0))[0]
        if (stats := getattr(judge, "stats", None)) is not None:
            write("Taken: " + ", ".join(f"{name} {value}" for name, value in stats().items() if value))
    finally:
        if hasattr(judge, "aclose"):
            await judge.aclose()
    if verdict.outcome == "judge_failed":
        write(f"The judge {judge.name} failed: {verdict.detail.strip().rpartition(chr(10))[2]}")
        return False
    if verdict.proposal is None:
        write(f"No proposal: {verdict.outcome.removeprefix('no_proposal:')}. {verdict.detail}")
        return False
    segment = verdict.proposal.segment
    named = f"turns {segment.start} to {segment.end} of trajectory {segment.trajectory}"
    if verdict.outcome != "trusted":
        write(f"A proposal that cannot be measured: {named}, {verdict.outcome.removeprefix('invalid_proposal:')}.")
        return False
    run = group.trajectories[segment.trajectory]
    actions = "; ".join(f"{turn} {run.turns[turn].action}" for turn in range(segment.start, segment.end + 1))
    write(f"Proposal: turns {segment.start} to {segment.end} ({actions}).")
    write(f"Reason: {verdict.proposal.reason}")
    right = run.success and segment.start <= PIVOT <= segment.end
    decisive = group.trajectories[choose_success(group)].turns[PIVOT].action
    write(f"The decisive turn is {PIVOT} ({decisive}): the judge {'found' if right else 'missed'} it.")
    return True


class _Told:
    """A backend that tells what goes through it."""

    def __init__(self, backend: Backend, write: Callable[[str], None]) -> None:
        self.name = backend.name
        self._backend = backend
        self._write = write
        self._told = 0

    async def ask(self, ask: Ask) -> Answer:
        """Tell the messages that are new, then the answer or why there is none."""
        if len(ask.messages) <= self._told:  # A new conversation.
            self._told = 0
        for message in ask.messages[self._told :]:
            if message.role != "assistant":  # Those were told as answers.
                self._write(f"[{message.role}] {_abridged(message.content)}")
        self._told = len(ask.messages)
        tools = ", ".join(tool.name for tool in ask.tools) or "none"
        self._write(f"-> tools: {tools}; schema: {'yes' if ask.schema else 'no'}; at most {ask.max_tokens} tokens")
        try:
            answer = await self._backend.ask(ask)
        except ServiceError as error:
            self._write(f"<- no answer ({error.cause}): {error}")
            raise
        self._write(f"[assistant] {_abridged(answer.text) or '(no text)'}")
        for call in answer.tool_calls:
            self._write(f"  calls {call.name}({_abridged(call.arguments)})")
        usage = answer.usage
        spent = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens, {usage.seconds:.1f} s"
        self._write(f"<- {answer.finish}; {spent}" + (f", cost {usage.cost:.6f}" if usage.cost else ""))
        return answer

    async def aclose(self) -> None:
        """Close the backend."""
        await self._backend.aclose()


def _abridged(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # Halves of a character cannot be printed.
    half = _SHOWN // 2
    return text if len(text) <= _SHOWN else f"{text[:half]} [...] {text[-half:]}"


def _run(member: int, success: bool, *steps: tuple[str, str]) -> Trajectory:
    turns: list[Any] = [Turn(text=action, action=action, result=result, reward=0.0) for action, result in steps]
    return Trajectory(
        task=_TASK,
        member=member,
        seed=0,
        policy_version=0,
        opening=_OPENING,
        turns=tuple(turns),
        rows=(),
        reward=float(success),
        success=success,
        end=EndReason.DONE if success else EndReason.TURN_CAP,
    )
