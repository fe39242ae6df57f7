"""The config of runs: defaults, kinds, and what cannot go together."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.config import RunConfig, SftConfig, effective_yaml, load_config, load_sft_config
from prover.env_config import AlfworldEnvConfig, CoinEnvConfig, CustomEnvConfig, LineEnvConfig
from prover.errors import ConfigError
from prover.judge_config import ContrastJudgeConfig, CustomJudgeConfig, NoJudgeConfig, RandomSegmentJudgeConfig

EXAMPLES = Path(__file__).parents[1] / "examples"


def refused(*overrides: str) -> str:
    """What ``load_config`` says about wrong overrides."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, overrides)
    return str(caught.value)


def test_the_defaults_are_those_of_the_paper() -> None:
    """K is 8, lambda is 1, gains only, 1 to 3 successes of 8, segments of at most 4 turns, no divisor."""
    config = load_config()
    assert (config.verify.continuations, config.verify.eligible_min, config.verify.eligible_max) == (8, 1, 3)
    assert (config.credit.weight, config.credit.sign, config.advantage.std) == (1.0, "positive", "none")
    assert (config.rollout.group_size, config.judge) == (8, ContrastJudgeConfig(max_length=4))


@pytest.mark.parametrize(
    ("overrides", "env"),
    [
        ([], AlfworldEnvConfig()),
        (["env.task_types=[place, light]"], AlfworldEnvConfig(task_types=("place", "light"))),
        (["env.kind=line", "env.tasks=[start-7]"], LineEnvConfig(tasks=("start-7",))),
        (["env={kind: coin, turns: 3}"], CoinEnvConfig(turns=3)),
        (["env.kind=my_env:Maze", "env.options={walls: 3}"], CustomEnvConfig(kind="my_env:Maze", options={"walls": 3})),
        (["env.kind=ns/Maze-v0"], CustomEnvConfig(kind="ns/Maze-v0")),
    ],
)
def test_the_kind_chooses_the_environment(overrides: list[str], env: Any) -> None:
    """Shipped environments have keys of their own; any other takes options."""
    assert load_config(None, overrides).env == env


@pytest.mark.parametrize(
    ("overrides", "judge"),
    [
        (["judge.max_length=2"], ContrastJudgeConfig(max_length=2)),
        (["judge.kind=random_segment"], RandomSegmentJudgeConfig(max_length=1)),
        (["judge.kind=none"], NoJudgeConfig()),
        (["judge.kind=my:Judge"], CustomJudgeConfig(kind="my:Judge")),
    ],
)
def test_the_kind_chooses_the_judge(overrides: list[str], judge: Any) -> None:
    """Shipped judges have keys of their own; any other takes options."""
    assert load_config(None, overrides).judge == judge


@pytest.mark.parametrize(
    ("minibatch", "microbatch", "words"),
    [
        (
            5,
            3,
            "rollout.groups 6 x rollout.group_size 4 = 24 trajectories do not divide by optim.minibatch 5; "
            "valid choices: 1, 2, 3, 4, 6, 8, 12, 24, or null for all",
        ),
        (
            32,
            3,
            "rollout.groups 6 x rollout.group_size 4 = 24 trajectories do not divide by optim.minibatch 32; "
            "valid choices: 1, 2, 3, 4, 6, 8, 12, 24, or null for all",
        ),
        (8, 3, "optim.minibatch 8 trajectories do not divide by optim.microbatch 3; valid choices: 1, 2, 4, 8"),
        (
            "null",
            5,
            "rollout.groups 6 x rollout.group_size 4 = 24 trajectories do not divide by optim.microbatch 5; "
            "valid choices: 1, 2, 3, 4, 6, 8, 12, 24",
        ),
    ],
)
def test_sizes_that_do_not_divide_are_refused(minibatch: Any, microbatch: int, words: str) -> None:
    """The message has the product, the divisor and the valid choices."""
    sizes = [f"optim.minibatch={minibatch}", f"optim.microbatch={microbatch}"]
    assert refused("rollout.groups=6", "rollout.group_size=4", *sizes) == f"config: {words}."


