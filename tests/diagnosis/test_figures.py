"""Figures of batches made by hand."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from surveyed import batch, course

from prover.diagnosis.book import Batch, Named
from prover.diagnosis.figures import Summary, summary
from prover.diagnosis.rules import Rules
from prover.records import Segment

RULES = Rules(selectors=("sharp",), judge="sharp", continuations=8, eligible_max=3)
NAMES = RULES.parts()


def told(*batches: Batch, gradients: Any = None, judge: str | None = "sharp") -> Summary:
    """The summary of some batches, whose costs and gradients are filled in."""
    full = [Batch.of_record({**_record(one), "costs": dict.fromkeys(NAMES, 0) | dict(one.costs)}) for one in batches]
    if gradients is None:
        gradients = [np.ones((len(NAMES), 2), np.float32)] * len(batches)
    return summary(full, gradients, replace(RULES, judge=judge), judged=True, group_size=4)


def _record(one: Batch) -> dict[str, Any]:
    from dataclasses import asdict

    record: dict[str, Any] = json.loads(json.dumps(asdict(one)))
    return record


def test_groups_are_counted() -> None:
    """Of four groups two have one success, two none; per task a quarter and nothing, so that the mean is 1/8."""
    found = told(batch(0), batch(1))
    assert (found.batches, found.groups, found.eligible, found.surveyed) == (2, 4, 2, 2)
    assert found.by_successes == {0: 0.5, 1: 0.5}
    assert found.success.mean == pytest.approx(0.125)
    assert found.invalid_share == pytest.approx(0.1)
    assert found.cpu_seconds == 3.0


def test_values_are_told_by_turn_where_successes_are_short() -> None:
    """Three turns: pooled over 8 and 4 continuations 0, 3 and 9 of 12."""
    found = told(batch())
    assert [(value.place, value.rate.mean) for value in found.values] == [
        ("turn 0", 0),
        ("turn 1", pytest.approx(3 / 12)),
        ("turn 2", pytest.approx(9 / 12)),
    ]


def test_values_are_told_by_quarter_where_they_are_long() -> None:
    """Of eight turns those before turns 0, 2, 4 and 6."""
    long = course([0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 4, 4, 4, 4])
    found = told(batch(courses=(long,), named=()))
    assert [value.place for value in found.values] == ["0", "0.25", "0.5", "0.75"]
    assert [value.rate.mean for value in found.values] == pytest.approx([0, 2 / 12, 8 / 12, 10 / 12])


def test_pivotality_is_measured_afresh() -> None:
    """Turn 1 claims 4/8 by the first pass and has 2/4 by the second; turns 0 and 1 have 1/4 and 2/4 there: mean 3/8."""
    found = told(batch()).pivotality
    assert found is not None
    assert (found.claimed, found.best.mean, found.random.mean) == (0.5, 0.5, 0.375)
    assert found.difference.mean == pytest.approx(0.125)


def test_a_lucky_choice_gains_nothing() -> None:
    """The first pass saw 8 of 8 after turn 1, the second no difference anywhere: pivotality 0 despite a claim of 1."""
    found = told(batch(courses=(course([0, 0, 8], [2, 2, 2]),))).pivotality
    assert found is not None
    assert (found.claimed, found.best.mean, found.difference.mean) == (1.0, 0.0, 0.0)


def test_groups_of_one_task_are_one_piece_of_evidence() -> None:
    """Two successes of task t and one of task u are two values."""
    courses = [(course([0, 0, 4], [0, 0, 4], task=task),) for task in ("t", "t", "u")]
    found = told(*(batch(number, courses=one) for number, one in enumerate(courses))).pivotality
    assert found is not None
    assert found.difference.n == 2


def test_selectors_are_compared_with_random_segments() -> None:
    """Turn 1 is worth 9/12 - 3/12; turns 0 and 1 are worth 3/12 and 6/12, on average 4.5/12."""
    (found,) = told(batch(costs={"sharp": 10})).selectors
    assert (found.asked, found.fired, found.measured, found.positive, found.failed) == (1, 1, 1, 1, 0)
    assert found.delta is not None
    assert found.delta.mean == pytest.approx(6 / 12)
    assert found.over_random is not None
    assert found.over_random.mean == pytest.approx(1.5 / 12)
    assert found.turn_share == pytest.approx(10 / 50)


def test_longer_segments_are_compared_with_as_long_ones() -> None:
    """The only segment of two turns is as good as itself."""
    both = Segment(trajectory=0, start=0, end=1)
    (found,) = told(batch(named=(Named(selector="sharp", group=0, outcome="measured", segment=both),))).selectors
    assert found.delta is not None
    assert found.delta.mean == pytest.approx(9 / 12)
    assert found.over_random is not None
    assert found.over_random.mean == 0


def test_silence_and_failure_are_told_apart() -> None:
    """One judge had nothing to say, another one could not be asked; neither was measured."""
    named = [
        Named(selector="sharp", group=0, outcome=outcome) for outcome in ("no_proposal:judge_timeout", "no_proposal:x")
    ]
    found = told(*(batch(number, named=(one,)) for number, one in enumerate(named))).selectors[0]
    assert (found.asked, found.fired, found.failed, found.delta, found.positive_share95) == (2, 0, 1, None, None)


def test_gains_are_related_to_grpo() -> None:
    """All parts are (1, 1) in every batch: the rules differ in length only, and gain what GRPO gains."""
    found = told(*(batch(number) for number in range(4)))
    assert found.grpo is not None
    assert found.grpo.mean == pytest.approx(2**0.5)
    assert {round(one.relative.mean, 6) for one in found.gains if one.relative is not None} == {0.0}
    assert [one.weight for one in found.gains if one.rule == "sharp"] == [1, 4, 8, 16]


def test_continuations_are_set_against_larger_batches() -> None:
    """With 40 turns of continuations for 40 of rollouts, GRPO's batch doubles.

    GRPO is (1, 1) and (1, -1) by turns: signal 2/3 x 1 of a mean square of 2, doubled of 2/3 + (4/3) / 2 = 4/3.
    """
    gradients = []
    for sign in (1, -1, 1, -1):
        parts = np.zeros((len(NAMES), 2), np.float32)
        parts[0] = 1, sign
        gradients.append(parts)
    batches = [batch(number, costs={"sharp": 40}) for number in range(4)]
    found = next(one for one in told(*batches, gradients=gradients).gains if one.rule == "sharp")
    assert found.extra_turns == 1
    # With a batch left out one sign is in the majority and products change, but the first two figures are exact.
    base, doubled = (2 / 3) / 2**0.5, (2 / 3) / (4 / 3) ** 0.5
    assert found.same_turns is not None
    assert found.same_turns.mean == pytest.approx(base / doubled - 1)


def test_too_few_batches_have_no_gains() -> None:
    """Two say all but what takes three."""
    found = told(batch(0), batch(1))
    assert (found.grpo, found.gains) == (None, ())


def test_without_successes_there_is_nothing_to_value() -> None:
    """No eligible group: no values, no pivotality, and the reason why."""
    found = told(batch(successes=(0, 0), eligible=(), courses=(), chosen=0, named=(), unmeasured=("lost",)))
    assert (found.values, found.pivotality, found.surveyed, found.unmeasured) == ((), None, 0, ("lost",))
    assert found.selector("sharp") is not None
    assert found.selector(None) is None


def test_the_summary_is_saved(tmp_path: Path) -> None:
    """As JSON without anything that JSON does not know."""
    told(batch(0), batch(1), batch(2)).save(tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text())["batches"] == 3


def test_turns_that_may_not_be_named_are_not_drawn() -> None:
    """A success of one turn has no turn that a judge may name."""
    named = (Named(selector="sharp", group=0, outcome="no_proposal:x"),)
    assert told(batch(courses=(course([4], [2]),), named=named)).pivotality is None
