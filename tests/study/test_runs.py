"""Running a plan for real, with runs of one small update."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from prover.errors import ConfigError, DataError
from prover.study.plan import jobs, load_plan
from prover.study.runs import _missing, finished, run

PLAN = """
config: examples/households.yaml
common: [optim.updates=1, evaluation.episodes=2, "evaluation.temperatures=[1.0]", rollout.groups=2,
         rollout.group_size=4]
starts: {shipped: default}
methods:
  prover: [method=prover, verify.continuations=2]
  grpo_budget: [method=grpo_budget]
matches: {grpo_budget: prover}
against: [grpo_budget]
seeds: 1
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study of two runs."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    told: list[tuple[int, int]] = []
    run(load_plan(folder / "plan.yaml"), folder, processes=1, watch=lambda done, total: told.append((done, total)))
    assert told == [(2, 2)]
    return folder


def test_records_hold_what_the_metrics_say(study: Path) -> None:
    """Turns are those of rollouts and continuations; the start was measured by the first run only."""
    prover, budget = finished(load_plan(study / "plan.yaml"), study)
    (line,) = (json.loads(text) for text in (study / "runs/shipped/prover-0/metrics.jsonl").read_text().splitlines())
    assert prover.turns_U == (line["turns"] + line["verifier_turns"],)
    assert prover.success_U == (line["success"],)
    assert prover.before.keys() == {"1"}
    assert budget.before == {}
    assert (prover.episodes, budget.episodes) == (2, 2)


def test_weights_are_not_kept(study: Path) -> None:
    """Of a finished run stay its config, metrics, evaluations and record."""
    kept = {path.name for path in (study / "runs/shipped/prover-0").iterdir()}
    assert kept == {"config.yaml", "versions.json", "metrics.jsonl", "evaluations", "record.json"}


def test_what_is_done_is_not_done_again(study: Path) -> None:
    """A second call trains nothing: a mark left in a record is still there."""
    path = study / "runs/shipped/prover-0/record.json"
    record = json.loads(path.read_text()) | {"measured": 1234}
    path.write_text(json.dumps(record))
    prover, _ = run(load_plan(study / "plan.yaml"), study, processes=1, watch=lambda done, total: None)
    assert prover.measured == 1234


@pytest.mark.parametrize("change", ["optim.updates=2", "optim.lr=1e-5"])
def test_runs_of_another_plan_are_refused(study: Path, tmp_path: Path, change: str) -> None:
    """A plan that was changed does not show old figures under its new settings."""
    (tmp_path / "plan.yaml").write_text(PLAN.replace("optim.updates=1", f"optim.updates=1, {change}"))
    with pytest.raises(ConfigError, match="expected"):
        run(load_plan(tmp_path / "plan.yaml"), study, processes=1, watch=lambda done, total: None)


def test_what_was_begun_goes_on(study: Path) -> None:
    """A run that was stopped before its record is resumed: its metrics are not written twice."""
    folder = study / "runs/shipped/grpo_budget-0"
    before = json.loads((folder / "record.json").read_text())
    (folder / "record.json").unlink()
    _, budget = run(load_plan(study / "plan.yaml"), study, processes=1, watch=lambda done, total: None)
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 1
    assert list(budget.success_U) == before["success_U"]


def test_stored_records_are_not_trained_again(study: Path, tmp_path: Path) -> None:
    """Of a run that is missing the one that it has to keep up with is trained, stored or not."""
    prover, budget = finished(load_plan(study / "plan.yaml"), study)
    told: list[tuple[int, int]] = []
    found = run(
        load_plan(study / "plan.yaml"),
        tmp_path,
        processes=1,
        watch=lambda done, total: told.append((done, total)),
        stored=[prover, budget],
    )
    assert found == [prover, budget]
    assert told == []
    assert not (tmp_path / "runs").exists()
    (block,) = jobs(load_plan(study / "plan.yaml"), tmp_path).values()
    assert [job.method for job in _missing(block, {("shipped", "prover", 0)})] == ["prover", "grpo_budget"]
    assert [job.method for job in _missing(block, {("shipped", "grpo_budget", 0)})] == ["prover"]


def test_stored_records_of_other_runs_are_refused(study: Path, tmp_path: Path) -> None:
    """A record of two updates is none of a plan whose runs have one."""
    prover, _ = finished(load_plan(study / "plan.yaml"), study)
    longer = replace(prover, success_U=(0.0, 0.5))
    with pytest.raises(ConfigError, match="expected a run of 1 updates in the stored record of shipped prover 0, got"):
        run(load_plan(study / "plan.yaml"), tmp_path, processes=1, watch=lambda done, total: None, stored=[longer])


def test_a_run_that_fails_ends_the_study(tmp_path: Path) -> None:
    """The error is the run's own."""
    plan = PLAN.replace("default", str(tmp_path / "nowhere"))
    (tmp_path / "plan.yaml").write_text(plan, encoding="utf-8")
    with pytest.raises(DataError, match="nowhere"):
        run(load_plan(tmp_path / "plan.yaml"), tmp_path, processes=1, watch=lambda done, total: None)
