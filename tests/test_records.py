"""The nouns: they cannot be changed, and what they derive is right."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

from prover import records
from prover.records import (
    Arm,
    EndReason,
    Estimate,
    Failure,
    FailureCause,
    Group,
    Segment,
    Task,
    TokenRow,
    Trajectory,
    Turn,
)

CLASSES = [value for value in vars(records).values() if dataclasses.is_dataclass(value)]
TASK = Task(id="a", split="train")


def row(*turns: int) -> TokenRow:
    """A row whose tokens belong to these turns."""
    return TokenRow(
        ids=np.zeros(len(turns), np.int64),
        turn_of_token=np.array(turns, np.int64),
        loss_mask=np.array(turns, np.int64) >= 0,
        logprobs=np.zeros(len(turns)),
        support=(None,) * len(turns),
    )


def trajectory(success: bool = False) -> Trajectory:
    """Two turns in two rows."""
    turns = tuple(Turn(text="", action="", result=result, reward=0.0) for result in ("first", "second"))
    return Trajectory(
        task=TASK,
        member=0,
        seed=0,
        policy_version=0,
        opening="opening",
        turns=turns,
        rows=(row(-1, -1, 0), row(-1, 1, 1)),
        reward=0.5,
        success=success,
        end=EndReason.DONE,
    )


@pytest.mark.parametrize("record", CLASSES, ids=lambda record: record.__name__)
def test_records_are_frozen_slotted_and_named(record: type) -> None:
    """No field can be set, added or given by position."""
    parameters = record.__dataclass_params__  # type: ignore[attr-defined]  # what dataclasses keeps of its options
    assert parameters.frozen
    assert "__slots__" in vars(record)
    assert all(field.kw_only for field in dataclasses.fields(record))


def test_observations_precede_their_turns() -> None:
    """Before turn 0 stands the opening, before turn t the answer to turn t - 1."""
    found = trajectory()
    assert [found.observation(turn) for turn in range(3)] == ["opening", "first", "second"]


def test_sampled_tokens_are_counted_in_all_rows() -> None:
    """Prompts and observations do not count."""
    found = trajectory()
    assert (found.n_turns, found.n_sampled, len(found.rows[0])) == (2, 3, 3)


def test_reply_probabilities_are_products_over_tokens() -> None:
    """One token of probability 1/2 in turn 0, two of 1/2 and 1/4 in turn 1; a turn without tokens has none."""
    first, second = trajectory().rows
    rows = (
        dataclasses.replace(first, logprobs=np.log([1.0, 1.0, 0.5])),
        dataclasses.replace(second, logprobs=np.log([1.0, 0.5, 0.25])),
    )
    sampled = dataclasses.replace(trajectory(), rows=rows)
    assert sampled.reply_probabilities() == pytest.approx([0.5, 0.125])
    half = dataclasses.replace(trajectory(), rows=rows[:1]).reply_probabilities()
    assert half == pytest.approx([0.5, math.nan], nan_ok=True)


def test_outcomes_of_a_group_are_successes() -> None:
    """Graded rewards do not enter: 1 for success and 0 otherwise."""
    group = Group(index=0, task=TASK, trajectories=(trajectory(True), trajectory(False)))
    assert group.rewards_G.tolist() == [1.0, 0.0]
    assert group.n_success == 1
    assert Group(index=0, task=TASK, trajectories=()).rewards_G.shape == (0,)


def test_segments_include_both_ends() -> None:
    """A segment of one turn starts and ends with it."""
    assert [Segment(trajectory=0, start=2, end=end).length for end in (2, 4)] == [1, 3]


def test_rates_leave_failures_out() -> None:
    """The difference is after minus before, of those that finished; without any there is no rate."""
    before, after = Arm(successes=2, n=8), Arm(successes=3, n=4, failures=4)
    assert Estimate(before=before, after=after, turns=0, tokens=0).delta == 0.5
    assert math.isnan(Arm(successes=0, n=0, failures=8).rate)


def test_records_pickle() -> None:
    """They can be sent to another process."""
    failure = Failure(
        cause=FailureCause.ERROR, where="env.step", task="a", member=0, seed=0, turn=1, detail="ValueError"
    )
    assert pickle.loads(pickle.dumps(failure)) == failure
    found = pickle.loads(pickle.dumps(trajectory()))
    assert found.turns == trajectory().turns
    assert found.rows[1].turn_of_token.tolist() == [-1, 1, 1]
