"""What is kept of a measurement that did not end."""

import json
from pathlib import Path

import pytest

from prover.bench.partial import Partial
from prover.errors import ConfigError, DataError
from prover.evaluate import Episode
from prover.records import Failure, FailureCause

HEAD = {"suite": {"name": "walk", "version": 1}, "seed": 0, "episodes": 3}
FAILURE = Failure(
    cause=FailureCause.ERROR, where="env.step", task="start-1", member=0, seed=2, turn=3, detail="Trace\nOops: no"
)


def episode(task: str, success: bool = True) -> Episode:
    """How an episode ended."""
    return Episode(task=task, kind="", seed=5, success=success, reward=1.0, turns=2, invalid=0, metrics={"f1": 0.5})


def begun(path: Path) -> None:
    """Two episodes and a failure, then let go."""
    with Partial(path, HEAD, resume=False) as partial:
        partial.add(2, episode("c"), 1.5, {"usage": {"calls": 1}})
        partial.add(0, episode("a", False), 2.5, {"usage": {"calls": 3}})
        partial.add(1, FAILURE, 4.0, {"usage": {"calls": 4}})


def kept(path: Path) -> set[int]:
    """Places of the episodes that are not to be played again."""
    with Partial(path, HEAD, resume=True) as partial:
        return set(partial.done)


def test_finished_episodes_are_taken_up_again(tmp_path: Path) -> None:
    """Failed ones are to be played again; time and costs go on from the last line."""
    begun(tmp_path / "x.jsonl")
    with Partial(tmp_path / "x.jsonl", HEAD, resume=True) as found:
        assert found.done == {2: episode("c"), 0: episode("a", False)}
        assert (found.seconds, found.cost) == (4.0, {"usage": {"calls": 4}})
        found.add(1, episode("b"), 5.0, {})
    assert kept(tmp_path / "x.jsonl") == {0, 1, 2}


def test_every_episode_is_on_disk_when_it_ends(tmp_path: Path) -> None:
    """Without closing the file."""
    with Partial(tmp_path / "x.jsonl", HEAD, resume=False) as partial:
        partial.add(0, episode("a"), 1.0, {})
        assert json.loads((tmp_path / "x.jsonl").read_text().splitlines()[-1])["episode"]["task"] == "a"


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    """What comes after it stands on a line of its own."""
    begun(tmp_path / "x.jsonl")
    text = (tmp_path / "x.jsonl").read_text()
    (tmp_path / "x.jsonl").write_text(text + text.splitlines()[1][:40])
    with Partial(tmp_path / "x.jsonl", HEAD, resume=True) as found:
        found.add(1, episode("b"), 5.0, {})
    assert kept(tmp_path / "x.jsonl") == {0, 1, 2}


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    """Without leave to go on, the message says how."""
    begun(tmp_path / "x.jsonl")
    with pytest.raises(ConfigError, match=r"x\.jsonl, a measurement that was interrupted; add --resume"):
        Partial(tmp_path / "x.jsonl", HEAD, resume=False)


def test_another_measurement_is_not_gone_on_with(tmp_path: Path) -> None:
    """What differs is named with both values, and the file stays as it was."""
    begun(tmp_path / "x.jsonl")
    before = (tmp_path / "x.jsonl").read_bytes()
    with pytest.raises(ConfigError, match=r"another measurement: episodes 3 then and 4 now; choose another place"):
        Partial(tmp_path / "x.jsonl", HEAD | {"episodes": 4}, resume=True)
    assert (tmp_path / "x.jsonl").read_bytes() == before


def test_an_empty_file_is_no_measurement(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "x.jsonl").write_text("")
    with pytest.raises(DataError, match=r"x\.jsonl without a first line"):
        Partial(tmp_path / "x.jsonl", HEAD, resume=True)


def test_what_could_not_begin_leaves_nothing_behind(tmp_path: Path) -> None:
    """So that nobody is told to go on with it; an interrupted one stays when it is opened and nothing is added."""
    with Partial(tmp_path / "x.jsonl", HEAD, resume=False):
        pass
    assert not (tmp_path / "x.jsonl").exists()
    begun(tmp_path / "x.jsonl")
    assert kept(tmp_path / "x.jsonl") == kept(tmp_path / "x.jsonl") == {0, 2}
