"""What continuations may cost, on groups made by hand."""

import asyncio

import numpy as np
import pytest
from episodes import TASK, played

from prover.records import Group, Proposal, Segment, TokenRow, Turn
from prover.verification_budget import VerificationBudget


def group(index: int, turns: int = 6, tokens_per_turn: int = 3) -> Group:
    """Two runs of so many turns, each turn with so many sampled tokens."""
    of_token = np.repeat(np.arange(turns), tokens_per_turn)
    row = TokenRow(
        ids=of_token,
        turn_of_token=of_token,
        loss_mask=np.ones(len(of_token), dtype=bool),
        logprobs=np.zeros(len(of_token)),
        support=(None,) * len(of_token),
    )
    run = played((Turn(text="", action="", result="", reward=0.0) for _ in range(turns)), True, rows=(row,))
    return Group(index=index, task=TASK, trajectories=(run, run))


def claim(start: int, end: int) -> Proposal:
    """A segment of the first run."""
    return Proposal(segment=Segment(trajectory=0, start=start, end=end), reason="", judge="")


def admitted(budget: VerificationBudget, groups: list[Group], *proposals: list[Proposal]) -> list[bool]:
    """Which groups pass when the last one asks first."""
    gate = budget.gate(groups)

    async def ask() -> list[bool]:
        waiting = [
            asyncio.ensure_future(gate.admit(*pair)) for pair in reversed([*zip(groups, proposals, strict=True)])
        ]
        return list(reversed(await asyncio.gather(*waiting)))

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [True, True, True]),
        # Turns 1..2 of 6: 4 x (6 - 1) + 4 x (6 - 3) = 32 turns a group, of 36 rollout turns in all.
        ({"max_share": 64 / 36}, [True, True, False]),
        ({"max_share": 63 / 36}, [True, False, False]),
        ({"max_turns": 96}, [True, True, True]),
        ({"max_turns": 95}, [True, True, False]),
        # 3 tokens a turn: 96 tokens a group.
        ({"max_tokens": 192}, [True, True, False]),
        ({"max_tokens": 95}, [False, False, False]),
        ({"max_turns": 96, "max_tokens": 96}, [True, False, False]),
    ],
)
def test_groups_pass_in_order_until_a_limit(limits: dict[str, float], expected: list[bool]) -> None:
    """All limits that are set hold."""
    budget = VerificationBudget(continuations=4, **limits)  # type: ignore[arg-type]  # limits of both types
    assert admitted(budget, [group(0), group(1), group(2)], *[[claim(1, 2)]] * 3) == expected


def test_several_segments_of_a_group_add_up() -> None:
    """Turn 4 alone costs 4 x 2 + 4 x 1 = 12, turn 0 costs 4 x 6 + 4 x 5 = 44: 56 together."""
    both = [claim(4, 4), claim(0, 0)]
    assert admitted(VerificationBudget(continuations=4, max_turns=56), [group(0)], both) == [True]
    assert admitted(VerificationBudget(continuations=4, max_turns=55), [group(0)], both) == [False]


def test_a_group_that_does_not_fit_keeps_those_behind_it_out() -> None:
    """12, 44 + 12 and 12 turns: 24 would be enough for the first and the last."""
    groups, claims = [group(0), group(1), group(2)], [[claim(4, 4)], [claim(4, 4), claim(0, 0)], [claim(4, 4)]]
    assert admitted(VerificationBudget(continuations=4, max_turns=24), groups, *claims) == [True, False, False]


def test_tokens_are_estimated_by_each_group_itself() -> None:
    """32 turns each, of 2 and of 5 tokens: 64 + 160 = 224."""
    groups = [group(0, tokens_per_turn=2), group(1, tokens_per_turn=5)]
    assert admitted(VerificationBudget(continuations=4, max_tokens=224), groups, *[[claim(1, 2)]] * 2) == [True, True]
    assert admitted(VerificationBudget(continuations=4, max_tokens=223), groups, *[[claim(1, 2)]] * 2) == [True, False]


def test_groups_without_a_segment_cost_nothing() -> None:
    """They wait for nobody's turn and use nothing up."""
    assert (
        admitted(VerificationBudget(continuations=4, max_turns=32), [group(0), group(1)], [], [claim(1, 2)])
        == [True] * 2
    )
