"""ALFWorldEnv: ALFWorld as an environment whose exact state can be saved and brought back."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import gymnasium

from prover.envs.alfworld.corridor import Corridor, Corridors, Usher
from prover.envs.alfworld.data import GameFolder, Games
from prover.envs.alfworld.expert import Expert
from prover.envs.alfworld.game import Game
from prover.envs.alfworld.goal import TASK_TYPES
from prover.envs.alfworld.text import NOTHING
from prover.envs.choice import chosen_task
from prover.errors import ConfigError, DataError, EnvError, SnapshotError
from prover.seeds import generator
from prover.spaces import UnicodeText


class Snapshot(NamedTuple):
    """All that changes in an ALFWorldEnv. Nothing in an episode is random, so there is no RNG in it."""

    task: str
    state: Any
    """What the game changes: a ``State``, or the ``Whereabouts`` in a corridor and behind its doors."""
    observation: str
    """What the last command was answered with; the state alone does not tell."""
    done: bool


class ALFWorldEnv(gymnasium.Env[str, str]):
    """Household tasks in text: stock ALFWorld's texts, commands and goals, a thousand times faster.

    The reward is 1 when the goal is reached, which ends the episode, and 0 before. Every other command than an
    admissible one is answered with "Nothing happens." and changes nothing. ``help`` works, but is left out of
    ``info["admissible_actions"]``: it never helps an agent that sees these.

    Args:
        data: ``generated`` plays households made from seeds; a path plays ALFWorld's own games in that folder; empty or
            None looks for the folder in ``$ALFWORLD_DATA``.
        task_types: Keep only tasks of these of ALFWorld's six types; None keeps all.
        max_receptacles: Keep only tasks with at most so many receptacles; None keeps all. The first time, every game of
            the split has to be read or made for that.
        split: The split that ``reset`` without a task draws from.
        pivot: ``door`` puts a corridor before every generated household: the first turn chooses a room for good, and
            the task can be done in one of them only; see `corridor`.

    >>> env = ALFWorldEnv()
    >>> task = env.tasks("train")[0]
    >>> observation, info = env.reset(options={"task": task})
    >>> observation.splitlines()[0]
    '-= Welcome to TextWorld, ALFRED! =-'
    >>> env.step("dance")[0]
    'Nothing happens.'

    Raises:
        ConfigError: a task type, the number of receptacles or the pivot makes no sense.
        DataError: the folder with the games is missing.
    """

    def __init__(
        self,
        data: str | None = "generated",
        task_types: Sequence[str] | None = None,
        max_receptacles: int | None = None,
        split: str = "train",
        pivot: str | None = None,
    ) -> None:
        if task_types is not None and (not task_types or not set(task_types) <= set(TASK_TYPES)):
            raise ConfigError(
                f"expected task_types among {', '.join(TASK_TYPES)}, got {task_types!r}; name some of these"
            )
        if max_receptacles is not None and max_receptacles < 1:
            raise ConfigError(
                f"expected max_receptacles of at least 1, got {max_receptacles}; raise it or leave it out"
            )
        if pivot is not None and (pivot != "door" or data != "generated"):
            raise ConfigError(
                f"expected pivot 'door' with data 'generated', or none, got {pivot!r} with {data!r}; original games "
                "have no corridor"
            )
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        games: Games = _Households() if data == "generated" else GameFolder.find(data)
        self._games: Games | Corridors = games if pivot is None else Corridors(games)
        self._task_types = task_types
        self._max_receptacles = max_receptacles
        self._split = split
        self._tasks: dict[str, tuple[str, ...]] = {}
        self._now: Snapshot | None = None
        # The game of the current episode, read-only: looking it up again in every step could mean making it again.
        self._game: Game | Corridor | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start the task ``options["task"]``, or one drawn from the split ``options["split"]``.

        Raises:
            ConfigError: there is another key in ``options``.
            UnknownNameError: there is no such task or split.
            DataError: the game is damaged or missing.
        """
        super().reset(seed=seed)
        task = chosen_task(options, self.tasks, self._split, self.np_random)
        self._game = game = self._games.load(task)
        self._now = Snapshot(task, game.initial, game.intro, False)
        return game.intro, self._info(self._now, game)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Give a command.

        Raises:
            EnvError: the episode has not begun or has ended, or the action is no text.
        """
        now, game = self._current("step")
        if now.done:
            raise EnvError("expected step() before the end of the episode, got one after it; call reset() or restore()")
        if not isinstance(action, str):
            raise EnvError(f"expected an action of type str, got {type(action).__name__}; send a command")
        state: Any
        state, observation = game.step(now.state, action)
        done = game.won(state)
        self._now = Snapshot(now.task, state, observation, done)
        return observation, float(done), done, False, self._info(self._now, game)

    def snapshot(self) -> Snapshot:
        """The task, its state, the last observation and whether the episode has ended; picklable, a few kilobytes."""
        return self._current("snapshot")[0]

    def restore(self, snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back, in any instance with the same games.

        Raises:
            SnapshotError: it is no snapshot of an ALFWorldEnv.
        """
        if not isinstance(snapshot, Snapshot):
            raise SnapshotError(f"expected a Snapshot, got {type(snapshot).__name__}; restore a value of snapshot()")
        game = self._game
        if game is None or self._now is None or self._now.task != snapshot.task:
            self._game = game = self._games.load(snapshot.task)
        self._now = snapshot
        return snapshot.observation, self._info(snapshot, game)

    def state_key(self) -> str:
        """Hash of the task and its state; the last observation is no part of it."""
        now, _ = self._current("state_key")
        return blake2b(repr((now.task, now.state.canonical())).encode(), digest_size=16).hexdigest()

    def tasks(self, split: str) -> tuple[str, ...]:
        """Ids of the tasks of a split that pass the filters, always in the same order.

        Raises:
            UnknownNameError: there is no such split.
            DataError: no task is left.
        """
        if split not in self._tasks:
            every = self._games.tasks(split)
            kept = tuple(task for task in every if self._keeps(task))
            if not kept:
                raise DataError(
                    f"expected tasks in split {split!r} with task_types = {self._task_types} and max_receptacles = "
                    f"{self._max_receptacles}, got none of {len(every)}; widen the filters"
                )
            self._tasks[split] = kept
        return self._tasks[split]

    def goal(self, task: str) -> str:
        """What makes a task the same as another under another id: the whole game.

        Openings do not: many games share furniture and goal, and differ in what lies where.

        Raises:
            UnknownNameError: there is no such task.
            DataError: the game is damaged.
        """
        return self._games.content(task)

    def manifest(self) -> dict[str, Any]:
        """The label of households behind doors, which are not to be mistaken for plain ones; nothing of others."""
        return {"label": "ALFWorld-generated-doors"} if isinstance(self._games, Corridors) else {}

    def expert(self, seed: int) -> Expert | Usher:
        """A scripted player of the current episode, for demonstrations; see ``Expert`` for what it is told.

        Raises:
            EnvError: no episode has begun.
        """
        _, game = self._current("expert")

        def locate(kind: str) -> list[str]:
            now, _ = self._current("expert")
            return game.holding(now.state, kind)

        if isinstance(game, Game):
            return Expert(game, generator(seed), locate)
        return Usher(game, Expert(game.behind(game.right), generator(seed), locate))

    def _keeps(self, task: str) -> bool:
        if self._task_types is not None and self._games.task_type(task) not in self._task_types:
            return False
        return self._max_receptacles is None or self._games.n_receptacles(task) <= self._max_receptacles

    def _current(self, call: str) -> tuple[Snapshot, Game | Corridor]:
        if self._now is None or self._game is None:
            raise EnvError(f"expected reset() or restore() before {call}(), got neither; call one of them first")
        return self._now, self._game

    def _info(self, now: Snapshot, game: Game | Corridor) -> dict[str, Any]:
        return {
            "success": game.won(now.state),
            "admissible_actions": [command for command in game.admissible(now.state) if command != "help"],
            "invalid_action": now.observation == NOTHING,
            "task_type": game.task_type,
            "task": now.task,
        }


class _Households:
    """Generated games. The generator is imported when it is needed."""

    def tasks(self, split: str) -> tuple[str, ...]:
        from prover.envs.alfworld import households

        return households.tasks(split)

    def load(self, task_id: str) -> Game:
        from prover.envs.alfworld import households

        return households.load(task_id)

    def task_type(self, task_id: str) -> str:
        from prover.envs.alfworld import households

        return households.task_type(task_id)

    def n_receptacles(self, task_id: str) -> int:
        from prover.envs.alfworld import households

        return households.n_receptacles(task_id)

    def content(self, task_id: str) -> str:
        from prover.envs.alfworld import households

        return f"household {households.seed_of(task_id)}"
