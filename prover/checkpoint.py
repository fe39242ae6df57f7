"""Checkpoints: saved aside, flushed, renamed, and marked complete last; resumed exactly.

One folder per checkpoint, ``update-000020``: the policy as any transformers model folder (so its path can be used as
``policy.path``), ``optimizer.safetensors``, ``state.json``, ``arrays.safetensors`` where there is a critic, and the
empty file ``COMPLETE``, which is written last. A folder without it was interrupted: it is skipped, by name, and
replaced when that update is saved again.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

from prover.errors import CheckpointError

_MARK = "COMPLETE"
_log = structlog.get_logger(__name__)


class Saveable(Protocol):
    """A policy whose weights can be written."""

    def save(self, path: Path) -> None:
        """Write the policy into a folder."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint."""

    path: Path
    update: int
    """Number of updates done."""

    def state(self) -> dict[str, Any]:
        """What was saved beside weights and optimizer.

        Raises:
            CheckpointError: it cannot be read.
        """
        try:
            return dict(json.loads((self.path / "state.json").read_text()))
        except (OSError, ValueError) as error:
            raise self._damaged("state.json", error) from error

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that were saved beside them.

        Raises:
            CheckpointError: they cannot be read.
        """
        try:
            return dict(load_arrays(self.path / "arrays.safetensors"))
        except Exception as error:
            raise self._damaged("arrays.safetensors", error) from error

    def _damaged(self, file: str, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"expected a readable {file} in {self.path}, got {type(error).__name__}: {error}; remove this checkpoint, "
            "so that the run goes on from the one before"
        )

    def restore_optimizer(self, optimizer: torch.optim.Optimizer, names: Sequence[str]) -> None:
        """Load the optimizer's state into ``optimizer``, whose parameters are called ``names``, in order.

        Raises:
            CheckpointError: it was saved for other parameters.
        """
        try:
            stored = load_file(self.path / "optimizer.safetensors")
        except Exception as error:
            raise self._damaged("optimizer.safetensors", error) from error
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        expected = {f"{name}.{key}" for name in names for key in ("step", "exp_avg", "exp_avg_sq")}
        if stored and stored.keys() != expected:
            odd = sorted(stored.keys() ^ expected)[:3]
            raise CheckpointError(
                f"expected the optimizer state of {len(names)} parameters in {self.path}, got another set (first "
                f"differences: {odd}); resume with the policy that the run was started with"
            )
        for name, parameter in zip(names, parameters, strict=True):
            if stored:
                optimizer.state[parameter] = {key: stored[f"{name}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}


def save(
    folder: Path,
    update: int,
    policy: Saveable,
    optimizer: torch.optim.Optimizer,
    names: Sequence[str],
    state: Mapping[str, Any],
    *,
    keep: int,
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> Checkpoint:
    """Write a checkpoint after ``update`` updates; then drop all but the newest ``keep`` complete ones."""
    final = folder / f"update-{update:06d}"
    aside = folder / f".{final.name}.partial"
    for leftover in (aside, final):
        shutil.rmtree(leftover, ignore_errors=True)
    aside.mkdir(parents=True)
    policy.save(aside)
    save_file(_optimizer_tensors(optimizer, names), aside / "optimizer.safetensors")
    if arrays is not None:
        save_arrays(dict(arrays), aside / "arrays.safetensors")
    (aside / "state.json").write_text(json.dumps(dict(state) | {"update": update}))
    for path in sorted(aside.rglob("*")):
        _flush(path)
    aside.rename(final)
    (final / _MARK).touch()
    # The new folder has its name for good before an older one goes.
    for path in (final / _MARK, final, folder):
        _flush(path)
    for old in complete(folder)[:-keep]:
        shutil.rmtree(old.path)
    return Checkpoint(final, update)


def complete(folder: Path) -> list[Checkpoint]:
    """The complete checkpoints of a run, oldest first; interrupted ones are skipped with a warning that names them."""
    found = []
    for path in sorted(folder.glob("update-*")):
        if (path / _MARK).exists():
            found.append(Checkpoint(path, int(path.name.removeprefix("update-"))))
        else:
            _log.warning("checkpoint skipped", path=str(path), reason="its save was interrupted")
    return found


def _optimizer_tensors(optimizer: torch.optim.Optimizer, names: Sequence[str]) -> dict[str, torch.Tensor]:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        f"{name}.{key}": value.detach().clone()
        for name, parameter in zip(names, parameters, strict=True)
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
