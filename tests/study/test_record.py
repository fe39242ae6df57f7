"""Records of runs: to JSON and back."""

import json
from pathlib import Path

import pytest
from study_records import run

from prover.errors import DataError
from prover.study.record import Record, read


def test_a_record_comes_back_from_json() -> None:
    """Nothing is lost on the way, and curves are tuples again."""
    record = run("grpo", 3, 0.25)
    assert Record.of_json(json.loads(record.json())) == record


def test_records_are_read_from_a_file(tmp_path: Path) -> None:
    """One a line."""
    path = tmp_path / "records.jsonl"
    path.write_text(run("grpo", 0, 0.3).json() + "\n" + run("more", 0, 0.4).json() + "\n", encoding="utf-8")
    assert [record.method for record in read(path)] == ["grpo", "more"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message says what to name."""
    with pytest.raises(DataError, match=r"name a records\.jsonl"):
        read(tmp_path / "nothing.jsonl")
