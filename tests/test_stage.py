"""From a config to what episodes need."""

import asyncio

import pytest

from prover import stage
from prover.config import load_config
from prover.errors import ConfigError, UnknownNameError
from prover.host import InlineHost, ProcessHost
from prover.records import Provenance, Sampling
from prover.testing import ScriptedPolicy, UniformPolicy


def test_rules_say_what_the_config_says() -> None:
    """Every setting of an episode reaches its rules."""
    config = load_config(
        None,
        [
            "env.kind=line",
            "rollout.max_turns=7",
            "rollout.retries=1",
            "rollout.on_cut=end",
            "rollout.train_on_cut=false",
            "rollout.episode_deadline_s=9.0",
            "policy.temperature=0.5",
            "policy.max_reply_tokens=4",
            "policy.decoding=free",
            "transcript.mode=window",
            "transcript.window=3",
            "transcript.system=Be brief.",
            "method=grpo",
        ],
    )
    rules = stage.rules(config)
    assert rules.sampling == Sampling(temperature=0.5, max_tokens=4)
    assert (rules.max_turns, rules.retries, rules.episode_deadline_s) == (7, 1, 9.0)
    assert (rules.end_on_cut, rules.train_on_cut, rules.admissible) == (True, False, False)
    assert (rules.mode, rules.window, rules.system) == ("window", 3, "Be brief.")
    assert not rules.record_states


def test_states_are_recorded_where_they_are_needed() -> None:
    """Only runs that branch pay for snapshots."""
    assert stage.rules(load_config(None, ["env.kind=line", "method=prover"])).record_states


def test_tasks_carry_their_split() -> None:
    """Tasks of a split come as records, limited to those that the config names."""
    config = load_config(None, ["env.kind=line", "env.tasks=[start-2, start-5]"])
    assert [(task.id, task.split) for task in stage.tasks(config.env, "train")] == [
        ("start-2", "train"),
        ("start-5", "train"),
    ]
    assert len(stage.tasks(config.env, "test")) == 9


def test_provenance_is_what_the_environment_says() -> None:
    """A shop knows what can be had and what it is made of; a toy says nothing."""
    shop = stage.provenance(load_config(None, ["env.kind=webshop"]).env, "test")
    assert shop.ceiling is not None
    assert 0.5 < shop.ceiling <= 1
    assert shop.manifest["splits"]
    assert stage.provenance(load_config(None, ["env.kind=line"]).env, "test") == Provenance()


def test_an_unknown_task_is_refused() -> None:
    """A task that the split does not have is an error that names it."""
    config = load_config(None, ["env.kind=line", "env.tasks=[start-99]"])
    with pytest.raises(UnknownNameError, match="start-99"):
        stage.tasks(config.env, "train")


@pytest.mark.parametrize(("isolation", "kind"), [("inline", InlineHost), ("process", ProcessHost)])
def test_isolation_chooses_the_host(isolation: str, kind: type) -> None:
    """Environments run in this process or in their own, and answer alike."""
    config = load_config(None, ["env.kind=line", f"rollout.isolation={isolation}", "rollout.concurrency=2"])

    async def first() -> tuple[type, str]:
        async with stage.host_pool(config) as hosts, hosts.host() as host:
            observation, _ = await host.reset("start-3", 0)
            return type(host), observation

    assert asyncio.run(first()) == (kind, "You are in cell 3 of 0..9.")


def test_a_rollout_plays_the_configured_environment() -> None:
    """An episode of the stage ends where its environment ends."""
    config = load_config(None, ["env.kind=line", "policy.decoding=free", "rollout.concurrency=1"])

    async def play() -> bool:
        async with stage.host_pool(config) as hosts:
            rollout = stage.rollout(config, ScriptedPolicy(["right"], repeat=True), hosts)
            groups = await rollout.groups(stage.tasks(config.env, "train")[7:8], 2, seed=0)
            return all(trajectory.success and trajectory.n_turns == 2 for trajectory in groups[0].trajectories)

    assert asyncio.run(play())


def probe(*overrides: str, policy: UniformPolicy) -> None:
    """Look at a task of LineEnv as a run does before it starts."""
    config = load_config(None, ["env.kind=line", "rollout.concurrency=1", *overrides])

    async def look() -> None:
        async with stage.host_pool(config) as hosts:
            await stage.probed(stage.rollout(config, policy, hosts), stage.tasks(config.env, "train")[0])

    asyncio.run(look())


@pytest.mark.parametrize(
    ("overrides", "std"),
    [([], "none"), (["credit.normalised=true"], "ddof1"), (["credit.normalised=true", "advantage.std=ddof0"], "ddof0")],
)
def test_credit_is_made_as_the_config_says(overrides: list[str], std: str) -> None:
    """Weight, sign, cap and top reach the rule; normalised credit is divided as the advantages are, else by ddof1."""
    rule = stage.credit_rule(
        load_config(None, ["credit.weight=4.0", "credit.sign=signed", "credit.cap=2.0", "credit.top=3", *overrides])
    )
    assert (rule.weight, rule.sign, rule.cap, rule.top, rule.std) == (4.0, "signed", 2.0, 3, std)


def test_a_policy_that_says_all_actions_passes() -> None:
    """The toy codec spells every action in at most six tokens."""
    probe(policy=UniformPolicy())


def test_a_policy_without_words_for_the_actions_is_refused() -> None:
    """Three tokens spell none of left, look and right with its end token."""
    with pytest.raises(ConfigError, match=r"can say none of 3 \(e\.g\. 'left'\)"):
        probe("policy.max_reply_tokens=3", policy=UniformPolicy())


def test_actions_that_cannot_be_said_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """Five tokens spell left and look but not right: the run goes on, and the log says so."""
    probe("policy.max_reply_tokens=5", policy=UniformPolicy())
    assert "cannot say every admissible action" in capsys.readouterr().out


def test_a_prompt_that_does_not_fit_is_refused() -> None:
    """An episode without a turn would look like a failure of the policy."""
    with pytest.raises(ConfigError, match="expected a first prompt and a reply of 16 tokens"):
        probe("policy.context_limit=20", policy=UniformPolicy(context_limit=20))
