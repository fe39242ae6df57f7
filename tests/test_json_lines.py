"""Files of records that grow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from prover.errors import DataError
from prover.json_lines import read_records


def number(record: Mapping[str, Any]) -> int:
    """The number of a record."""
    return int(record["n"])


@pytest.mark.parametrize(
    ("text", "numbers", "left"),
    [
        ('{"n": 1}\n{"n": 2}\n', [1, 2], '{"n": 1}\n{"n": 2}\n'),
        ('{"n": 1}\n{"n": ', [1], '{"n": 1}\n'),
        ('{"n"', [], ""),
        ("", [], ""),
    ],
)
def test_what_was_being_written_is_taken_out(tmp_path: Path, text: str, numbers: list[int], left: str) -> None:
    """Whole lines are read; the next one that is added begins a line of its own."""
    file = tmp_path / "records.jsonl"
    file.write_text(text)
    assert read_records(file, number, "a number") == numbers
    assert file.read_text() == left


def test_no_file_holds_no_records(tmp_path: Path) -> None:
    """Nothing was written yet, and nothing is made."""
    assert read_records(tmp_path / "none.jsonl", number, "a number") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", ["oops", "{}", '{"n": "x"}', "3"])
def test_another_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    """The message says which line of which file holds no record."""
    file = tmp_path / "records.jsonl"
    file.write_text('{"n": 1}\n' + line + "\n")
    with pytest.raises(DataError, match=r"expected a number in line 2 of .*records\.jsonl"):
        read_records(file, number, "a number")
