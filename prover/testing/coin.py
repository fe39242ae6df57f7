"""CoinEnv: a box that opens when the environment's own coin says so."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import gymnasium
from gymnasium.utils import seeding

from prover.errors import ConfigError, EnvError, SnapshotError, UnknownNameError
from prover.spaces import UnicodeText


class CoinState(NamedTuple):
    """All that changes in a CoinEnv: its snapshot."""

    steps: int = 0
    """Actions taken since reset."""
    done: bool = False
    success: bool = False
    invalid: bool = False
    """Whether the last action was another than ``open``."""
    rng: str = ""
    """State of the RNG, as JSON; empty but in a snapshot."""


class CoinEnv(gymnasium.Env[str, str]):
    """``open`` succeeds with probability ``p`` by the environment's own RNG; anything else ends the episode with 0.

    With ``turns`` above 1 the lid needs so many ``open`` before the coin decides, so that no segment but the last turn
    can change the rate of success: the true worth of every earlier one is 0. The coin is tossed once per episode, and
    the toss ends the episode either way.

    ``restore`` brings the RNG back too: continuations from one snapshot are then all equal. Who wants them to differ,
    as a verifier does by default, calls ``reseed(seed)`` after ``restore`` with a fresh seed for each continuation, by
    the same rule in both arms.

    >>> env = CoinEnv()
    >>> _ = env.reset(seed=1)
    >>> snapshot = env.snapshot()
    >>> first = env.step("open")[1]
    >>> _ = env.restore(snapshot)
    >>> env.step("open")[1] == first
    True
    >>> rewards = []
    >>> for seed in range(100):
    ...     _ = env.restore(snapshot)
    ...     env.reseed(seed)
    ...     rewards.append(env.step("open")[1])
    >>> 30 < sum(rewards) < 70
    True
    """

    SPLITS = ("train", "test")
    TASKS = ("coin",)

    def __init__(self, turns: int = 1, p: float = 0.5) -> None:
        if turns < 1 or not 0 <= p <= 1:
            raise ConfigError(f"expected turns >= 1 and 0 <= p <= 1, got turns={turns}, p={p}; correct them")
        self.turns = turns
        self.p = p
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self._state: CoinState | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Close the box.

        Raises:
            UnknownNameError: there is no such task.
        """
        super().reset(seed=seed)
        task = (options or {}).get("task", "coin")
        if task not in self.TASKS:
            raise UnknownNameError(f"expected the task 'coin', got {task!r}; see CoinEnv().tasks('train')")
        self._state = CoinState()
        return self._observation(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Open the box, or give up with any other action.

        Raises:
            EnvError: the episode has not begun or has ended.
        """
        state = self._current("step")
        if state.done:
            raise EnvError("expected step() before the end of the episode, got one after it; call reset() or restore()")
        invalid = action != "open"
        tossed = not invalid and state.steps + 1 == self.turns
        success = tossed and bool(self.np_random.random() < self.p)
        self._state = CoinState(steps=state.steps + 1, done=tossed or invalid, success=success, invalid=invalid)
        return self._observation(), float(success), self._state.done, False, self._info()

    def snapshot(self) -> CoinState:
        """The state, RNG included."""
        return self._current("snapshot")._replace(rng=json.dumps(self.np_random.bit_generator.state))

    def restore(self, snapshot: CoinState) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back, RNG included.

        Raises:
            SnapshotError: it is no snapshot of a CoinEnv.
        """
        if not isinstance(snapshot, CoinState):
            raise SnapshotError(f"expected a CoinState, got {type(snapshot).__name__}; restore a value of snapshot()")
        self._state = snapshot._replace(rng="")
        generator, _ = seeding.np_random(0)
        generator.bit_generator.state = json.loads(snapshot.rng)
        self.np_random = generator
        return self._observation(), self._info()

    def reseed(self, seed: int) -> None:
        """Give what follows a random stream of its own; the state stays."""
        self._np_random, self._np_random_seed = seeding.np_random(seed)

    def state_key(self) -> str:
        """Hash of the state as the policy can see it: the RNG is left out."""
        state = self._current("state_key")
        return blake2b(f"coin {state.steps} {state.done} {state.success}".encode(), digest_size=16).hexdigest()

    def tasks(self, split: str) -> Sequence[str]:
        """``coin``, in every split.

        Raises:
            UnknownNameError: there is no such split.
        """
        if split not in self.SPLITS:
            raise UnknownNameError(f"expected a split of {self.SPLITS}, got {split!r}; name one of these")
        return self.TASKS

    def _current(self, call: str) -> CoinState:
        if self._state is None:
            raise EnvError(f"expected reset() or restore() before {call}(), got neither; call one of them first")
        return self._state

    def _observation(self) -> str:
        state = self._current("observation")
        if state.done:
            return "The box is open." if state.success else "The box stays shut for good."
        return f"The lid moves. ({state.steps} of {self.turns})" if state.steps else "There is a box."

    def _info(self) -> dict[str, Any]:
        state = self._current("info")
        return {
            "success": state.success,
            "admissible_actions": [] if state.done else ["leave", "open"],
            "invalid_action": state.invalid,
        }
