"""Walks through an environment, and what it answered on the way."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from prover.errors import EnvError
from prover.host import EnvFactory
from prover.protocols import TextEnv
from prover.seeds import generator

DEPTH = 12
"""Most actions of a walk."""
TRIES = 8
"""Most random walks in search of a long one, or of an end."""
_CONTRACT_INFO = ("success", "admissible_actions", "invalid_action", "task_type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that the contract fixes about the answer to one call, and the state after it."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    """The keys that the contract knows."""
    state_key: str

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self.terminated or self.truncated


ANSWER = tuple(field.name for field in fields(Answer))


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A task, actions and what an undisturbed instance answered to them."""

    task: str
    seed: int
    actions: tuple[str, ...]
    answers: tuple[Answer, ...]
    """To reset, then to each action: one more than actions."""

    @property
    def depths(self) -> tuple[int, ...]:
        """Numbers of actions after which snapshots are tried: before the first, early, late, before the last."""
        n = len(self.actions)
        return tuple(sorted({0, min(1, n - 1), n // 2, n - 1}))


def contract_info(info: dict[str, Any]) -> dict[str, Any]:
    """The keys of an info that the contract knows."""
    return {key: info[key] for key in _CONTRACT_INFO if key in info}


def start(env: TextEnv, task: str, seed: int) -> Answer:
    """Reset to a task."""
    observation, info = env.reset(seed=seed, options={"task": task})
    return Answer(
        observation=observation,
        reward=0.0,
        terminated=False,
        truncated=False,
        info=contract_info(info),
        state_key=env.state_key(),
    )


def act(env: TextEnv, action: str) -> Answer:
    """One step."""
    observation, reward, terminated, truncated, info = env.step(action)
    return Answer(
        observation=observation,
        reward=float(reward),
        terminated=bool(terminated),
        truncated=bool(truncated),
        info=contract_info(info),
        state_key=env.state_key(),
    )


def follow(env: TextEnv, actions: Sequence[str]) -> list[Answer]:
    """Step after step, to the end of the actions or of the episode."""
    answers: list[Answer] = []
    for action in actions:
        answers.append(act(env, action))
        if answers[-1].over:
            break
    return answers


def difference(
    expected: Sequence[Answer], got: Sequence[Answer], names: Sequence[str] = ANSWER, *, first: int = 0
) -> str | None:
    """The first thing that differs between two runs of the same actions, in words; None if nothing does.

    Args:
        expected: answers of the one run.
        got: answers of the other.
        names: what to compare.
        first: number of actions before the first answer.
    """
    for number, (one, two) in enumerate(zip(expected, got, strict=False), first):
        for name in names:
            wanted, found = getattr(one, name), getattr(two, name)
            if wanted != found:
                return f"expected {name} {_short(wanted)} after {number} actions, got {_short(found)}"
    if len(expected) != len(got):
        return f"expected the end after {first + len(expected) - 1} actions, got it after {first + len(got) - 1}"
    return None


def random_walk(env: TextEnv, task: str, seed: int, actions: Sequence[str] = (), *, limit: int = DEPTH) -> Walk:
    """Reset, then draw among ``actions``, or else among the admissible ones, to the limit or to the end.

    Raises:
        EnvError: the environment names no admissible actions and none were given.
    """
    rng = generator(seed)
    answers = [start(env, task, seed)]
    taken: list[str] = []
    while len(taken) < limit and not answers[-1].over:
        choices = actions or answers[-1].info.get("admissible_actions")
        if not choices:
            raise EnvError(
                "expected info['admissible_actions'] or a list of actions to walk with, got neither; "
                "give check_text_env(..., actions=[...])"
            )
        taken.append(choices[int(rng.integers(len(choices)))])
        answers.append(act(env, taken[-1]))
    return Walk(task=task, seed=seed, actions=tuple(taken), answers=tuple(answers))


def longest_walk(factory: EnvFactory, tasks: Sequence[str], seed: int, actions: Sequence[str]) -> Walk:
    """The random walk that ends latest among a few, each in a fresh instance; the first that does not end."""
    walks: list[Walk] = []
    for number in range(TRIES):
        with instance(factory) as env:
            walks.append(random_walk(env, tasks[number % len(tasks)], seed + number, actions))
        if not walks[-1].answers[-1].over:
            return walks[-1]
    return max(walks, key=lambda walk: len(walk.actions))


@contextmanager
def instance(factory: EnvFactory) -> Iterator[TextEnv]:
    """A fresh environment for the time of a ``with`` block."""
    env = factory()
    try:
        yield env
    finally:
        env.close()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."
