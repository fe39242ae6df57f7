"""Rows to train on, from groups and verdicts."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from prover.attribution import Verdict
from prover.batch import continuation_metrics, training_rows
from prover.config import AdvantageConfig
from prover.objective import row_weights
from prover.records import (
    Arm,
    Completion,
    Continuation,
    Credit,
    EndReason,
    Estimate,
    Group,
    Segment,
    Task,
    TokenRow,
    Trajectory,
    Turn,
)
from prover.testing import ToyCodec
from prover.transcript import Transcript

TASK = Task(id="t", split="train")


def row(turns: list[int]) -> TokenRow:
    """A row whose tokens belong to these turns; -1 for the environment's."""
    of_token = np.array(turns)
    return TokenRow(
        ids=np.arange(len(turns)),
        turn_of_token=of_token,
        loss_mask=of_token >= 0,
        logprobs=np.zeros(len(turns)),
        support=(None,) * len(turns),
    )


def trajectory(member: int, success: bool, *rows: TokenRow) -> Trajectory:
    """A trajectory of four turns."""
    turns = tuple(Turn(text=str(turn), action=str(turn), result="", reward=0.0) for turn in range(4))
    return Trajectory(
        task=TASK,
        member=member,
        seed=member,
        policy_version=0,
        opening="",
        turns=turns,
        rows=rows,
        reward=float(success),
        success=success,
        end=EndReason.DONE,
    )


def test_credit_lands_on_its_segment_of_its_trajectory_alone() -> None:
    """Rewards [1, 0, 0, 0] give 0.75 and -0.25; credit 0.5 on turns 1..2 of the success raises those tokens to 1.25."""
    layout = [-1, -1, 0, 0, -1, 1, 1, -1, 2, -1, 3]
    group = Group(
        index=0, task=TASK, trajectories=tuple(trajectory(member, member == 0, row(layout)) for member in range(4))
    )
    credit = Credit(segment=Segment(trajectory=0, start=1, end=2), amount=0.5)
    verdict = Verdict(group=0, outcome="credited", credit=credit)
    rows = training_rows([group], [verdict], AdvantageConfig())
    expected = [0, 0, 0.75, 0.75, 0, 1.25, 1.25, 0, 1.25, 0, 0.75]
    assert rows[0].advantages_T.tolist() == expected
    failure = [0, 0, -0.25, -0.25, 0, -0.25, -0.25, 0, -0.25, 0, -0.25]
    assert [r.advantages_T.tolist() for r in rows[1:]] == [failure] * 3
    assert [r.trajectory for r in rows] == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", ["append", "window"])
@pytest.mark.parametrize("k", range(5))
def test_the_number_of_a_turn_means_that_turn(k: int, mode: Literal["append", "window"]) -> None:
    """Credit on turn k lands on exactly the tokens of "act k", although the observation of turn 3 is empty."""
    codec = ToyCodec()
    transcript = Transcript.open(codec, system="", observation="c", temperature=1.0, mode=mode)
    for turn in range(6):
        ids = codec.action(f"act {turn}")
        transcript.sampled(Completion(ids=ids, logprobs=(-0.5,) * len(ids), finish="stop"))
        transcript.observed("" if turn == 2 else f"act {turn} done")
    group = Group(
        index=0, task=TASK, trajectories=(trajectory(0, True, *transcript.rows()), trajectory(1, False, row([-1, 0])))
    )
    credit = Credit(segment=Segment(trajectory=0, start=k, end=k), amount=1.0)
    found = training_rows([group], [Verdict(group=0, outcome="credited", credit=credit)], AdvantageConfig())
    credited = [id_ for r in found for id_ in r.row.ids[r.advantages_T == 1.5].tolist()]
    assert tuple(credited) == codec.action(f"act {k}")


def test_long_episodes_weigh_no_more_in_the_baseline() -> None:
    """Twelve turn rows of four trajectories: over trajectories all advantages are +-0.866 (ddof 1)."""
    sizes = [(1, 2), (0, 8), (0, 1), (1, 1)]
    members = tuple(
        trajectory(member, bool(reward), *(row([-1, 0]) for _ in range(turns)))
        for member, (reward, turns) in enumerate(sizes)
    )
    rows = training_rows([Group(index=0, task=TASK, trajectories=members)], [], AdvantageConfig(std="ddof1", eps=1e-4))
    assert len(rows) == 12
    found = [round(float(r.advantages_T[1]), 3) for r in rows]
    assert found == [0.866] * 2 + [-0.866] * 8 + [-0.866] + [0.866]
    assert [r.trajectory for r in rows] == [0] * 2 + [1] * 8 + [2] + [3]


