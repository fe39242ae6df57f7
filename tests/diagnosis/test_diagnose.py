"""Whole diagnoses of a tiny policy."""

import json
from pathlib import Path

import pytest

from prover.config import RunConfig, load_config
from prover.diagnosis.book import Book
from prover.diagnosis.diagnose import Diagnosis, diagnose, sections
from prover.diagnosis.figures import Summary
from prover.errors import ConfigError
from prover.judge_config import ContrastJudgeConfig


def config(policy: Path, *overrides: str) -> RunConfig:
    """Four groups of four on LineEnv, and two continuations."""
    settings = ["env.kind=line", f"policy.path={policy}", "rollout.groups=4", "rollout.group_size=4"]
    return load_config(None, [*settings, "rollout.max_turns=10", "verify.continuations=2", *overrides])


@pytest.fixture(scope="module")
def whole(line_policy: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Summary, Path]:
    """An uninterrupted diagnosis of three batches, and its folder."""
    out = tmp_path_factory.mktemp("diagnosis")
    return diagnose(Diagnosis(config=config(line_policy), out=out, batches=3)), out


def test_a_diagnosis_tells_all_that_it_promises(whole: tuple[Summary, Path]) -> None:
    """Groups, values, pivotality, selectors and gains, also in the folder."""
    found, out = whole
    assert (found.batches, found.groups, found.judge, found.judged) == (3, 12, "contrast", True)
    assert found.values
    assert found.pivotality is not None
    names = ["contrast", "random_segment", "entropy", "divergence", "anchor", "fixed", "unreached fact"]
    names.append("two segments")
    assert [one.name for one in found.selectors] == names
    assert found.grpo is not None
    assert {one.rule for one in found.gains} >= {"as configured", "gigpo", "contrast", "contrast, signed", "best turn"}
    stored = json.loads((out / "summary.json").read_text())
    assert stored["success"]["mean"] == found.success.mean
    assert len((out / "batches.jsonl").read_text().splitlines()) == 3


def test_an_interrupted_diagnosis_goes_on(whole: tuple[Summary, Path], line_policy: Path, tmp_path: Path) -> None:
    """One batch first, then the half-written second and the third: the same figures, and no batch made twice."""
    told: list[tuple[int, int]] = []
    plan = Diagnosis(config=config(line_policy), out=tmp_path, batches=1)
    first = diagnose(plan)
    assert (first.batches, first.grpo) == (1, None)
    with (tmp_path / "batches.jsonl").open("a") as lines:
        lines.write('{"batch": 1, "tas')
    found = diagnose(Diagnosis(config=plan.config, out=tmp_path, batches=3), watch=lambda *done: told.append(done))
    assert told == [(2, 3), (3, 3)]
    strip = {"cpu_seconds": 0.0}
    assert found.gains == whole[0].gains
    assert {**json.loads((tmp_path / "summary.json").read_text()), **strip} == {
        **json.loads((whole[1] / "summary.json").read_text()),
        **strip,
    }


def test_what_is_complete_is_only_told(whole: tuple[Summary, Path], line_policy: Path) -> None:
    """The same command makes nothing anew, and fewer batches are the first ones."""
    told: list[tuple[int, int]] = []
    plan = Diagnosis(config=config(line_policy), out=whole[1], batches=2)
    found = diagnose(plan, watch=lambda *done: told.append(done))
    assert (found.batches, told) == (2, [])
    assert diagnose(Diagnosis(config=plan.config, out=whole[1], batches=3)) == whole[0]


def test_a_folder_holds_one_config(whole: tuple[Summary, Path], line_policy: Path) -> None:
    """Batches of different settings are never mixed."""
    other = config(line_policy, "verify.continuations=3")
    with pytest.raises(ConfigError, match="got another one in verify"):
        diagnose(Diagnosis(config=other, out=whole[1], batches=3))


def test_no_batches_are_refused(line_policy: Path, tmp_path: Path) -> None:
    """There would be nothing to tell."""
    with pytest.raises(ConfigError, match="expected at least 1 batch, got 0"):
        diagnose(Diagnosis(config=config(line_policy), out=tmp_path, batches=0))
    assert Book(tmp_path).read() == {}


def test_the_judge_of_the_config_is_among_the_selectors(line_policy: Path) -> None:
    """With its own settings in the place of the shipped ones; one that names everything is no selector."""
    mine = sections(config(line_policy, "judge.kind=divergence", "judge.which=first"))
    assert mine["divergence"].model_dump() == {"kind": "divergence", "which": "first"}
    assert len(mine) == 7
    own = sections(config(line_policy, "judge.kind=module:Judge"))
    assert [*own][-1] == "module:Judge"
    assert len(sections(config(line_policy, "judge.kind=every_turn"))) == 7


def test_references_are_among_the_selectors(line_policy: Path) -> None:
    """Facts that no failure reached, the expert where the environment has one, and two segments of a group."""
    found = sections(load_config(None, ["env.kind=alfworld", f"policy.path={line_policy}"]))
    assert [*found][-3:] == ["unreached fact", "expert", "two segments"]
    assert found["two segments"] == ContrastJudgeConfig(segments=2)
    assert found["unreached fact"] == ContrastJudgeConfig(rare=0.0, facts_only=True)
    assert "expert" not in sections(config(line_policy))
