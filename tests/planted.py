"""Environments with one fault each, for the tests of hosts and checks; importable in worker processes too."""

import copy
import itertools
import json
import math
import os
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding

from prover.errors import EnvError, UnknownNameError
from prover.spaces import UnicodeText
from prover.testing import LineEnv


class Bag(gymnasium.Env[str, str]):
    """Keeps the contract, with mutable state: ``take`` fills the bag, ``toss`` tosses a coin, ``leave`` ends."""

    start: ClassVar[dict[str, list[str]]] = {"empty": [], "one": ["pen"], "two": ["pen", "cup"]}

    def __init__(self) -> None:
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self.bag: list[str] = []
        self.steps = 0
        self.done = False
        self.last = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        task = (options or {}).get("task") or "empty"
        if task not in self.start:
            raise UnknownNameError(task)
        self.bag = list(self.start[task])
        self.steps, self.done, self.last = 0, False, "A bag."
        return self.last, self.info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.done:
            raise EnvError("the episode has ended")
        self.steps += 1
        self.last = self.answer(action)
        return self.last, float(self.done), self.done, False, self.info()

    def answer(self, action: str) -> str:
        if action == "take":
            self.bag.append(f"coin {len(self.bag)}")
        elif action == "toss":
            return "heads" if self.np_random.random() < 0.5 else "tails"
        elif action == "leave":
            self.done = True
        else:
            return "Nothing happens."
        return f"In the bag: {', '.join(self.bag)}."

    def info(self) -> dict[str, Any]:
        return {"success": self.done, "admissible_actions": ["take", "toss"]}

    def snapshot(self) -> Any:
        generator = json.dumps(self.np_random.bit_generator.state)
        return {"bag": list(self.bag), "rest": (self.steps, self.done, self.last), "generator": generator}

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        self.bag = list(snapshot["bag"])
        self.steps, self.done, self.last = snapshot["rest"]
        self._np_random, _ = seeding.np_random(0)
        self._np_random.bit_generator.state = json.loads(snapshot["generator"])
        return self.last, self.info()

    def state_key(self) -> str:
        return blake2b(repr((self.bag, self.done)).encode()).hexdigest()

    def tasks(self, split: str) -> Sequence[str]:
        if split != "train":
            raise UnknownNameError(split)
        return list(self.start)


