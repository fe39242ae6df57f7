"""What a run leaves behind."""

import json
from pathlib import Path

import numpy as np
import pytest

from prover.errors import ConfigError
from prover.folder import RunFolder, plain
from prover.records import EndReason


def lines(path: Path) -> list[dict[str, object]]:
    """The records of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_new_folder_says_what_is_run(tmp_path: Path) -> None:
    """Config, versions and seed are there from the start."""
    folder = RunFolder(tmp_path / "runs" / "a")
    folder.begin("seed: 3 # é\n", 3)
    assert (folder.path / "config.yaml").read_text(encoding="utf-8") == "seed: 3 # é\n"
    versions = json.loads((folder.path / "versions.json").read_text())
    assert versions["seed"] == 3
    assert {"python", "prover", "numpy", "gymnasium", "torch"} <= versions.keys()
    assert versions["numpy"] == np.__version__
    assert folder.evaluations.is_dir()
    assert folder.checkpoints.is_dir()


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    """Nothing of the run in it is touched."""
    RunFolder(tmp_path).begin("first", 0)
    with pytest.raises(ConfigError, match="which holds a run; choose another with --run PATH, or add --resume"):
        RunFolder(tmp_path).begin("second", 0)
    assert (tmp_path / "config.yaml").read_text() == "first"


def test_resuming_keeps_the_config(tmp_path: Path) -> None:
    """A longer run goes on and is written down; another learning rate is refused, and the config stays as it was."""
    RunFolder(tmp_path).begin("seed: 1\noptim: {updates: 5, lr: 0.1}\n", 0)
    RunFolder(tmp_path).begin("seed: 1\noptim: {updates: 9, lr: 0.1}\n", 0, resume=True)
    assert "updates: 9" in (tmp_path / "config.yaml").read_text()
    with pytest.raises(ConfigError, match="another one in optim"):
        RunFolder(tmp_path).begin("seed: 1\noptim: {updates: 9, lr: 0.2}\n", 0, resume=True)
    assert "lr: 0.1" in (tmp_path / "config.yaml").read_text()


def test_there_must_be_a_run_to_resume(tmp_path: Path) -> None:
    """An empty folder cannot be resumed."""
    with pytest.raises(ConfigError, match=r"found no config\.yaml there; leave out --resume"):
        RunFolder(tmp_path).begin("", 0, resume=True)


def test_a_run_folder_is_new_or_resumed(tmp_path: Path) -> None:
    """A check leaves nothing behind; a new run needs it without a run, a resumed one with one."""
    folder = RunFolder(tmp_path / "a" / "b")
    folder.check("seed: 0")
    assert not folder.path.exists()
    with pytest.raises(ConfigError, match="expected a run to resume in"):
        folder.check("seed: 0", resume=True)
    folder.path.mkdir(parents=True)
    (folder.path / "config.yaml").write_text("seed: 0")
    folder.check("seed: 0", resume=True)
    with pytest.raises(ConfigError, match="which holds a run"):
        folder.check("seed: 0")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A file in its place is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="expected a folder that can be written"):
        RunFolder(tmp_path / "file").begin("", 0)


def test_records_are_appended_as_lines(tmp_path: Path) -> None:
    """Numpy values, enums and any text become JSON of one line each."""
    folder = RunFolder(tmp_path)
    folder.append("x.jsonl", {"a": np.float64(0.5), "b": np.arange(2), "c": np.bool_(True), EndReason.DONE: 1})
    folder.append("x.jsonl", {"text": "two\nlines\u2028\ud800", "end": EndReason.CUT})
    assert lines(tmp_path / "x.jsonl") == [
        {"a": 0.5, "b": [0, 1], "c": True, "done": 1},
        {"text": "two\nlines\u2028\ud800", "end": "cut"},
    ]


@pytest.mark.parametrize("value", [float("nan"), np.float64("inf"), np.array([float("nan")])])
def test_numbers_that_are_none_are_refused(value: object, tmp_path: Path) -> None:
    """A file of JSON lines can be read by any JSON reader; a refused record leaves no half line."""
    folder = RunFolder(tmp_path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        folder.append("x.jsonl", {"a": value})
    assert (tmp_path / "x.jsonl").read_text() == ""


def test_other_values_are_refused() -> None:
    """What JSON does not know has to be converted by whoever logs it."""
    with pytest.raises(TypeError, match="expected a value that JSON knows, got complex"):
        plain(1j)


def test_a_resumed_run_drops_the_lines_that_it_writes_anew(tmp_path: Path) -> None:
    """Lines of later updates go, and the half line of a killed run; the others stay as they were."""
    folder = RunFolder(tmp_path)
    for update in (0, 0, 1, 2):
        folder.append("x.jsonl", {"update": update, "text": "\u2028"})
    kept = (tmp_path / "x.jsonl").read_text().splitlines(keepends=True)[:3]
    with (tmp_path / "x.jsonl").open("a") as file:
        file.write('{"update": 1, "te')
    folder.truncate("x.jsonl", 2)
    assert (tmp_path / "x.jsonl").read_text() == "".join(kept)
    folder.truncate("x.jsonl", 0)
    assert (tmp_path / "x.jsonl").read_text() == ""
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]


def test_a_file_that_is_not_there_needs_no_truncation(tmp_path: Path) -> None:
    """A run that was stopped before its first update has no lines."""
    RunFolder(tmp_path).truncate("x.jsonl", 0)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The new text stands there, and nothing is left beside it."""
    folder = RunFolder(tmp_path)
    for text in ("one", "two"):
        folder.write("spent.json", text)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("spent.json", "two")]
