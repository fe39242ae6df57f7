"""FixedJudge."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from episodes import TASK, played

from prover.judges.fixed import FixedJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, Turn


def group(n_turns: int, invalid: Sequence[int] = (), success: bool = True) -> Group:
    """One run."""
    turns = tuple(
        Turn(text="", action="", result="", reward=0.0, invalid="env" if t in invalid else None) for t in range(n_turns)
    )
    run = played(turns, success)
    return Group(index=0, task=TASK, trajectories=(run,))


def judged(judge: FixedJudge, asked: Group, seed: int) -> Proposal | NoProposal:
    """The judge's answer."""
    return asyncio.run(judge.propose(asked, seed=seed))


def drawn(judge: FixedJudge, asked: Group) -> Counter[tuple[int, int]]:
    """How often each piece is drawn over 200 seeds."""
    counts: Counter[tuple[int, int]] = Counter()
    for seed in range(200):
        got = judged(judge, asked, seed)
        assert isinstance(got, Proposal)
        counts[got.segment.start, got.segment.end] += 1
    return counts


def test_pieces_between_fixed_boundaries_are_drawn() -> None:
    """Of ten turns cut every three, the three pieces before the last one, about equally often."""
    judge = FixedJudge(length=3)
    assert isinstance(judge, Judge)
    counts = drawn(judge, group(10))
    assert set(counts) == {(0, 2), (3, 5), (6, 8)}
    assert min(counts.values()) > 40
    assert drawn(judge, group(10)) == counts


def test_pieces_with_invalid_turns_or_the_end_are_left_out() -> None:
    """A shorter last piece ends the episode, and one invalid turn spoils its piece."""
    assert set(drawn(FixedJudge(length=4), group(10, invalid=[1]))) == {(4, 7)}


def test_nothing_to_draw() -> None:
    """No success, or no piece that can be measured."""
    for asked, reason in [(group(9, success=False), "no_success"), (group(4), "no_valid_segment")]:
        got = judged(FixedJudge(), asked, 0)
        assert isinstance(got, NoProposal)
        assert got.reason == reason