def test_lost_members_leave_a_smaller_group() -> None:
    """A group of four that lost one keeps [1, 0, 0]: 1.1545 and -0.5773 (ddof 1, eps 1e-4); one alone gets 0."""
    three = tuple(trajectory(member, member == 0, row([-1, 0])) for member in range(3))
    one = (trajectory(0, True, row([-1, 0])),)
    groups = [Group(index=0, task=TASK, trajectories=three), Group(index=1, task=TASK, trajectories=one)]
    rows = training_rows(groups, [], AdvantageConfig(std="ddof1", eps=1e-4))
    np.testing.assert_allclose([r.advantages_T[1] for r in rows], [1.1545, -0.5773, -0.5773, 0.0], atol=5e-5)


def visits(member: int, success: bool, *steps: tuple[str, str]) -> Trajectory:
    """A trajectory with one token per turn, and these states and actions."""
    turns = tuple(Turn(text=action, action=action, result="", reward=0.0, state_key=state) for state, action in steps)
    return replace(trajectory(member, success, row([-1, *range(len(steps))])), turns=turns)


def test_step_advantages_compare_visits_of_one_state() -> None:
    """Two runs part in state a: the outcome, halved per turn, is 1 against 0 there, so the turn gets +-0.5 more."""
    runs = (visits(0, True, ("a", "left")), visits(1, False, ("a", "right"), ("b", "look")))
    group = Group(index=0, task=TASK, trajectories=runs)
    rows = training_rows([group], [], AdvantageConfig(omega=2.0, gamma=0.5))
    # The group: 1 and 0 against a mean of 0.5. State a: returns 1 and 0. State b was visited once.
    assert [r.advantages_T.tolist() for r in rows] == [[0.0, 1.5], [0.0, -1.5, -0.5]]


def test_steps_are_added_per_turn() -> None:
    """A critic's .5 and -.25 come on top of .5 and -.5 of the group, by trajectory and turn, in rows of either kind."""
    runs = (trajectory(0, True, row([-1, 0, -1, 1])), trajectory(1, False, row([-1, 0]), row([-1, 1])))
    group = Group(index=0, task=TASK, trajectories=runs)
    steps = [np.array([0.5, -0.25, 0.0, 0.0]), np.array([-0.25, 0.5, 0.0, 0.0])]
    rows = training_rows([group], [], AdvantageConfig(), steps=steps)
    assert [r.advantages_T.tolist() for r in rows] == [[0.0, 1.0, 0.0, 0.25], [0.0, -0.75], [0.0, 0.0]]


def test_without_a_baseline_nothing_but_credit_is_left() -> None:
    """Methods that measure every turn take no other advantage."""
    group = Group(
        index=0, task=TASK, trajectories=(trajectory(0, True, row([-1, 0, 1])), trajectory(1, False, row([0])))
    )
    credit = Credit(segment=Segment(trajectory=0, start=1, end=1), amount=0.5)
    verdicts = [Verdict(group=0, outcome="credited", credit=credit)]
    rows = training_rows([group], verdicts, AdvantageConfig(baseline="none"))
    assert [r.advantages_T.tolist() for r in rows] == [[0.0, 0.0, 0.5], [0.0]]


def test_centred_credit_adds_nothing_to_a_trajectory() -> None:
    """Credit 1 on one of four trained tokens: that one rises by 0.75, the others fall by 0.25; the sum stays."""
    members = (trajectory(0, True, row([-1, 0, 1]), row([2, 3])), trajectory(1, False, row([0])))
    credit = Credit(segment=Segment(trajectory=0, start=1, end=1), amount=1.0)
    verdicts = [Verdict(group=0, outcome="credited", credit=credit)]
    rows = training_rows([Group(index=0, task=TASK, trajectories=members)], verdicts, AdvantageConfig(), centred=True)
    assert [r.advantages_T.tolist() for r in rows] == [[0.0, 0.25, 1.25], [0.25, 0.25], [-0.5]]


