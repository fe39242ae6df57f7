"""Checkpoints: atomic, complete or skipped, exact."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prover import checkpoint
from prover.errors import CheckpointError


class Weights:
    """A policy of one tensor."""

    def save(self, path: Path) -> None:
        """Write it."""
        (path / "model.bin").write_bytes(b"x" * 1000)


def optimizer(seed: int = 0) -> tuple[torch.optim.Optimizer, list[str]]:
    """AdamW with two parameters after one step."""
    generator = torch.Generator().manual_seed(seed)
    parameters = [torch.randn(3, generator=generator, requires_grad=True) for _ in range(2)]
    found = torch.optim.AdamW(parameters, lr=0.1)
    for parameter in parameters:
        parameter.grad = torch.randn(3, generator=generator)
    found.step()
    return found, ["first", "second"]


def save(folder: Path, update: int, keep: int = 2) -> checkpoint.Checkpoint:
    """A checkpoint after some update."""
    adam, names = optimizer()
    return checkpoint.save(folder, update, Weights(), adam, names, {"tasks": "t"}, keep=keep)


def test_a_checkpoint_brings_the_optimizer_back(tmp_path: Path) -> None:
    """Step counts and both moments are equal bit for bit after a restore."""
    saved = save(tmp_path, 3)
    assert (saved.update, saved.state()) == (3, {"tasks": "t", "update": 3})
    original, names = optimizer()
    fresh = torch.optim.AdamW([torch.zeros(3, requires_grad=True) for _ in names], lr=0.1)
    saved.restore_optimizer(fresh, names)
    for old, new in zip(original.state.values(), fresh.state.values(), strict=True):
        assert all(torch.equal(old[key], new[key]) for key in ("step", "exp_avg", "exp_avg_sq"))


def test_an_optimizer_of_other_parameters_is_refused(tmp_path: Path) -> None:
    """Names that differ from the saved ones are an error that shows them."""
    saved = save(tmp_path, 1)
    other = torch.optim.AdamW([torch.zeros(3, requires_grad=True)], lr=0.1)
    with pytest.raises(CheckpointError, match="second"):
        saved.restore_optimizer(other, ["first"])


def test_arrays_come_back(tmp_path: Path) -> None:
    """What was saved beside weights and optimizer is equal bit for bit; a checkpoint without it says so."""
    adam, names = optimizer()
    kept = {"a": np.array([[0.1, -0.0]], np.float32), "b": np.zeros((0, 2), np.float32)}
    saved = checkpoint.save(tmp_path, 2, Weights(), adam, names, {}, keep=2, arrays=kept)
    found = saved.arrays()
    assert {name: (array.tobytes(), array.shape) for name, array in found.items()} == {
        name: (array.tobytes(), array.shape) for name, array in kept.items()
    }
    with pytest.raises(CheckpointError, match=r"expected a readable arrays\.safetensors"):
        save(tmp_path, 1).arrays()


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    """Older complete checkpoints go once a newer one is complete."""
    for update in (1, 2, 3):
        save(tmp_path, update)
    assert [found.update for found in checkpoint.complete(tmp_path)] == [2, 3]


def test_an_interrupted_checkpoint_is_skipped_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without its completion mark does not count, and the log says so."""
    save(tmp_path, 1)
    broken = save(tmp_path, 2)
    (broken.path / "COMPLETE").unlink()
    assert [found.update for found in checkpoint.complete(tmp_path)] == [1]
    assert "update-000002" in capsys.readouterr().out


_KILLED_SAVE = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from prover import checkpoint
from test_checkpoint import save

count = 0
def boundary(event, args):
    global count
    if event in ("open", "os.rename", "os.remove", "shutil.rmtree", "os.mkdir") and sys.argv[1] in str(args[0]):
        count += 1
        if count == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(boundary)
save(Path(sys.argv[1]), 2)
print("finished", count)
"""


@pytest.mark.timeout(280)
def test_a_save_killed_anywhere_leaves_the_last_complete_one(tmp_path: Path) -> None:
    """Killed at file boundaries of a save, the previous checkpoint is still complete and the next save goes through."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    boundary, finished = 1, False
    while not finished:
        folder = tmp_path / f"run-{boundary}"
        save(folder, 1)
        command: list[Any] = [sys.executable, "-c", _KILLED_SAVE, folder, str(boundary), Path(__file__).parent]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        finished = "finished" in done.stdout
        assert finished or done.returncode == -9, done.stderr
        found = [one.update for one in checkpoint.complete(folder)]
        assert found in ([1], [1, 2])
        save(folder, 2)
        assert [one.update for one in checkpoint.complete(folder)] == [1, 2]
        shutil.rmtree(folder)
        boundary += 4
    assert boundary > 8


@pytest.mark.parametrize("file", ["state.json", "optimizer.safetensors"])
def test_a_damaged_file_is_named(tmp_path: Path, file: str) -> None:
    """A complete checkpoint whose file was damaged later says which one and what to do."""
    saved = save(tmp_path, 1)
    (saved.path / file).write_bytes(b"junk")
    adam, names = optimizer()
    with pytest.raises(CheckpointError, match=rf"expected a readable {file} in .*remove this checkpoint"):
        saved.restore_optimizer(adam, names) if file.startswith("optimizer") else saved.state()
