"""Methods by name."""

import copy
from pathlib import Path

import pytest

from prover.config import RunConfig, effective_yaml, load_config
from prover.errors import ConfigError
from prover.judge_config import ContrastJudgeConfig, EveryTurnJudgeConfig, RandomSegmentJudgeConfig
from prover.methods import METHODS, NO_JUDGE


def of(method: str, *overrides: str) -> RunConfig:
    """The config of a method, with a run to keep up with where it needs one."""
    budget = ["rollout.match_turns=runs/other"] if method == "grpo_budget" else []
    return load_config(None, [f"method={method}", *budget, *overrides])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_a_valid_config_that_can_be_read_back(method: str, tmp_path: Path) -> None:
    """What a run stores about itself is the whole of its settings."""
    config = of(method)
    (tmp_path / "config.yaml").write_text(effective_yaml(config))
    assert load_config(tmp_path / "config.yaml") == config
    assert config.judged == (method not in NO_JUDGE)


def test_prover_is_the_paper() -> None:
    """K 8, lambda 1, gains only, 1 to 3 successes: what one gets without naming a method."""
    assert of("prover") == load_config()
    config = load_config()
    assert (config.verify.continuations, config.credit.weight, config.credit.sign) == (8, 1.0, "positive")
    assert (config.verify.eligible_min, config.verify.eligible_max) == (1, 3)
    assert config.judge == ContrastJudgeConfig()


def test_methods_differ_in_what_defines_them() -> None:
    """Each preset sets what its paper sets."""
    assert of("rloo").advantage.baseline == "rloo"
    assert of("dr_grpo").optim.aggregation == "dr_grpo"
    assert (of("gigpo").advantage.omega, of("gigpo").advantage.gamma) == (1.0, 0.95)
    assert (of("critic_td").advantage.critic_weight, of("critic_td").advantage.omega) == (1.0, 0.0)
    vine = of("vineppo")
    assert isinstance(vine.judge, EveryTurnJudgeConfig)
    assert (vine.judge.of, vine.advantage.baseline, vine.credit.sign) == ("all", "none", "signed")
    assert (vine.verify.mixed_only, vine.verify.continuations) == (False, 9)
    assert isinstance(of("random_segment").judge, RandomSegmentJudgeConfig)
    assert of("judge_trusted").verify.mode == "trust"
    tree = of("spo_tree")
    assert isinstance(tree.judge, EveryTurnJudgeConfig)
    assert (tree.judge.of, tree.judge.pieces, tree.credit.sign) == ("shortest", 3, "signed")
    assert (tree.verify.continuations, tree.verify.train_continuations) == (6, True)
    assert (tree.verify.eligible_min, tree.verify.eligible_max, tree.advantage.baseline) == (1, 3, "mean")
    cheap, safe = of("prover_cheap"), of("prover_safe")
    assert (cheap.verify.continuations, cheap.credit.weight) == (4, 8.0)
    assert (safe.credit.weight, safe.credit.sign, safe.credit.cap) == (4.0, "signed", 4.0)


def test_what_is_said_last_wins(tmp_path: Path) -> None:
    """The file's method, the file's keys, the method of an override, the other overrides."""
    file = tmp_path / "run.yaml"
    file.write_text("method: prover_cheap\nverify: {continuations: 2}\njudge: {kind: entropy}\n")
    plain = load_config(file)
    assert (plain.verify.continuations, plain.credit.weight, plain.judge.kind) == (2, 8.0, "entropy")
    named = load_config(file, ["credit.weight=3.0", "method=vineppo"])
    assert (named.verify.continuations, named.credit.weight, named.judge.kind) == (9, 3.0, "every_turn")
    critic = load_config(file, ["method=critic_td", "method=grpo"])
    assert critic.advantage.critic_weight == 0
    back = load_config(file, ["method=prover"])
    assert (back.verify.continuations, back.judge.kind) == (8, "entropy")


@pytest.mark.parametrize("method", ["vineppo", "spo_chain", "prover", "judge_trusted"])
def test_a_method_after_spo_tree_is_that_method(method: str, tmp_path: Path) -> None:
    """Whoever repeats a run of it by another method gets neither its pieces nor its training on continuations."""
    (tmp_path / "config.yaml").write_text(effective_yaml(of("spo_tree")))
    config = load_config(tmp_path / "config.yaml", [f"method={method}"])
    assert not config.verify.train_continuations
    assert config.verify == of(method).verify
    if method in ("vineppo", "spo_chain"):
        assert config.judge == of(method).judge


def test_a_method_without_a_judge_leaves_the_judge_alone() -> None:
    """A run can be repeated without credit by its method alone, and with it again."""
    config = of("grpo", "judge.kind=entropy")
    assert (config.judge.kind, config.judged) == ("entropy", False)


def test_an_unknown_method_is_refused() -> None:
    """With the names that there are."""
    with pytest.raises(ConfigError, match=r"method: expected 'grpo'.*got 'ppo'"):
        of("ppo")


def test_a_budget_needs_a_run_to_keep_up_with() -> None:
    """Groups of plain GRPO grow until they have taken as many turns as that run."""
    with pytest.raises(ConfigError, match=r"grpo_budget needs rollout\.match_turns"):
        load_config(None, ["method=grpo_budget"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("place", ["file", "override"])
def test_overrides_leave_the_methods_as_they_are(method: str, place: str, tmp_path: Path) -> None:
    """What one config changes about its method is not found in the next one, wherever the method was named."""
    before = copy.deepcopy(dict(METHODS))
    file = tmp_path / "config.yaml"
    file.write_text(f"method: {method}\n" if place == "file" else "seed: 0\n")
    named = [] if place == "file" else [f"method={method}"]
    budget = ["rollout.match_turns=runs/other"] if method == "grpo_budget" else []
    changes = ["advantage.omega=0.5", "advantage.eps=0.5", "verify.null_probe=0.75", "credit.cap=2.0"]
    changed = load_config(file, [*named, *budget, *changes, "optim.lr=1.0", "judge.kind=fixed"])
    assert (changed.advantage.omega, changed.verify.null_probe, changed.credit.cap) == (0.5, 0.75, 2.0)
    assert dict(METHODS) == before
    again = load_config(file, [*named, *budget])
    assert again == of(method) if budget == [] else again.advantage == of(method).advantage
