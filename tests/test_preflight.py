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


def test_the_model_of_a_judge_is_looked_for_and_not_loaded(model: Path) -> None:
    """A folder that looks like a model passes, the policy itself passes, a folder that is not there is named."""
    rules = ["env.kind=line", f"policy.path={model}", "judge.kind=llm"]
    preflight.check_config(load_config(None, [*rules, "judge.backend={kind: local}"]))
    preflight.check_config(load_config(None, [*rules, f"judge.backend={{kind: local, path: {model}}}"]))
    with pytest.raises(DataError, match=r"judge\.backend\.path, got nowhere"):
        preflight.check_config(load_config(None, [*rules, "judge.backend={kind: local, path: nowhere}"]))


def test_the_key_of_a_judges_service_is_looked_for(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable without a key is named before anything loads."""
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    backend = "judge.backend={kind: http, url: 'http://localhost:1/v1', model: m, key_env: JUDGE_KEY}"
    rules = ["env.kind=line", f"policy.path={model}", "judge.kind=llm", backend]
    with pytest.raises(ConfigError, match="JUDGE_KEY"):
        preflight.check_config(load_config(None, rules))
    monkeypatch.setenv("JUDGE_KEY", "secret")
    preflight.check_config(load_config(None, rules))


def test_a_missing_package_is_named_with_its_extra(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch, the message says how to get it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ConfigError, match=re.escape("The package 'torch' is not installed: pip install 'prover[train]'.")
    ):
        preflight.check_packages()


def test_a_new_policy_needs_a_folder_of_its_own(model: Path, tmp_path: Path) -> None:
    """A model is never overwritten, and a place that cannot be written is found before anything is taught."""
    preflight.check_new_policy(tmp_path / "new")
    with pytest.raises(ConfigError, match="which holds a model"):
        preflight.check_new_policy(model)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Expected a folder that can be written"):
        preflight.check_new_policy(tmp_path / "file")