class ClassState(Bag):
    """The bag belongs to the class."""

    shared: ClassVar[list[str]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        answer = super().reset(seed=seed, options=options)
        self.shared[:] = self.bag
        self.bag = self.shared
        return answer


class MutableDefault(Bag):
    """The bag is a default argument."""

    def __init__(self, bag: list[str] = []) -> None:  # noqa: B006 - the planted fault
        super().__init__()
        self.mine = bag

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        answer = super().reset(seed=seed, options=options)
        self.mine[:] = self.bag
        self.bag = self.mine
        return answer


class ShallowCopy(Bag):
    """The snapshot holds the bag itself."""

    def snapshot(self) -> Any:
        return copy.copy(super().snapshot()) | {"bag": self.bag}


class SharedByRestore(Bag):
    """Whoever restores a snapshot fills its bag."""

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        answer = super().restore(snapshot)
        self.bag = snapshot["bag"]
        return answer


class ForgottenRng(Bag):
    """The snapshot lacks the RNG."""

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        before = self._np_random
        answer = super().restore(snapshot)
        self._np_random = before or seeding.np_random(0)[0]
        return answer


class ForgottenCounter(Bag):
    """The snapshot lacks the number of steps, and the episode ends after 40."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated or self.steps >= 40, False, info

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        steps = self.steps
        answer = super().restore(snapshot)
        self.steps = steps
        return answer


class SideEffect(Bag):
    """Taking a snapshot draws from the RNG."""

    def snapshot(self) -> Any:
        self.np_random.random()
        return super().snapshot()


class Unpicklable(Bag):
    """The snapshot holds a function."""

    def snapshot(self) -> Any:
        return super().snapshot() | {"again": lambda: None}


class IgnoresSeed(Bag):
    """Reset draws from the machine's entropy."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        answer = super().reset(seed=seed, options=options)
        self._np_random = np.random.default_rng()
        return answer


class NextTask(Bag):
    """Without a seed or with, reset goes to the next of ten tasks and shuffles what is in sight."""

    start: ClassVar[dict[str, list[str]]] = {f"t{number}": [] for number in range(10)}

    def __init__(self) -> None:
        super().__init__()
        self.shuffler = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        task = (options or {}).get("task") or "t0"
        _, info = super().reset(seed=seed, options={"task": task})
        self.last = "You see " + ", ".join(self.shuffler.permutation(["a mug", "a pan", "a cup"])) + "."
        return self.last, info


class LocalSnapshot(Bag):
    """A snapshot is a number that only this instance understands."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[Any] = []

    def snapshot(self) -> Any:
        self.saved.append(super().snapshot())
        return len(self.saved) - 1

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        return super().restore(self.saved[snapshot])


class HashKey(Bag):
    """The state key differs from process to process."""

    def state_key(self) -> str:
        return str(hash(repr(self.bag)))


class ForgottenAnswer(Bag):
    """Restoring shows another text than the last answer."""

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        return "A bag, restored.", super().restore(snapshot)[1]


class GoesOnAfterEnd(Bag):
    """A finished episode can be stepped."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.done = False
        return super().step(action)


class RefusesOddText(Bag):
    """A lone surrogate raises."""

    def answer(self, action: str) -> str:
        return super().answer(action.encode().decode())


class NoSuccess(Bag):
    """No ``success`` in info."""

    def info(self) -> dict[str, Any]:
        return {"admissible_actions": ["take", "toss"]}


class Unsorted(Bag):
    """Admissible actions in no order."""

    def info(self) -> dict[str, Any]:
        return super().info() | {"admissible_actions": ["toss", "take"]}


class Narrow(Bag):
    """Observations longer than their space allows."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = UnicodeText(max_length=12)


class NotANumber(Bag):
    """The reward is not a number."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, _, *rest = super().step(action)
        return observation, math.nan, *rest  # type: ignore[return-value]  # the rest is as it was


class NumpyFlags(Bag):
    """Flags of another type than bool."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, np.bool_(terminated), truncated, info  # type: ignore[return-value]  # the fault


class UnstableTasks(Bag):
    """Tasks are listed in another order each time."""

    calls = itertools.count()

    def tasks(self, split: str) -> Sequence[str]:
        return sorted(super().tasks(split), reverse=next(self.calls) % 2 == 1)


class AnyTask(Bag):
    """An unknown task is taken for the first."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        known = (options or {}).get("task") in self.start
        return super().reset(seed=seed, options=options if known else None)


class CutsItself(Bag):
    """Truncates after five steps."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, _, info = super().step(action)
        self.done = self.done or self.steps >= 5
        return observation, reward, terminated, self.steps >= 5, info


class RestlessReseed(Bag):
    """Reseeding with the same seed gives another stream each time."""

    counter = itertools.count()

    def reseed(self, seed: int) -> None:
        self._np_random, _ = seeding.np_random(seed + next(self.counter))


class NoSnapshot(gymnasium.Env[str, str]):
    """Nothing but the Gymnasium API: LineEnv without its snapshots. Its RNG decides whether ``toss`` moves right."""

    def __init__(self) -> None:
        self.line = LineEnv()
        self.observation_space = self.line.observation_space
        self.action_space = self.line.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return self.line.reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "toss":
            action = "right" if self.np_random.random() < 0.5 else "look"
        return self.line.step(action)


class Unrepeatable(NoSnapshot):
    """Counts its resets in the text."""

    resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        self.resets += 1
        observation, info = super().reset(seed=seed, options=options)
        return f"{observation} ({self.resets})", info


class TimeLimited(gymnasium.wrappers.TimeLimit):
    """Gymnasium's TimeLimit around LineEnv, with the calls of the contract passed through."""

    def __init__(self, max_episode_steps: int = 10) -> None:
        super().__init__(LineEnv(), max_episode_steps)
        self.line: Any = self.env

    def snapshot(self) -> Any:
        return self.line.snapshot()

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        answer: tuple[str, dict[str, Any]] = self.line.restore(snapshot)
        return answer

    def state_key(self) -> str:
        return str(self.line.state_key())

    def tasks(self, split: str) -> Sequence[str]:
        tasks: Sequence[str] = self.line.tasks(split)
        return tasks


class Failing(LineEnv):
    """Fails in one call: raises, sleeps, exits or is interrupted.

    Args:
        call: ``make``, ``reset``, ``step``, ``snapshot`` or ``restore``.
        how: ``raise``, ``sleep``, ``exit`` or ``interrupt``.
        after: how often the call works before it fails.
        seconds: how long to sleep.
    """

    def __init__(self, call: str, how: str = "raise", after: int = 0, seconds: float = 3600.0) -> None:
        super().__init__()
        self.call, self.how, self.left, self.seconds = call, how, after, seconds
        self.fail("make")

    def fail(self, call: str) -> None:
        if call != self.call:
            return
        self.left -= 1
        if self.left >= 0:
            return
        if self.how == "raise":
            raise ValueError(f"planted in {call}")
        if self.how == "exit":
            os._exit(3)
        if self.how == "interrupt":
            raise KeyboardInterrupt
        time.sleep(self.seconds)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        self.fail("reset")
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.fail("step")
        return super().step(action)

    def snapshot(self) -> Any:
        self.fail("snapshot")
        return super().snapshot()

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        self.fail("restore")
        return super().restore(snapshot)

    def close(self) -> None:
        self.fail("close")


class Counting(LineEnv):
    """Counts the steps of all its kind in the process; cannot tell how many if it is ``mute``."""

    counted: ClassVar[int] = 0

    def __init__(self, *, mute: bool = False) -> None:
        super().__init__()
        self.mute = mute

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        Counting.counted += 1
        return super().step(action)

    def stats(self) -> dict[str, float]:
        if self.mute:
            raise ValueError("lost count")
        found, Counting.counted = Counting.counted, 0
        return {"steps": float(found)} if found else {}
