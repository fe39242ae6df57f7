"""Whether the judge answers at all."""

import pytest

from prover.answers import AnswerWatch
from prover.attribution import Verdict
from prover.errors import FailureShareError


def outcomes(*names: str) -> list[Verdict]:
    """Verdicts with these outcomes."""
    return [Verdict(group=index, outcome=name, detail="...") for index, name in enumerate(names)]


DOWN, FINE = "no_proposal:judge_timeout", "no_proposal:nothing_distinctive"


def test_a_low_share_of_answers_is_told_once_until_it_recovers() -> None:
    """A warning when the share falls, silence while it stays low, and a warning when it falls again."""
    watch = AnswerWatch(warn_below=0.5, stop_below=0.0, window=4)
    told = [
        watch.see(verdicts)
        for verdicts in (
            outcomes("all_failed"),
            outcomes(DOWN, DOWN, FINE),
            outcomes(DOWN),
            outcomes("credited", "measured", FINE),
            outcomes(DOWN, "judge_failed", DOWN),
        )
    ]
    assert told == [
        None,
        "only 1 of the last 3 groups got an answer from the judge (timeout 2); the others are trained on as plain GRPO",
        None,
        None,
        "only 1 of the last 4 groups got an answer from the judge (timeout 2, error 1); "
        "the others are trained on as plain GRPO",
    ]


def test_a_run_may_be_stopped_for_want_of_answers() -> None:
    """Not before the window is full, and then with the causes."""
    watch = AnswerWatch(warn_below=0.0, stop_below=0.5, window=4)
    assert watch.see(outcomes(DOWN, DOWN, DOWN)) is None
    with pytest.raises(FailureShareError, match=r"at least 0\.5, got 1 of the last 4 groups .*\(timeout 3\)"):
        watch.see(outcomes(FINE))


def test_a_used_up_budget_is_no_outage() -> None:
    """Whoever sets a budget wants the run to go on without the judge."""
    watch = AnswerWatch(warn_below=1.0, stop_below=1.0, window=2)
    assert watch.see(outcomes(*["no_proposal:judge_budget"] * 4)) is None
    assert watch.see(outcomes(FINE, FINE, "no_proposal:judge_budget")) is None
