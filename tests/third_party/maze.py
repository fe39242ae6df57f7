"""An environment of somebody else: find the way out of a corridor by its colours."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from prover import UnicodeText

COLOURS = ("amber", "blue", "coral")


class Maze(gymnasium.Env[str, str]):
    """Say the colour of the door three times."""

    observation_space = action_space = UnicodeText()

    def __init__(self, wide: bool = False) -> None:
        self.wide = wide
        self.state = ("", 0)

    def tasks(self, split: str) -> Sequence[str]:
        first = {"train": 0, "test": 6, "shared": 4}[split]
        return [f"{split if split != 'shared' else 'train'}-{number}" for number in range(first, first + 6)]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return self.restore(((options or {})["task"], 0))

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        task, doors = self.state
        observation, info = self.restore((task, doors + 1 if action == self.colour(task) else -1))
        return observation, doors / 3, info["success"] or self.state[1] < 0, False, info

    def snapshot(self) -> tuple[str, int]:
        return self.state

    def restore(self, snapshot: tuple[str, int]) -> tuple[str, dict[str, Any]]:
        self.state = task, doors = snapshot
        success = doors == 3
        return f"Corridor {task}, the door is {self.colour(task)}.", {
            "success": success,
            "admissible_actions": [] if success or doors < 0 else list(COLOURS),
            "metrics": {"doors": float(max(doors, 0))},
            "task_type": "wide" if self.wide else "narrow",
        }

    def state_key(self) -> str:
        return repr(self.state)

    def colour(self, task: str) -> str:
        return COLOURS[int(task.rpartition("-")[2]) % 3]

    def expert(self, seed: int) -> "Guide":
        return Guide()


class Guide:
    """Reads the colour."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        return observation.rpartition(" ")[2].rstrip(".")
