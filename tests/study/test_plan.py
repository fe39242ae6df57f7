"""Plans of studies: what is run, in which order, with which settings."""

from pathlib import Path

import pytest

from prover.errors import ConfigError
from prover.study.plan import jobs, load_plan

PLAN = """
config: examples/households.yaml
common: [optim.updates=2]
starts: {one: default, other: runs/other}
methods:
  budget: [method=grpo_budget]
  grpo: [method=grpo]
  more: [method=prover, credit.weight=4]
matches: {budget: more}
against: [grpo]
seeds: 2
first_seed: 5
"""


def written(tmp_path: Path, text: str = PLAN) -> Path:
    """The plan as a file."""
    path = tmp_path / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_start_seed_and_method_is_run_once(tmp_path: Path) -> None:
    """Two starts, two seeds and three methods make twelve runs, each in a folder of its own."""
    blocks = jobs(load_plan(written(tmp_path)), tmp_path)
    assert list(blocks) == [("one", 5), ("other", 5), ("one", 6), ("other", 6)]
    assert len({job.config.run for block in blocks.values() for job in block}) == 12


def test_settings_come_from_the_config_the_common_ones_and_the_method(tmp_path: Path) -> None:
    """Later ones win, and seed, start and folder are the study's."""
    (*_, more, _) = jobs(load_plan(written(tmp_path)), tmp_path)["other", 6]
    config = more.config
    assert (config.method, config.credit.weight, config.optim.updates) == ("prover", 4.0, 2)
    assert (config.seed, config.policy.path, config.rollout.groups) == (6, "runs/other", 8)
    assert config.run == tmp_path / "runs" / "other" / "more-6"


def test_a_matched_run_comes_before_the_one_that_keeps_up_with_it(tmp_path: Path) -> None:
    """The budget is read from the run of the same start and seed, which has to be there."""
    block = jobs(load_plan(written(tmp_path)), tmp_path)["one", 5]
    assert [job.method for job in block] == ["grpo", "more", "budget"]
    assert block[-1].config.rollout.match_turns == tmp_path / "runs" / "one" / "more-5"


def test_a_start_is_measured_once(tmp_path: Path) -> None:
    """The first run of each start measures it; the others would find the same."""
    blocks = jobs(load_plan(written(tmp_path)), tmp_path)
    measuring = [(job.start, job.method, job.seed) for b in blocks.values() for job in b if job.config.evaluation.start]
    assert measuring == [("one", "grpo", 5), ("other", "grpo", 5)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("against: [grpo]", "against: [gpro]", r"expected a method of the plan \(budget, grpo, more\), got 'gpro'"),
        ("matches: {budget: more}", "matches: {budget: grpo, grpo: more}", "grpo cannot be matched"),
        ("starts:", "stars:", "did you mean 'starts'"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """The message names the value."""
    with pytest.raises(ConfigError, match=message):
        load_plan(written(tmp_path, PLAN.replace(old, new)))


def test_a_wrong_setting_names_its_method(tmp_path: Path) -> None:
    """Every run is checked before the first one starts."""
    plan = load_plan(written(tmp_path, PLAN.replace("credit.weight=4", "credit.wait=4")))
    with pytest.raises(ConfigError, match=r"method more: .*did you mean 'weight'"):
        jobs(plan, tmp_path)
