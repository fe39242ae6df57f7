"""Checks before torch is loaded."""

import importlib.util
import re
from pathlib import Path

import pytest

from prover import preflight
from prover.config import load_config
from prover.errors import ConfigError, DataError, UnknownNameError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that looks like a model."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def test_a_sound_config_passes(model: Path) -> None:
    """Names, tasks of both splits, packages and policy are there."""
    preflight.check_config(load_config(None, ["env.kind=line", f"policy.path={model}"]))


@pytest.mark.parametrize(
    ("override", "error", "words"),
    [
        ("env.split=trian", UnknownNameError, "trian"),
        ("evaluation.split=tset", UnknownNameError, "tset"),
        ("judge.kind=contrst", UnknownNameError, "contrst"),
        ("policy.path=nowhere", DataError, "nowhere"),
    ],
)
def test_what_is_missing_is_named(model: Path, override: str, error: type[Exception], words: str) -> None:
    """Each part is checked."""
    with pytest.raises(error, match=words):
        preflight.check_config(load_config(None, ["env.kind=line", f"policy.path={model}", override]))


def test_a_missing_package_is_named_with_its_extra(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch, the message says how to get it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ConfigError, match=re.escape("The package 'torch' is not installed: pip install 'prover[train]'.")
    ):
        preflight.check_packages()
