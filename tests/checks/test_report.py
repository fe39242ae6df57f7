"""Reports: what is shown and what is raised."""

import pytest

from prover.checks import Report, Result
from prover.errors import EnvError

OK = Result(rule="tasks", status="ok")
SKIPPED = Result(rule="reseed", status="skipped", detail="there is none")
FAILED = Result(rule="answers", status="failed", detail="expected a str,\ngot 7")


def test_a_report_without_failures_passes() -> None:
    """A skipped rule is no failure."""
    report = Report(env="Toy", results=(OK, SKIPPED))
    report.raise_if_failed()
    assert report.passed
    assert str(report) == "Toy keeps the contract\n  ok       tasks\n  skipped  reseed: there is none"


def test_a_report_with_failures_raises_all_of_them() -> None:
    """The error and the text hold every failure with its detail, and no other rule's."""
    report = Report(env="Toy", results=(OK, FAILED, FAILED))
    assert not report.passed
    assert report.failures == (FAILED, FAILED)
    assert str(report).splitlines()[:4] == [
        "Toy breaks 2 rules",
        "  ok       tasks",
        "  failed   answers: expected a str,",
        "           got 7",
    ]
    with pytest.raises(
        EnvError, match=r"(?s)expected Toy to keep.*got 2 broken:\n- answers: exp.*\n- answers"
    ) as raised:
        report.raise_if_failed()
    assert "tasks" not in str(raised.value)
