"""Tests of prover.judges.random_segment."""

import asyncio
from collections import Counter
from collections.abc import Collection

from episodes import TASK, played

from prover.judges.random_segment import RandomJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, Segment, Turn


def group(*lengths: int, invalid: Collection[int] = ()) -> Group:
    """A failure of 3 turns, then successes of these lengths."""
    members = tuple(
        played(
            (
                Turn(text="", action="look", result="", reward=0.0, invalid="env" if t in invalid else None)
                for t in range(n)
            ),
            success,
            member=i,
        )
        for i, (n, success) in enumerate([(3, False), *((n, True) for n in lengths)])
    )
    return Group(index=0, task=TASK, trajectories=members)


def drawn(judge: RandomJudge, members: Group, seeds: int) -> Counter[Segment]:
    """How often each segment is drawn."""
    counts: Counter[Segment] = Counter()
    for seed in range(seeds):
        proposal = asyncio.run(judge.propose(members, seed=seed))
        assert isinstance(proposal, Proposal)
        assert proposal.judge == "random"
        counts[proposal.segment] += 1
    return counts


def test_uniform_over_valid_segments() -> None:
    """Every valid segment of the shortest success is drawn about equally often, and no other."""
    counts = drawn(RandomJudge(max_length=2), group(7, 5, invalid=[1]), 900)
    expected = {(0, 0), (2, 2), (2, 3), (3, 3)}
    assert {(s.start, s.end) for s in counts} == expected
    assert {s.trajectory for s in counts} == {2}
    assert all(175 < n < 275 for n in counts.values())


def test_single_turns_by_default() -> None:
    """By default the segments are single turns, the last one excepted."""
    assert {(s.start, s.end) for s in drawn(RandomJudge(), group(4), 60)} == {(0, 0), (1, 1), (2, 2)}


def test_seed_decides() -> None:
    """The same seed draws the same segment."""
    judge = RandomJudge(max_length=4)
    assert isinstance(judge, Judge)
    assert drawn(judge, group(30), 5) == drawn(judge, group(30), 5)


def test_nothing_to_draw() -> None:
    """Without a success, or without a valid segment in it, there is no proposal."""
    none = asyncio.run(RandomJudge().propose(group(), seed=0))
    assert none == NoProposal(reason="no_success")
    assert asyncio.run(RandomJudge().propose(group(1), seed=0)) == NoProposal(reason="no_valid_segment")