@given(groups=st.integers(1, 12), size=st.integers(2, 12), minibatch=st.integers(1, 40), microbatch=st.integers(1, 40))
def test_sizes_are_refused_exactly_when_something_would_be_left_over(
    groups: int, size: int, minibatch: int, microbatch: int
) -> None:
    """A mini-batch divides the update; a micro-batch divides the mini-batch or holds all of it."""
    fits = (groups * size) % minibatch == 0 and (microbatch >= minibatch or minibatch % microbatch == 0)
    overrides = [f"rollout.groups={groups}", f"rollout.group_size={size}"]
    overrides += [f"optim.minibatch={minibatch}", f"optim.microbatch={microbatch}", "verify.eligible_min=1"]
    if fits:
        assert load_config(None, overrides).optim.minibatch == minibatch
    else:
        assert "trajectories do not divide by" in refused(*overrides)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("rollout.group_size=1", "rollout.group_size: expected greater than or equal to 2, got 1"),
        ("verify.continuations=0", "verify.continuations: expected greater than or equal to 1, got 0"),
        ("policy.temperature=0", "policy.temperature: expected greater than 0, got 0"),
        ("evaluation.temperatures=[]", "evaluation.temperatures: "),
        ("evaluation.temperatures=[0]", "evaluation.temperatures.0: expected greater than 0, got 0"),
        ("verify.null_probe=1.5", "verify.null_probe: expected less than or equal to 1, got 1.5"),
        ("judge.max_length=5", "judge.max_length: expected less than or equal to 4, got 5"),
        ("verify.eligible_min=4", "verify: eligible_min (4) is above eligible_max (3)"),
        ("policy.max_reply_tokens=1024", "policy: max_reply_tokens (1024) must be below context_limit (1024)"),
        ("credit.sign=negative", "credit.sign: expected 'positive' or 'signed', got 'negative'"),
        ("credit.lambda=2", "unknown key 'lambda' in section 'credit': did you mean 'weight'?"),
        ("optim.learing_rate=1e-6", "unknown key 'learing_rate' in section 'optim': did you mean 'lr'?"),
        ("rollout.group-size=4", "unknown key 'group-size' in section 'rollout': did you mean 'group_size'?"),
        ("optim.max_length=4", "unknown key 'max_length' in section 'optim': did you mean judge.max_length?"),
        ("env.dat=x", "unknown key 'dat' in section 'env': did you mean 'data'?"),
        ("env.task_types=[]", "env.task_types: "),
    ],
)
def test_what_makes_no_sense_is_refused(override: str, words: str) -> None:
    """Ranges, misspelt keys and keys of other sections are refused with their place."""
    assert refused(override).startswith(f"config: {words}")


def test_no_group_could_be_judged() -> None:
    """As many successes as members leave no failure to contrast them with."""
    sizes = ["rollout.group_size=2", "verify.eligible_min=2"]
    assert "verify.eligible_min 2 must be below rollout.group_size 2" in refused(*sizes)
    assert load_config(None, [*sizes, "method=grpo"]).verify.eligible_min == 2


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        [
            "env.kind=my:Env",
            "env.options={a: [1, no, 1e-3, ~]}",
            "run=runs/x",
            "optim.minibatch=8",
            "optim.dual_clip=3",
        ],
        ["env.kind=coin", "judge.kind=random_segment", "env.tasks=['007', '1e6']", "transcript.system='a: b'"],
    ],
)
def test_the_effective_config_is_read_back_equal(tmp_path: Path, overrides: list[str]) -> None:
    """What is saved with a run makes the same run."""
    config = load_config(None, overrides)
    (tmp_path / "config.yaml").write_text(effective_yaml(config), encoding="utf-8")
    assert load_config(tmp_path / "config.yaml") == config


def test_a_config_can_be_made_in_python() -> None:
    """The models take Python values and check them alike."""
    config = RunConfig(env=CoinEnvConfig(turns=2), judge=NoJudgeConfig(), run=Path("x"))
    assert (config.env.kind, config.judge.kind) == ("coin", "none")
    with pytest.raises(ValueError, match="turns"):
        CoinEnvConfig(turns=0)


def test_sft_needs_a_folder_and_heads_that_divide() -> None:
    """The folder has no default, and the widths of the model fit each other."""
    with pytest.raises(ConfigError, match=r"^config: out is missing; it has no default\.$"):
        load_sft_config()
    with pytest.raises(ConfigError, match=re.escape("hidden 128 does not divide by heads 3")):
        load_sft_config(None, ["out=x", "heads=3"])
    with pytest.raises(ConfigError, match=re.escape("heads 4 does not divide by kv_heads 3")):
        load_sft_config(None, ["out=x", "kv_heads=3"])
    assert load_sft_config(None, ["out=x"]) == SftConfig(out=Path("x"))


def test_names_are_a_pattern() -> None:
    """What is no regular expression is refused when the config is read."""
    assert load_sft_config(None, ["out=x", "names=b0\\w{8}"]).names == "b0\\w{8}"
    with pytest.raises(ConfigError, match="is no regular expression"):
        load_sft_config(None, ["out=x", "names=b0["])


@pytest.mark.parametrize("file", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_the_examples_are_valid(file: str) -> None:
    """Every example can be loaded."""
    (load_sft_config if "sft" in file else load_config)(EXAMPLES / file)


def test_a_temperature_is_measured_once() -> None:
    """The same temperature twice would write one result over the other."""
    with pytest.raises(ConfigError, match="name one twice"):
        load_config(None, ["evaluation.temperatures=[1.0, 0.5, 1.0]"])


def test_only_what_is_played_can_be_trained_on() -> None:
    """The other modes of the verifier play no continuations."""
    assert load_config(None, ["verify.train_continuations=true"]).verify.train_continuations
    with pytest.raises(ConfigError, match="train_continuations needs mode monte_carlo: mode anchor plays no"):
        load_config(None, ["verify.train_continuations=true", "verify.mode=anchor"])
