"""DivergenceJudge, on groups made by hand."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from episodes import TASK, played

from prover.judges.divergence import DivergenceJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, Trajectory, Turn


def run(actions: str, success: bool, invalid: Sequence[int] = ()) -> Trajectory:
    """A trajectory with one action a letter."""
    turns = tuple(
        Turn(text=a, action=a, result="", reward=0.0, invalid="env" if t in invalid else None)
        for t, a in enumerate(actions)
    )
    return played(turns, success)


def judged(which: Literal["first", "last"], *members: Trajectory) -> Proposal | NoProposal:
    """The judge's answer."""
    judge = DivergenceJudge(which)
    assert isinstance(judge, Judge)
    return asyncio.run(judge.propose(Group(index=0, task=TASK, trajectories=members), seed=0))


def turns(answer: Proposal | NoProposal) -> tuple[int, int, int]:
    """What was proposed."""
    assert isinstance(answer, Proposal)
    return answer.segment.trajectory, answer.segment.start, answer.segment.end


def test_first_and_last_parting() -> None:
    """Failures part at turns 1 and 3; one that stopped early parts where it stopped."""
    won = run("abcdef", True)
    members = (run("axcdef", False), run("abcdefgh", True), won, run("abcx", False))
    assert turns(judged("first", *members)) == (2, 1, 1)
    assert turns(judged("last", *members)) == (2, 3, 3)
    assert turns(judged("last", won, run("ab", False))) == (0, 2, 2)


def test_what_cannot_be_measured_is_not_proposed() -> None:
    """The last turn, an invalid turn, and a failure that did all that the success did."""
    for won, lost in [
        (run("abc", True), run("abx", False)),
        (run("abc", True, invalid=[1]), run("axc", False)),
        (run("abc", True), run("abcd", False)),
    ]:
        answer = judged("last", won, lost)
        assert isinstance(answer, NoProposal)
        assert answer.reason == "no_valid_segment"


def test_no_contrast() -> None:
    """Without a success or without a failure nothing parts."""
    for members in [(run("ab", True),), (run("ab", False),)]:
        answer = judged("first", *members)
        assert isinstance(answer, NoProposal)
        assert answer.reason == "no_contrast"
