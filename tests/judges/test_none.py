"""NoJudge."""

import asyncio

from prover.judges.none import NoJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Task


def test_proposes_nothing() -> None:
    """It answers every group with a counted reason and no proposal."""
    group = Group(index=0, task=Task(id="start-7", split="train"), trajectories=())
    judge = NoJudge()
    assert isinstance(judge, Judge)
    assert asyncio.run(judge.propose(group, seed=3)) == NoProposal(reason="no_judge")
