"""What is printed of a comparison."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from test_judgements import FOUND

from prover.judge_table import print_summary
from prover.judgements import Summary, agreements, standings

JUDGES = ["random_segment", "sharp", "mute"]


def shown(capsys: pytest.CaptureFixture[str], **changes: object) -> list[str]:
    """Lines of the tables and notes."""
    fields = {"stored": 9, "eligible": 4, "left_out": (), "continuations": 4, "approximate": {}} | changes
    judges, agreement = standings(FOUND, JUDGES), agreements(FOUND, JUDGES)
    print_summary(Summary(**fields, judges=judges, agreement=agreement), Path("out"), Console(width=80))  # type: ignore[arg-type]  # a table of fields
    return capsys.readouterr().out.splitlines()


def test_tables_fit_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """In 80 columns nothing is cut off, and every judge has its line in both tables."""
    lines = shown(capsys)
    assert not any("…" in line for line in lines)
    words = [line.split() for line in lines]
    assert ["random_segment", "4", "25", "[5,", "70]", "+.06", "[-.44,", "+.56]"] in words
    assert ["sharp", "3", "67", "[21,", "94]", "+.42", "[-.53,", "+1.37]", "+.33", "[-1.10,", "+1.77]"] in words
    assert ["mute", "0", "n/a", "n/a", "n/a"] in words
    assert ["sharp", "4", "75", "2.3", "0.25", "0", "100", "0.5"] in words
    assert ["mute", "3", "0", "n/a", "0.00", "2", "0", "0"] in words
    assert ["random_segment", "and", "sharp", "33", "67", "3"] in words
    assert lines[-1] == "Every judgement: out/verdicts.jsonl; these figures: out/summary.json"


def test_why_a_judge_gave_no_answer_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """One cause of a failing judge stands below the tables; of a judge that failed throughout no share is shown."""
    away = replace(FOUND[9], outcome="no_proposal:judge_payment", detail="the account is empty")
    summary = Summary(
        stored=1,
        eligible=1,
        left_out=(),
        continuations=4,
        approximate={},
        judges=standings([*FOUND[:4], away], JUDGES),
        agreement=(),
    )
    print_summary(summary, Path("out"), Console(width=80))
    text = capsys.readouterr().out
    assert "mute gave no answer in 1 groups, for one: the account is empty The same command" in text
    assert ["mute", "1", "n/a", "n/a", "0.00", "1", "0", "0"] in [line.split() for line in text.splitlines()]
    assert text.count("gave no answer") == 1


def test_what_limits_the_figures_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Groups that could not be brought back and policies that are not the right one stand below the tables."""
    text = "\n".join(shown(capsys, left_out=("no state",) * 2, approximate={40: "update-000060"}))
    assert "9 stored groups, 4 eligible, 2 of these left out. K = 4" in text
    assert text.count("Left out, for one: no state") == 1
    assert "APPROXIMATE: update 40 was continued by update-000060, not by the policy that sampled" in text


def test_long_waits_are_whole_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """A model that takes minutes is shown in seconds, without an exponent."""
    (standing,) = standings([replace(FOUND[4], seconds=1234.4)], ["sharp"])
    summary = Summary(
        stored=1, eligible=1, left_out=(), continuations=4, approximate={}, judges=(standing,), agreement=()
    )
    print_summary(summary, Path("out"), Console(width=80))
    assert "1234" in capsys.readouterr().out.split()
