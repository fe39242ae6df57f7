"""OracleJudge."""

import asyncio
from collections.abc import Iterable

from episodes import TASK, played

from prover.judges.oracle import OracleJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, Trajectory, Turn


def group(actions: str, success: bool = True) -> Group:
    """One run with one action a letter."""
    turns = tuple(Turn(text=a, action=a, result="", reward=0.0) for a in actions)
    run = played(turns, success)
    return Group(index=0, task=TASK, trajectories=(run,))


def capitals(trajectory: Trajectory) -> Iterable[int]:
    """Capital letters are pivotal."""
    return (turn for turn, said in enumerate(trajectory.turns) if said.action.isupper())


def judged(asked: Group, seed: int = 0) -> Proposal | NoProposal:
    """The judge's answer."""
    judge = OracleJudge(capitals)
    assert isinstance(judge, Judge)
    return asyncio.run(judge.propose(asked, seed=seed))


def test_pivots_are_proposed() -> None:
    """Over many seeds every pivotal turn but the last, and no other."""
    seen = set()
    for seed in range(40):
        got = judged(group("aBcDeF"), seed)
        assert isinstance(got, Proposal)
        seen.add((got.segment.start, got.segment.end))
    assert seen == {(1, 1), (3, 3)}


def test_nothing_pivotal() -> None:
    """No pivot, none but the last turn, no success."""
    for asked, reason in [(group("abc"), "no_pivot"), (group("abC"), "no_pivot"), (group("aBc", False), "no_success")]:
        got = judged(asked)
        assert isinstance(got, NoProposal)
        assert got.reason == reason
