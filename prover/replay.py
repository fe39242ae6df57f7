"""ReplayEnv: snapshots for environments that have none, by doing everything again.

A snapshot is what was done since the reset, with a hash of every answer. Restoring it costs as many steps as it holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.utils import seeding

from prover.errors import EnvError, SnapshotError, UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call after the reset: a step, or a reseed."""

    action: str | None = None
    """The action of a step; None for a reseed."""
    seed: int | None = None
    """The seed of a reseed; None for a step."""
    digest: bytes = b""
    """Hash of a step's observation, reward and flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that was done since the reset, and hashes of what was answered: the snapshot of a ReplayEnv."""

    seed: int
    options: tuple[tuple[str, Any], ...]
    opening: bytes
    """Hash of the first observation."""
    events: tuple[Event, ...] = ()
    done: bool = False


class ReplayEnv(gymnasium.Wrapper[str, str, str, str]):
    """Gives an environment with nothing but the Gymnasium API the snapshots of a ``TextEnv``.

    ``restore`` resets with the recorded seed and options, repeats the recorded actions and compares the hash of every
    observation, reward and flag; the first that differs is a ``SnapshotError``. That needs an environment in which the
    same seed, options and actions give the same answers. Wrappers below it (``TimeLimit`` too) are replayed with it, so
    their counters are right.

    ``state_key`` with ``key="history"`` hashes the task and all actions and answers since the reset: it never calls two
    different states equal, but two ways to the same state have two keys. ``key="observation"`` hashes the last
    observation alone: states that look the same count as the same, as GiGPO's anchor states do.

    ``reseed`` calls the environment's own ``reseed`` where there is one and otherwise replaces its ``np_random``; both
    are recorded and replayed.

    Args:
        env: the environment.
        tasks: ids by split, where the environment has no ``tasks`` of its own.
        key: what ``state_key`` hashes.

    >>> from prover.testing import LineEnv
    >>> env = ReplayEnv(LineEnv())
    >>> _ = env.reset(seed=0, options={"task": "start-2"})
    >>> _ = env.step("right")
    >>> snapshot = env.snapshot()
    >>> _ = env.step("right")
    >>> env.restore(snapshot)[0]
    'You are in cell 3 of 0..9.'
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        *,
        tasks: Mapping[str, Sequence[str]] | None = None,
        key: Literal["history", "observation"] = "history",
    ) -> None:
        super().__init__(env)
        self._tasks = tasks
        self._key = key
        self._seeds = np.random.default_rng()
        self._history: History | None = None
        self._observation = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; without a seed, one is drawn and recorded."""
        if seed is None:
            seed = int(self._seeds.integers(2**31))
        else:
            self._seeds = np.random.default_rng(seed)
        self._history = None
        observation, info = self.env.reset(seed=seed, options=options)
        recorded = tuple(sorted((options or {}).items()))
        self._history = History(seed=seed, options=recorded, opening=_digest(observation))
        self._observation = observation
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act, and record it.

        Raises:
            EnvError: the episode has not begun or has ended.
        """
        history = self._current("step")
        if history.done:
            raise EnvError("expected step() before the end of the episode, got one after it; call reset() or restore()")
        # A step that raises half way leaves no state that could be replayed.
        self._history = None
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observation = observation
        event = Event(action=action, digest=_digest(observation, float(reward), bool(terminated), bool(truncated)))
        self._record(history, event, done=bool(terminated or truncated))
        return observation, float(reward), terminated, truncated, info

    def reseed(self, seed: int) -> None:
        """Give what follows a random stream of its own."""
        history = self._current("reseed")
        if self.env.has_wrapper_attr("reseed"):
            self.env.get_wrapper_attr("reseed")(seed)
        else:
            self.env.unwrapped.np_random = seeding.np_random(seed)[0]
        self._record(history, Event(seed=seed), done=history.done)

    def snapshot(self) -> History:
        """What was done since the reset."""
        return self._current("snapshot")

    def restore(self, snapshot: History) -> tuple[str, dict[str, Any]]:
        """Do it all again.

        Raises:
            SnapshotError: it is no snapshot of a ReplayEnv, or an answer differs from the recorded one.
        """
        if not isinstance(snapshot, History):
            raise SnapshotError(f"expected a History, got {type(snapshot).__name__}; restore a value of snapshot()")
        observation, info = self.reset(seed=snapshot.seed, options=dict(snapshot.options) or None)
        self._compare(self._current("restore").opening, snapshot.opening, f"reset(seed={snapshot.seed})", observation)
        for number, event in enumerate(snapshot.events, 1):
            if event.action is None:
                self.reseed(event.seed or 0)
                continue
            observation, _, _, _, info = self.step(event.action)
            call = f"step {number} ({event.action[:80]!r})"
            self._compare(self._current("restore").events[-1].digest, event.digest, call, observation)
        return observation, info

    def state_key(self) -> str:
        """Hash of the history or of the last answer; seeds are left out of both."""
        history = self._current("state_key")
        if self._key == "observation":
            return _digest(self._observation).hex()
        steps = [(event.action, event.digest) for event in history.events if event.action is not None]
        return _digest(history.options, history.opening, steps).hex()

    def tasks(self, split: str) -> Sequence[str]:
        """Ids of the tasks of a split.

        Raises:
            UnknownNameError: there is no such split.
        """
        if self._tasks is not None:
            if split not in self._tasks:
                raise UnknownNameError(f"expected a split of {sorted(self._tasks)}, got {split!r}; name one of these")
            return self._tasks[split]
        if self.env.has_wrapper_attr("tasks"):
            listed: Sequence[str] = self.env.get_wrapper_attr("tasks")(split)
            return listed
        raise UnknownNameError(
            f"expected tasks of the split {split!r}, got an environment that lists none; give ReplayEnv(env, tasks=...)"
        )

    def _current(self, call: str) -> History:
        if self._history is None:
            raise EnvError(f"expected a running episode at {call}(), got none; call reset() or restore()")
        return self._history

    def _record(self, history: History, event: Event, *, done: bool) -> None:
        self._history = History(
            seed=history.seed,
            options=history.options,
            opening=history.opening,
            events=(*history.events, event),
            done=done,
        )

    def _compare(self, got: bytes, recorded: bytes, call: str, observation: str) -> None:
        if got != recorded:
            self._history = None
            raise SnapshotError(
                f"expected {call} to answer as it was recorded, got another answer ({observation[:200]!r}); make the "
                "environment answer the same to the same seed, task and actions, or do without its snapshots"
            )


def _digest(*values: Any) -> bytes:
    """Hash of plain values; text may hold any character."""
    return blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()
