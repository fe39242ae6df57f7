"""AnchorJudge, on groups made by hand."""

import asyncio
from collections.abc import Sequence

import pytest
from episodes import TASK, played

from prover.judges.anchor import AnchorJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, Trajectory, Turn


def run(states: str, success: bool, invalid: Sequence[int] = ()) -> Trajectory:
    """A trajectory through states of one letter each, the last one being the state before its last turn."""
    turns = tuple(
        Turn(text="", action="", result="", reward=0.0, state_key=key.strip(), invalid="env" if t in invalid else None)
        for t, key in enumerate(states)
    )
    return played(turns, success)


def judged(*members: Trajectory) -> Proposal | NoProposal:
    """The judge's answer."""
    judge = AnchorJudge()
    assert isinstance(judge, Judge)
    return asyncio.run(judge.propose(Group(index=0, task=TASK, trajectories=members), seed=0))


def test_the_turn_into_the_better_state_is_named() -> None:
    """Of the others 1 of 4 succeed. State b: 1 of 2, (1 + .25) / 3 = .42; state a: all, (1 + .25) / 5 = .25."""
    won = run("abc", True)
    others = [run("abde", True), run("ab", False), run("ax", False), run("ax", False)]
    answer = judged(won, *others)
    assert isinstance(answer, Proposal)
    assert (answer.segment.trajectory, answer.segment.start, answer.segment.end) == (0, 0, 0)
    assert "+0.17" in answer.reason


def test_states_of_its_own_are_no_discovery() -> None:
    """After turn 0 nobody else was there: the rate stays that of the others, and nothing rises."""
    answer = judged(run("abc", True), run("axyz", True), run("axy", False))
    assert isinstance(answer, NoProposal)
    assert answer.reason == "no_rise"


def test_leaving_a_bad_state_is_a_rise() -> None:
    """State b is where two failures stayed, (0 + 1/3) / 3 = .11; c is its own: .33."""
    answer = judged(run("abcd", True), run("axyzw", True), run("ab", False), run("ab", False))
    assert isinstance(answer, Proposal)
    assert answer.segment.start == 1


def test_what_cannot_be_measured_is_not_named() -> None:
    """An invalid turn is passed over, however large its rise; the last turn has no state behind it."""
    won = run("abc", True, invalid=[0])
    others = [run("abde", True), run("ab", False), run("ax", False), run("ax", False)]
    assert isinstance(judged(won, *others), NoProposal)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ((run("ab", True), run("ab", True)), "no_contrast"),
        ((run("ab", False), run("ab", False)), "no_contrast"),
        ((run("a ", True), run("ab", False)), "no_states"),
    ],
)
def test_without_contrast_or_states_there_is_nothing_to_say(members: tuple[Trajectory, ...], reason: str) -> None:
    """The reason is counted."""
    answer = judged(*members)
    assert isinstance(answer, NoProposal)
    assert answer.reason == reason
