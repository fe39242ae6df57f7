"""Train LLM agents with reinforcement learning and measure which of their decisions mattered.

Importing ``prover`` loads neither torch nor transformers. It registers these environments with Gymnasium::

    prover/ALFWorld-v1    household tasks in text
    prover/WebShop-v1     shopping tasks in text
    prover/Line-v1        a toy: walk to the last of ten cells
    prover/Coin-v1        a toy: success by the environment's own RNG

``gymnasium.make`` returns each of them bare: a wrapper's own counters would be missing from snapshots.
"""

from typing import TYPE_CHECKING, Any

import gymnasium

from prover.errors import ProverError
from prover.protocols import Codec, Judge, Policy, TextEnv, Verifier
from prover.records import (
    Completion,
    Credit,
    Estimate,
    Group,
    NoProposal,
    Proposal,
    Request,
    Sampling,
    Segment,
    Task,
    Trajectory,
    Turn,
)
from prover.replay import ReplayEnv
from prover.spaces import UnicodeText

if TYPE_CHECKING:
    from prover.checks import check_text_env
else:

    def __getattr__(name: str) -> Any:
        if name == "check_text_env":  # Loaded when it is asked for: it needs the configs, which take a while.
            from prover.checks import check_text_env

            return check_text_env
        raise AttributeError(f"module 'prover' has no attribute {name!r}; its public names are in prover.__all__")


__version__ = "0.1.0"

__all__ = [
    "Codec",
    "Completion",
    "Credit",
    "Estimate",
    "Group",
    "Judge",
    "NoProposal",
    "Policy",
    "Proposal",
    "ProverError",
    "ReplayEnv",
    "Request",
    "Sampling",
    "Segment",
    "Task",
    "TextEnv",
    "Trajectory",
    "Turn",
    "UnicodeText",
    "Verifier",
    "__version__",
    "check_text_env",
]

for _id, _entry_point in {
    "prover/ALFWorld-v1": "prover.envs.alfworld.env:ALFWorldEnv",
    "prover/WebShop-v1": "prover.envs.webshop.env:WebShopEnv",
    "prover/Line-v1": "prover.testing:LineEnv",
    "prover/Coin-v1": "prover.testing:CoinEnv",
}.items():
    # No max_episode_steps, order enforcement or checker: each is a wrapper that keeps state outside the snapshot.
    gymnasium.register(id=_id, entry_point=_entry_point, order_enforce=False, disable_env_checker=True)
