"""Public test doubles: three toy environments, a toy codec, scripted, tabular and random policies, a scripted judge.

They keep every contract of ``prover.protocols`` and need no model, so that an adapter, a judge or a training loop can
be tested in milliseconds.
"""

from prover.testing.backend import ScriptedBackend
from prover.testing.codec import ToyCodec
from prover.testing.coin import CoinEnv
from prover.testing.judge import ScriptedJudge
from prover.testing.line import LineEnv
from prover.testing.pivots import PivotEnv
from prover.testing.policies import ScriptedPolicy, UniformPolicy
from prover.testing.tabular import TabularPolicy

__all__ = [
    "CoinEnv",
    "LineEnv",
    "PivotEnv",
    "ScriptedBackend",
    "ScriptedJudge",
    "ScriptedPolicy",
    "TabularPolicy",
    "ToyCodec",
    "UniformPolicy",
]
