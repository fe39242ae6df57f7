"""Sixteen decisions of which two matter: a problem whose every value is known in closed form.

Each decision has four actions. At two pivotal ones a single action is right; everywhere else one action slips and costs
5% of the success rate. The episode succeeds with probability .02, .10 or .95 for 0, 1 or 2 pivots taken right, times
.95 for each slip. So the outcome hangs on two of sixteen turns, and what a policy is worth at any point of an episode
can be computed exactly: estimates of it can be checked, and methods compared without noise in the yardstick.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import gymnasium
import numpy as np
from numpy.typing import NDArray

from prover.errors import EnvError, SnapshotError, UnknownNameError
from prover.seeds import generator
from prover.spaces import UnicodeText

DECISIONS = 16
"""Turns of an episode, T."""
ACTIONS = 4
"""Actions of a decision, A."""
PIVOTS = 2
"""Pivotal decisions of a task."""
RATES = (0.02, 0.10, 0.95)
"""Success rate by the number of pivots taken right."""
SLIP = 0.95
"""What a slip leaves of the success rate."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pivots:
    """Any number of tasks at once: arrays of shape (..., T)."""

    right: Ints
    """The right action of each decision, which counts at pivotal ones."""
    slip: Ints
    """The action that slips, at the others."""
    pivotal: NDArray[np.bool_]

    @classmethod
    def draw(cls, rng: np.random.Generator, scores: Floats) -> Self:
        """Tasks with pivots at random places.

        Args:
            rng: Draws the places.
            scores: How good each action is, shape (..., T, A): the best one is right, the worst one slips.
        """
        pivotal = np.zeros(scores.shape[:-1], np.bool_)
        order = rng.random(scores.shape[:-1]).argsort(-1)
        np.put_along_axis(pivotal, order[..., :PIVOTS], True, -1)
        return cls(right=scores.argmax(-1), slip=scores.argmin(-1), pivotal=pivotal)

    def values(self, actions: Ints, probabilities: Floats) -> Floats:
        """Exact success rate after each prefix of episodes, shape (..., G, T + 1); the last is that of what was done.

        Args:
            actions: What G episodes of each task did, shape (..., G, T).
            probabilities: Of the policy that goes on, shape (..., T, A).
        """
        right = np.take_along_axis(probabilities, self.right[..., None], -1)[..., 0]
        slips = np.take_along_axis(probabilities, self.slip[..., None], -1)[..., 0]
        kept = np.where(self.pivotal, 1.0, 1 - (1 - SLIP) * slips)
        ahead = np.ones((*right.shape[:-1], DECISIONS + 1))
        chances = np.zeros((*ahead.shape, PIVOTS + 1))  # of 0, 1, 2 pivots taken right from here on
        chances[..., DECISIONS, 0] = 1
        for t in range(DECISIONS - 1, -1, -1):
            ahead[..., t] = ahead[..., t + 1] * kept[..., t]
            hit = np.where(self.pivotal[..., t], right[..., t], 0.0)[..., None]
            later = chances[..., t + 1, :]
            chances[..., t, :] = later * (1 - hit)
            chances[..., t, 1:] += later[..., :-1] * hit
        taken, slipped = self.taken(actions)
        counts = np.minimum(taken[..., None] + np.arange(PIVOTS + 1), PIVOTS)
        rates = (chances[..., None, :, :] * np.asarray(RATES)[counts]).sum(-1)
        return np.asarray(slipped * ahead[..., None, :] * rates, np.float64)

    def taken(self, actions: Ints) -> tuple[Ints, Floats]:
        """Pivots taken right, and what slips left, after each prefix; both of shape (..., G, T + 1)."""
        hits = (actions == self.right[..., None, :]) & self.pivotal[..., None, :]
        slips = (actions == self.slip[..., None, :]) & ~self.pivotal[..., None, :]
        taken = np.zeros((*actions.shape[:-1], DECISIONS + 1), np.int64)
        left = np.ones(taken.shape)
        taken[..., 1:] = hits.cumsum(-1)
        left[..., 1:] = np.where(slips, SLIP, 1.0).cumprod(-1)
        return taken, left


