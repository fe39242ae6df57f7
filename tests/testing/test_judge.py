"""ScriptedJudge."""

import asyncio

import pytest

from prover.errors import ConfigError
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, Segment, Task
from prover.testing import ScriptedJudge

GROUP = Group(index=3, task=Task(id="t", split="train"), trajectories=())
PROPOSAL = Proposal(segment=Segment(trajectory=0, start=1, end=2), reason="it turned", judge="scripted")
NOTHING = NoProposal(reason="nothing_distinctive")


def propose(judge: ScriptedJudge) -> Proposal | NoProposal:
    """The next verdict."""
    return asyncio.run(judge.propose(GROUP, seed=0))


def test_verdicts_come_in_order() -> None:
    """Proposals, refusals, errors and callables are answered in order, and the groups are kept."""
    judge = ScriptedJudge([PROPOSAL, NOTHING, OSError("planted"), lambda group: NoProposal(reason=f"of {group.index}")])
    assert isinstance(judge, Judge)
    assert propose(judge) is PROPOSAL
    assert propose(judge) is NOTHING
    with pytest.raises(OSError, match="planted"):
        propose(judge)
    assert propose(judge) == NoProposal(reason="of 3")
    assert judge.groups == [GROUP] * 4


def test_a_script_ends_or_repeats() -> None:
    """A used-up script is an error unless it repeats."""
    judge = ScriptedJudge([NOTHING])
    propose(judge)
    with pytest.raises(ConfigError, match="at most 1 groups"):
        propose(judge)
    judge = ScriptedJudge([NOTHING, PROPOSAL], repeat=True)
    assert [propose(judge) for _ in range(3)] == [NOTHING, PROPOSAL, NOTHING]
