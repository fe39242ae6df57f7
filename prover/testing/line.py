"""LineEnv: walk along ten cells to the last one."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import gymnasium

from prover.errors import EnvError, SnapshotError, UnknownNameError
from prover.records import Trajectory
from prover.spaces import UnicodeText

LAST_CELL = 9
ACTIONS = ("left", "look", "right")
TASKS = tuple(f"start-{cell}" for cell in range(LAST_CELL))


class LineState(NamedTuple):
    """All that changes in a LineEnv: its snapshot."""

    cell: int
    steps: int
    """Actions taken since reset."""
    done: bool
    invalid: bool = False
    """Whether the last action was none of the three: its answer is the current observation."""


def pivots(trajectory: Trajectory) -> list[int]:
    """The turns that bring a stored episode nearer to the last cell than it was before, for an ``OracleJudge``."""
    farthest, found = -1, []
    for turn, said in enumerate(trajectory.turns):
        farthest = max(farthest, said.snapshot.cell)
        if said.action == "right" and said.snapshot.cell == farthest:
            found.append(turn)
    return found


class LineEnv(gymnasium.Env[str, str]):
    """Cells 0..9 in a line; ``left``, ``right`` and ``look``; reward 1 and the end at cell 9.

    The task ``start-3`` begins in cell 3. Moving left in cell 0 stays there. An unknown action answers
    ``Nothing happens.`` Every split lists all nine tasks. Nothing is random but the task of a ``reset`` without one, so
    the snapshot holds no RNG. ``state_key`` leaves out the number of steps: every visit to a cell is the same state.

    >>> env = LineEnv()
    >>> env.reset(seed=0, options={"task": "start-8"})[0]
    'You are in cell 8 of 0..9.'
    >>> env.step("jump")[0]
    'Nothing happens.'
    >>> observation, reward, terminated, truncated, info = env.step("right")
    >>> observation, reward, terminated, truncated, info["success"]
    ('You are in cell 9 of 0..9.', 1.0, True, False, True)
    """

    SPLITS = ("train", "test")

    def __init__(self) -> None:
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self._state: LineState | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start in the cell of ``options["task"]``, or in a random one.

        Raises:
            UnknownNameError: there is no such task.
        """
        super().reset(seed=seed)
        task = (options or {}).get("task") or TASKS[int(self.np_random.integers(len(TASKS)))]
        if task not in TASKS:
            raise UnknownNameError(f"expected a task of start-0..start-8, got {task!r}; see LineEnv().tasks('train')")
        self._state = LineState(cell=TASKS.index(task), steps=0, done=False)
        return self._observation(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Move or look.

        Raises:
            EnvError: the episode has not begun or has ended.
        """
        cell, steps, done, _ = self._current("step")
        if done:
            raise EnvError("expected step() before the end of the episode, got one after it; call reset() or restore()")
        move = {"left": -1, "look": 0, "right": 1}.get(action)
        cell = min(max(cell + (move or 0), 0), LAST_CELL)
        done = cell == LAST_CELL
        self._state = LineState(cell, steps + 1, done, invalid=move is None)
        return self._observation(), float(done), done, False, self._info()

    def snapshot(self) -> LineState:
        """Cell, steps, done flag and whether the last action was understood."""
        return self._current("snapshot")

    def restore(self, snapshot: LineState) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back; the observation is the one that followed the last action.

        Raises:
            SnapshotError: it is no snapshot of a LineEnv.
        """
        if not isinstance(snapshot, LineState):
            raise SnapshotError(f"expected a LineState, got {type(snapshot).__name__}; restore a value of snapshot()")
        self._state = snapshot
        return self._observation(), self._info()

    def state_key(self) -> str:
        """Hash of cell and done flag."""
        state = self._current("state_key")
        return blake2b(f"line {state.cell} {state.done}".encode(), digest_size=16).hexdigest()

    def tasks(self, split: str) -> Sequence[str]:
        """``start-0`` to ``start-8``, in every split.

        Raises:
            UnknownNameError: there is no such split.
        """
        if split not in self.SPLITS:
            raise UnknownNameError(f"expected a split of {self.SPLITS}, got {split!r}; name one of these")
        return TASKS

    def _current(self, call: str) -> LineState:
        if self._state is None:
            raise EnvError(f"expected reset() or restore() before {call}(), got neither; call one of them first")
        return self._state

    def _observation(self) -> str:
        state = self._current("observation")
        return "Nothing happens." if state.invalid else f"You are in cell {state.cell} of 0..9."

    def _info(self) -> dict[str, Any]:
        state = self._current("info")
        return {
            "success": state.done,
            "admissible_actions": [] if state.done else list(ACTIONS),
            "invalid_action": state.invalid,
            "steps": state.steps,
        }