class PivotState(NamedTuple):
    """All that changes in a PivotEnv: its snapshot."""

    task: str
    actions: tuple[int, ...]
    chance: float
    """A number below the success rate makes the episode a success; drawn at reset and by ``reseed``."""
    invalid: bool = False


class PivotEnv(gymnasium.Env[str, str]):
    """One task of this kind as an environment; actions ``0`` to ``3``, reward 1 with the rate that was earned.

    Nothing tells which decision is pivotal. Tasks are numbered; each number fixes pivots and actions. The splits have
    100 tasks each and share none.

    >>> env = PivotEnv()
    >>> env.reset(seed=0, options={"task": "pivots-3"})[0]
    'Decision 1 of 16.'
    >>> env.step("2")[0]
    'Decision 2 of 16.'
    """

    SPLITS = ("train", "test")

    def __init__(self) -> None:
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self._state: PivotState | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start the task of ``options["task"]``, or a random one of the training split.

        Raises:
            UnknownNameError: there is no such task.
        """
        super().reset(seed=seed)
        task = (options or {}).get("task") or f"pivots-{self.np_random.integers(100)}"
        if task not in (*self.tasks("train"), *self.tasks("test")):
            raise UnknownNameError(f"expected a task of pivots-0..pivots-199, got {task!r}; see tasks(split)")
        self._state = PivotState(task=task, actions=(), chance=float(self.np_random.random()))
        return self._observation(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Decide.

        Raises:
            EnvError: the episode has not begun or has ended.
        """
        state = self._current("step")
        if len(state.actions) == DECISIONS:
            raise EnvError("expected step() before the end of the episode, got one after it; call reset() or restore()")
        valid = action in map(str, range(ACTIONS))
        actions = (*state.actions, int(action)) if valid else state.actions
        self._state = state._replace(actions=actions, invalid=not valid)
        info = self._info()
        return self._observation(), float(info["success"]), len(actions) == DECISIONS, False, info

    def snapshot(self) -> PivotState:
        """Task, actions so far, and the number that decides in the end."""
        return self._current("snapshot")

    def restore(self, snapshot: PivotState) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back.

        Raises:
            SnapshotError: it is no snapshot of a PivotEnv.
        """
        if not isinstance(snapshot, PivotState):
            raise SnapshotError(f"expected a PivotState, got {type(snapshot).__name__}; restore a value of snapshot()")
        self._state = snapshot
        return self._observation(), self._info()

    def reseed(self, seed: int) -> None:
        """Draw anew what will decide between success and failure."""
        self._state = self._current("reseed")._replace(chance=float(generator(seed).random()))

    def state_key(self) -> str:
        """Hash of task and actions so far."""
        state = self._current("state_key")
        return blake2b(f"{state.task} {state.actions}".encode(), digest_size=16).hexdigest()

    def tasks(self, split: str) -> Sequence[str]:
        """``pivots-0`` to ``pivots-99`` for training, the next hundred for tests.

        Raises:
            UnknownNameError: there is no such split.
        """
        if split not in self.SPLITS:
            raise UnknownNameError(f"expected a split of {self.SPLITS}, got {split!r}; name one of these")
        first = 100 * self.SPLITS.index(split)
        return tuple(f"pivots-{number}" for number in range(first, first + 100))

    @staticmethod
    def pivots(task: str) -> Pivots:
        """What is right in a task, arrays of shape (T,)."""
        rng = generator(int(task.removeprefix("pivots-")))
        return Pivots.draw(rng, rng.random((DECISIONS, ACTIONS)))

    def _current(self, call: str) -> PivotState:
        if self._state is None:
            raise EnvError(f"expected reset() or restore() before {call}(), got neither; call one of them first")
        return self._state

    def _observation(self) -> str:
        done = len(self._current("observation").actions)
        return "The end." if done == DECISIONS else f"Decision {done + 1} of {DECISIONS}."

    def _info(self) -> dict[str, Any]:
        state = self._current("info")
        ended = len(state.actions) == DECISIONS
        success = False
        if ended:
            taken, left = self.pivots(state.task).taken(np.array([state.actions]))
            success = state.chance < RATES[int(taken[0, -1])] * float(left[0, -1])
        return {
            "success": success,
            "admissible_actions": [] if ended else [str(action) for action in range(ACTIONS)],
            "invalid_action": state.invalid,
        }
