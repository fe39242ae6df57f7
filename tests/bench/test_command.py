"""What ``prover eval`` measures: manifests and configs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from prover.bench.command import evaluate
from prover.errors import ConfigError


def test_a_manifest_is_measured_at_every_temperature_and_seed(
    manifest: Callable[..., Path], line_policy: Path, tmp_path: Path
) -> None:
    """Two of each are four files; seeds are joined in what is returned."""
    path = manifest(more="temperatures: [1.0, 0.5]\nseeds: [3, 4]\n")
    found = evaluate(path, ["max_turns=2"], str(line_policy), tmp_path / "out")
    assert [(key.suite, key.temperature, result.n, result.repeats) for key, result in found.items()] == [
        ("walk", 1.0, 18, 2),
        ("walk", 0.5, 18, 2),
    ]
    name = line_policy.name
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == [
        f"walk-{name}-T{heat}-s{seed}.json" for heat in ("0.5", "1") for seed in (3, 4)
    ]


def test_what_knows_no_temperature_is_measured_once(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """With as many seeds and episodes as asked for, from the first seed of the manifest on."""
    path = manifest(more="temperatures: [1.0, 0.5]\nseeds: [3]\n")
    (result,) = evaluate(path, [], "random", tmp_path / "out", episodes=4, seeds=2).values()
    assert result.n == 8
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == [
        "walk-random-s3.json",
        "walk-random-s4.json",
    ]


def test_a_config_brings_its_policy(line_policy: Path, tmp_path: Path) -> None:
    """Which plays under its own settings; the config lies beside the result."""
    settings = ["env.kind=line", f"policy.path={line_policy}", "evaluation.temperatures=[0.5]", "rollout.max_turns=2"]
    (result,) = evaluate(None, settings, None, tmp_path / "out", episodes=9, allow_leak=True).values()
    assert (result.n, result.setting["policy"]["name"]) == (9, line_policy.name)
    assert (tmp_path / "out" / "test.config.yaml").is_file()


def test_mistakes_leave_nothing_behind(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """A misspelt key is found before a folder is made."""
    with pytest.raises(ConfigError, match="unknown key 'max_turn'"):
        evaluate(manifest(), ["max_turn=2"], "random", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_no_folder_is_refused(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """As is one that cannot be written, before anything is played."""
    (tmp_path / "file").touch()
    with pytest.raises(
        ConfigError, match=r"expected a folder that can be written at .*; choose another with --out DIR"
    ):
        evaluate(manifest(), [], "random", tmp_path / "file")


def test_what_is_refused_leaves_the_config_of_what_lies_there(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """The config beside a result is the one that it was measured under."""
    out = tmp_path / "out"
    evaluate(manifest(), [], "random", out)
    with pytest.raises(ConfigError, match="expected to go on with what was begun"):
        evaluate(manifest(), ["max_turns=2"], "random", out, resume=True)
    assert "max_turns: 30" in (out / "walk.config.yaml").read_text()
