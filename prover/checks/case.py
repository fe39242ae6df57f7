"""What the rules are tried on, and how a rule says that it is broken."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from prover.checks.walk import Answer, Walk, act, contract_info, difference, follow, start
from prover.errors import EnvError
from prover.host import EnvFactory
from prover.protocols import TextEnv

COMPLETE = "put all that changes into the snapshot (position, counters, flags, last answer, RNG), and restore all of it"
SHOWN = ("observation", "info", "state_key")


class Broken(Exception):  # noqa: N818 - a verdict on an environment
    """A rule is broken; the message says what was expected, what was got and what to do."""


class Skipped(Exception):  # noqa: N818 - a verdict on an environment
    """A rule cannot be tried; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the rules are tried on."""

    factory: EnvFactory
    tasks: Sequence[str]
    split: str | None
    """Split of the tasks; None where they were given by hand."""
    seed: int
    actions: Sequence[str]
    """Actions to walk with; empty for the admissible ones."""
    ending: Sequence[str] | None
    """Actions that end the first task, where they are known."""
    walk: Walk

    @property
    def other_task(self) -> str:
        """A task other than the walk's, if there is one."""
        return next((task for task in self.tasks if task != self.walk.task), self.walk.task)


def take_snapshots(env: TextEnv, walk: Walk) -> list[tuple[int, Any]]:
    """Take the walk; returns (number of actions before, snapshot) at each of its depths."""
    start(env, walk.task, walk.seed)
    taken: list[tuple[int, Any]] = []
    for depth, action in enumerate(walk.actions):
        if depth in walk.depths:
            taken.append((depth, env.snapshot()))
        act(env, action)
    return taken


def expect_continuation(env: TextEnv, snapshot: Any, walk: Walk, depth: int, how: str) -> None:
    """Restore a snapshot taken after ``depth`` actions and go on as the walk did.

    Raises:
        Broken: something differs from the walk.
    """
    observation, info = env.restore(snapshot)
    restored = replace(
        walk.answers[depth], observation=observation, info=contract_info(info), state_key=env.state_key()
    )
    found = difference([walk.answers[depth]], [restored], SHOWN, first=depth)
    if found is None:
        found = difference_after(walk, depth, follow(env, walk.actions[depth:]))
    if found:
        raise Broken(f"{found}, when the snapshot taken after {depth} actions was restored {how}; {COMPLETE}")


def difference_after(walk: Walk, depth: int, got: Sequence[Answer]) -> str | None:
    """The first thing that differs from what the walk got after ``depth`` actions."""
    return difference(walk.answers[depth + 1 :], got, first=depth + 1)


def expect_refusal(env: TextEnv, action: str, when: str) -> None:
    """Step a finished episode.

    Raises:
        Broken: it does not raise ``EnvError``.
    """
    try:
        answer = env.step(action)
    except EnvError:
        return
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise Broken(f"expected step() {when} to raise EnvError, got {got}; raise prover.errors.EnvError") from error
    raise Broken(f"expected step() {when} to raise EnvError, got {answer}; remember the end and raise")