def test_shared_credit_reaches_successes_that_did_the_same() -> None:
    """The same actions in the same states earn the same; another state, another action and a failure do not."""
    segment = Segment(trajectory=0, start=1, end=2)
    runs = (
        visits(0, True, ("s", "go"), ("a", "take"), ("b", "put"), ("c", "end")),
        visits(1, True, ("a", "take"), ("b", "put"), ("c", "end")),
        visits(2, True, ("a", "take"), ("x", "put"), ("c", "end")),
        visits(3, True, ("a", "look"), ("b", "put"), ("c", "end")),
        visits(4, False, ("a", "take"), ("b", "put"), ("d", "look")),
    )
    verdicts = [Verdict(group=0, outcome="credited", credit=Credit(segment=segment, amount=1.0))]
    group = Group(index=0, task=TASK, trajectories=runs)
    rows = training_rows([group], verdicts, AdvantageConfig(baseline="none"), shared=True)
    assert [r.advantages_T[1:].tolist() for r in rows] == [[0, 1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


def continuation(success: bool, *rows: TokenRow) -> Continuation:
    """A continuation that sampled these rows."""
    return Continuation(success=success, reward=float(success), turns=1, tokens=1, rows=rows)


def measured(*played: tuple[Continuation, ...], probe: Estimate | None = None) -> Verdict:
    """A verdict without credit on group 0, after these continuations, a tuple for each state."""
    arm = Arm(successes=1, n=2)
    estimate = Estimate(before=arm, after=arm, turns=0, tokens=0, played=played)
    return Verdict(group=0, outcome="measured", estimate=estimate, probe=probe)


PAIR = Group(
    index=0, task=TASK, trajectories=(trajectory(0, True, row([-1, 0])), trajectory(1, False, row([-1, 0, 1])))
)
"""Two runs, with one and two trained tokens."""


def test_continuations_are_compared_with_those_of_their_state() -> None:
    """One of four from the first state, two of three from the second: each outcome less its own state's mean.

    The third state taught nothing, and of one continuation nothing was sampled: it counts in the mean all the same.
    """
    first = (continuation(True, row([-1, 1, 1])), *(continuation(False, row([-1, 1])) for _ in range(3)))
    second = (continuation(True, row([-1, 2]), row([-1, 3])), continuation(True), continuation(False, row([-1, 2])))
    alike = (continuation(True, row([-1, 3])), continuation(True, row([-1, 3])))
    rows = training_rows([PAIR], [measured(first, second), measured(alike)], AdvantageConfig(baseline="none"))
    values = [r.advantages_T.tolist() for r in rows]
    assert values[:6] == [[0, 0], [0, 0, 0], [0, 0.75, 0.75], [0, -0.25], [0, -0.25], [0, -0.25]]
    np.testing.assert_allclose(values[6:], [[0, 1 / 3], [0, 1 / 3], [0, -2 / 3]])
    assert [r.trajectory for r in rows] == [0, 1, 2, 3, 4, 5, 6, 6, 8]
    assert [r.continued for r in rows] == [False] * 2 + [True] * 7
    assert continuation_metrics(rows) == {"continuation_rows": 7, "continuation_tokens": 8}
    # 3 trained tokens of rollouts and 8 of continuations; 2 rollouts and 6 continuations that sampled anything.
    np.testing.assert_allclose(row_weights(rows, "token_mean"), np.full(9, 1 / 11))
    np.testing.assert_allclose(
        row_weights(rows, "sequence_mean"), [1 / 8, 1 / 16, 1 / 16, 1 / 8, 1 / 8, 1 / 8, 1 / 16, 1 / 16, 1 / 8]
    )
    np.testing.assert_allclose(row_weights(rows, "dr_grpo", horizon=10), np.full(9, 1 / 80))


def test_continuations_are_divided_as_the_group_is() -> None:
    """One of four with ddof 1: 0.75 and -0.25 over 0.5."""
    played = (continuation(True, row([-1, 1])), *(continuation(False, row([-1, 1])) for _ in range(3)))
    rows = training_rows([PAIR], [measured(played)], AdvantageConfig(std="ddof1", eps=0.0))
    assert [r.advantages_T[1] for r in rows[2:]] == [1.5, -0.5, -0.5, -0.5]


def test_continuations_that_teach_nothing_change_no_row() -> None:
    """All alike from every state, none kept, or those of a probe: the rows are the rollouts' own, bit for bit."""
    alike = tuple(continuation(False, row([-1, 1])) for _ in range(8))
    mixed = (continuation(True, row([-1, 1])), continuation(False, row([-1, 1])))
    probed = measured(probe=measured(mixed).estimate)
    plain = training_rows([PAIR], [], AdvantageConfig())
    for verdict in (measured(alike, alike), measured(), probed, Verdict(group=0, outcome="verifier_failed")):
        rows = training_rows([PAIR], [verdict], AdvantageConfig())
        assert [(id(r.row), r.advantages_T.tolist(), r.trajectory, r.continued) for r in rows] == [
            (id(r.row), r.advantages_T.tolist(), r.trajectory, False) for r in plain
        ]
