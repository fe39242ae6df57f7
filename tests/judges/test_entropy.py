"""EntropyJudge, on rows made by hand."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from episodes import TASK, played

from prover.judges.entropy import EntropyJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, TokenRow, Turn


def row(*tokens: tuple[int, float]) -> TokenRow:
    """A row of (turn, log-probability)."""
    turn_of_token = np.array([turn for turn, _ in tokens])
    return TokenRow(
        ids=np.arange(len(tokens)),
        turn_of_token=turn_of_token,
        loss_mask=turn_of_token >= 0,
        logprobs=np.array([logprob for _, logprob in tokens]),
        support=(None,) * len(tokens),
    )


def group(n_turns: int, *rows: TokenRow, invalid: Sequence[int] = (), success: bool = True) -> Group:
    """A failure and a run of so many turns with these rows."""
    runs = [
        played(
            (
                Turn(text="", action="", result="", reward=0.0, invalid="env" if t in invalid else None)
                for t in range(n)
            ),
            won,
            rows=tuple(own),
        )
        for n, own, won in [(9, (), False), (n_turns, rows, success)]
    ]
    return Group(index=0, task=TASK, trajectories=tuple(runs))


def judged(asked: Group) -> Proposal | NoProposal:
    """The judge's answer."""
    judge = EntropyJudge()
    assert isinstance(judge, Judge)
    return asyncio.run(judge.propose(asked, seed=0))


APPEND = row((-1, 0.0), (0, -0.5), (0, -0.7), (-1, 0.0), (1, -3.0), (1, -0.0), (2, -1.0), (3, -9.0))


def test_the_least_certain_turn_is_proposed() -> None:
    """Means are 0.6, 1.5, 1.0 and, for the last turn, which cannot be measured, 9."""
    got = judged(group(4, APPEND))
    assert isinstance(got, Proposal)
    assert (got.segment.trajectory, got.segment.start, got.segment.end) == (1, 1, 1)
    assert got.reason == "mean surprisal of 1.500 nats a token, the highest of 3 turns"


def test_rows_of_window_mode_count_as_one() -> None:
    """One row a turn gives the same answer; prompts with turns of others are not sampled there."""
    rows = [row((-1, 0.0), (0, -0.5), (0, -0.7)), row((1, -3.0), (1, 0.0)), row((2, -1.0)), row((3, -9.0))]
    assert judged(group(4, *rows)) == judged(group(4, APPEND))


def test_invalid_turns_are_left_out() -> None:
    """Then the next one is proposed, and of equal ones the first."""
    got = judged(group(4, APPEND, invalid=[1]))
    assert isinstance(got, Proposal)
    assert got.segment.start == 2
    got = judged(group(4, row((0, -1.0), (1, -1.0), (2, -1.0))))
    assert isinstance(got, Proposal)
    assert got.segment.start == 0


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (group(4, APPEND, success=False), "no_success"),
        (group(1, row((0, -1.0))), "no_valid_segment"),
        (group(4), "no_valid_segment"),
    ],
)
def test_nothing_to_propose(asked: Group, reason: str) -> None:
    """No success, no turn that can be measured, no tokens."""
    got = judged(asked)
    assert isinstance(got, NoProposal)
    assert got.reason == reason
