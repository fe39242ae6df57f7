"""ALFWorld: household tasks in text, played by a pure Python engine on ALFWorld's own games or on generated ones."""

from prover.envs.alfworld.entities import Item, Receptacle
from prover.envs.alfworld.env import ALFWorldEnv
from prover.envs.alfworld.game import Game
from prover.envs.alfworld.goal import TASK_TYPES, Goal
from prover.envs.alfworld.state import State

__all__ = ["TASK_TYPES", "ALFWorldEnv", "Game", "Goal", "Item", "Receptacle", "State"]
