"""The run folder: everything that a run leaves behind.

::

    config.yaml          effective config, every default spelt out
    versions.json        versions of ProVer, Python and the packages that decide results; seed
    metrics.jsonl        one line per update
    judge_cache.jsonl    judgements of a chat model, so that none is paid for twice
    semantic.jsonl       opinions of a chat model on answers (SearchQA)
    retrieval.sqlite     what a retrieval server answered (SearchQA)
    trajectories.jsonl   readable episodes: task, turns, outcome, proposal, both success rates, credit
    evaluations/         results of `evaluate`, with every episode
    checkpoints/         see prover.checkpoint
    groups/              see prover.group_store; what `prover judge` judges again
"""

import json
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from prover import yaml_text
from prover.errors import ConfigError

_PACKAGES = ("prover", "torch", "transformers", "tokenizers", "numpy", "gymnasium", "pydantic")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths of a run and the ways to write to them."""

    path: Path

    def begin(self, config: str, seed: int, *, resume: bool = False) -> None:
        """Make the folder and write what is known at the start.

        Raises:
            ConfigError: see ``check``.
        """
        self.check(config, resume=resume)
        for part in (self.evaluations, self.checkpoints):
            part.mkdir(parents=True, exist_ok=True)
        (self.path / "config.yaml").write_text(config, encoding="utf-8")
        (self.path / "versions.json").write_text(json.dumps(versions() | {"seed": seed}, indent=1))

    def check(self, config: str, *, resume: bool = False) -> None:
        """Check that a run can start or go on here, before anything heavy loads; leaves nothing behind.

        Raises:
            ConfigError: it holds a run and is not to be resumed; is to be resumed and holds none, or one of another
                config (a resumed run may be longer, and be evaluated and saved more or less often); cannot be written.
        """
        held = (self.path / "config.yaml").exists()
        if held and not resume:
            raise ConfigError(
                f"expected a new run folder, got {self.path}, which holds a run; choose another with --run PATH, or "
                "add --resume"
            )
        if resume and not held:
            raise ConfigError(
                f"expected a run to resume in {self.path}, found no config.yaml there; leave out --resume"
            )
        if resume:
            _check_same(self.path / "config.yaml", config)
        new = not self.path.exists()
        make_writable(self.path, "--run PATH")
        if new:
            self.path.rmdir()

    @property
    def evaluations(self) -> Path:
        """Folder of evaluation results."""
        return self.path / "evaluations"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def groups(self) -> Path:
        """Folder of stored groups."""
        return self.path / "groups"

    def append(self, file: str, record: Mapping[str, Any]) -> None:
        """Add one JSON line to ``file``."""
        with (self.path / file).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record, default=plain, allow_nan=False) + "\n")

    def write(self, file: str, text: str) -> None:
        """Write a file anew; it is there whole or not at all."""
        path = self.path / file
        aside = path.with_suffix(".partial")
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)

    def truncate(self, file: str, updates: int) -> None:
        """Drop the lines of updates from ``updates`` on: a resumed run writes them anew."""
        path = self.path / file
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                if json.loads(line)["update"] < updates:
                    kept.append(line)
            except ValueError:  # The line that was being written when the run was stopped.
                continue
        aside = path.with_suffix(".partial")
        aside.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
        aside.replace(path)


def _check_same(stored: Path, config: str) -> None:
    """A run goes on under the config that it began with, or its folder would tell less than the truth."""
    old, new = (yaml_text.parse(text, str(stored)) for text in (stored.read_text(encoding="utf-8"), config))
    for found in (old, new):
        for section, key in (("optim", "updates"), ("evaluation", "every")):
            found.get(section, {}).pop(key, None)
        for section in ("run", "checkpoint"):
            found.pop(section, None)
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if changed:
        raise ConfigError(
            f"expected the config that the run in {stored.parent} began with, got another one in {', '.join(changed)}; "
            "resume without overrides (optim.updates, evaluation.every and checkpoint may change), or start a new run"
        )


def plain(value: Any) -> Any:
    """Numpy scalars and arrays as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"expected a value that JSON knows, got {type(value).__name__}; convert it before it is logged")


def make_writable(path: Path, option: str) -> None:
    """Make a folder, with those above it, and check that files can be written there.

    Args:
        path: the folder.
        option: how to choose another, e.g. ``--out DIR``.

    Raises:
        ConfigError: it cannot be made or written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise ConfigError(
            f"expected a folder that can be written at {path}, got {error}; choose another with {option}"
        ) from error


def versions() -> dict[str, str]:
    """Versions of what decides results."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found
