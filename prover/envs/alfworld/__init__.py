"""ALFWorld: household tasks in text, played by a pure Python engine on ALFWorld's own games or on generated ones."""

from prover.envs.alfworld.game import Game
from prover.envs.alfworld.state import State

__all__ = ["Game", "State"]
