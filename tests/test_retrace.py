"""From recorded actions back to states."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import planted
import pytest

from prover.errors import EnvError, SnapshotError
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.protocols import TextEnv
from prover.records import Group, Sampling, Task, Turn
from prover.replay import ReplayEnv
from prover.retrace import retrace
from prover.rollout import EpisodeRules, Rollout
from prover.testing import CoinEnv, LineEnv, ScriptedPolicy, UniformPolicy

RULES = EpisodeRules(max_turns=6, sampling=Sampling(max_tokens=16), text_format=Bare())
Env = Callable[[], TextEnv]


def played(env: Env, actions: Sequence[str], task: str, rules: EpisodeRules = RULES, size: int = 4) -> Group:
    """A group of random episodes."""

    async def play() -> Group:
        async with HostPool(lambda: InlineHost(env), 4) as hosts:
            rollout = Rollout(policy=UniformPolicy(actions), hosts=hosts, rules=rules)
            return (await rollout.groups([Task(id="x", split="train"), Task(id=task, split="train")], size, seed=3))[1]

    return asyncio.run(play())


def retraced(env: Env, group: Group) -> Group:
    """The group with its states."""

    async def play() -> Group:
        async with HostPool(lambda: InlineHost(env), 2) as hosts:
            return await retrace(hosts, group)

    return asyncio.run(play())


def bare(group: Group, **changes: Any) -> Group:
    """The group as it comes from the disk: without snapshots."""
    runs = (
        replace(run, turns=tuple(replace(turn, snapshot=None, **changes) for turn in run.turns))
        for run in group.trajectories
    )
    return replace(group, trajectories=tuple(runs))


def turns(group: Group) -> list[tuple[Turn, ...]]:
    """Turns of all members."""
    return [run.turns for run in group.trajectories]


@pytest.mark.parametrize(
    ("env", "actions", "task"),
    [
        (LineEnv, ["left", "right", "jump"], "start-7"),
        (partial(CoinEnv, turns=3), ["open"], "coin"),
        (lambda: ReplayEnv(planted.NoSnapshot()), ["toss", "right"], "start-7"),
        (planted.Bag, ["take", "toss"], "two"),
    ],
    ids=["line", "coin", "replay", "bag"],
)
def test_the_very_states_come_back(env: Env, actions: Sequence[str], task: str) -> None:
    """Snapshots, their random states included, and keys equal those of the rollout."""
    group = played(env, actions, task)
    assert len(group.trajectories) == 4
    assert turns(retraced(env, bare(group))) == turns(group)


def test_keys_that_were_not_recorded_are_filled_in() -> None:
    """Groups of a run that measured nothing have no state keys; they get them."""
    group = played(LineEnv, ["left", "right"], "start-7")
    assert turns(retraced(LineEnv, bare(group, state_key=""))) == turns(group)


def test_a_cut_reply_that_ended_the_episode_is_not_played() -> None:
    """The environment never saw it; the state before it comes back all the same."""

    async def play() -> Group:
        async with HostPool(lambda: InlineHost(LineEnv), 1) as hosts:
            policy = ScriptedPolicy(["right", "right " * 9])
            rollout = Rollout(policy=policy, hosts=hosts, rules=replace(RULES, end_on_cut=True))
            return (await rollout.groups([Task(id="start-5", split="train")], 1, seed=0))[0]

    group = asyncio.run(play())
    assert (group.trajectories[0].n_turns, group.trajectories[0].end) == (2, "cut")
    assert turns(retraced(LineEnv, bare(group))) == turns(group)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"result": "You are in cell 3 of 0..9."}, "the answer to turn 1"),
        ({"action": "look"}, "the answer to turn 1"),
        ({"reward": 0.25}, "the answer to turn 1"),
        ({"state_key": "beef"}, "the state key before turn 1"),
    ],
)
def test_tampered_turns_are_noticed(changes: dict[str, Any], message: str) -> None:
    """Another observation, action, reward or key than the environment's own is an error that names the place."""
    group = bare(played(LineEnv, ["right"], "start-5", size=2))
    run = group.trajectories[1]
    changed = (run.turns[0], replace(run.turns[1], **changes), *run.turns[2:])
    tampered = replace(group, trajectories=(group.trajectories[0], replace(run, turns=changed)))
    with pytest.raises(SnapshotError, match=f"expected {message}.* of member 1 of task 'start-5' as it was recorded"):
        retraced(LineEnv, tampered)


@pytest.mark.parametrize("changes", [{"opening": "You are in cell 2 of 0..9."}, {"success": False}])
def test_a_tampered_episode_is_noticed(changes: dict[str, Any]) -> None:
    """So are another beginning and another outcome."""
    group = bare(played(LineEnv, ["right"], "start-7", size=1))
    run = replace(group.trajectories[0], **changes)
    with pytest.raises(SnapshotError, match=r"expected the (first observation|outcome) of member 0"):
        retraced(LineEnv, replace(group, trajectories=(run,)))


def test_another_seed_is_noticed_where_it_matters() -> None:
    """A coin that falls otherwise under another seed gives another answer."""
    env = partial(CoinEnv, turns=2)
    group = bare(played(env, ["open"], "coin"))
    outcomes = set()
    for seed in range(8):
        try:
            retraced(env, replace(group, env_seed=seed))
            outcomes.add("same")
        except SnapshotError:
            outcomes.add("other")
    assert outcomes == {"same", "other"}


def test_an_environment_that_does_not_repeat_itself_is_noticed() -> None:
    """It counts its resets, so the first observation is another one."""
    env = lambda: ReplayEnv(planted.Unrepeatable())  # noqa: E731 - a factory of one line
    with pytest.raises(SnapshotError, match="the first observation"):
        retraced(env, replace(bare(played(LineEnv, ["right"], "start-7")), env_seed=0))


def test_a_failing_environment_is_an_error() -> None:
    """It is told from one that answers otherwise."""
    group = bare(played(LineEnv, ["right"], "start-7"))
    with pytest.raises(EnvError, match="planted in step"):
        retraced(partial(planted.Failing, "step"), group)
