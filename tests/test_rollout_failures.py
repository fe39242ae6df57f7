"""Episodes that fail: retries, records, deadlines, and when a run stops."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest

from prover.errors import FailureShareError
from prover.formats import Bare
from prover.host import Host, HostPool, InlineHost, ProcessHost
from prover.protocols import Policy, TextEnv
from prover.records import (
    Completion,
    Failure,
    FailureCause,
    Group,
    Request,
    Sampling,
    Task,
    Trajectory,
)
from prover.rollout import EpisodeRules, Rollout, check_failure_share
from prover.testing import LineEnv, ScriptedPolicy, UniformPolicy

RULES = EpisodeRules(max_turns=10, sampling=Sampling(max_tokens=32), text_format=Bare())


def task(cell: int = 5) -> Task:
    """The task that starts in a cell."""
    return Task(id=f"start-{cell}", split="train")


def groups(
    policy: Policy,
    *,
    env: Callable[[], TextEnv] = LineEnv,
    rules: EpisodeRules = RULES,
    size: int = 1,
) -> list[Group]:
    """Groups of episodes in a pool of their own."""

    async def play() -> list[Group]:
        async with HostPool(lambda: InlineHost(env), 8) as hosts:
            return await Rollout(policy=policy, hosts=hosts, rules=rules).groups([task()], size, seed=0)

    return asyncio.run(play())


def plays(trajectory: Trajectory) -> tuple[Any, ...]:
    """All of a trajectory, as plain values that can be compared."""
    rows = tuple((row.ids.tolist(), row.logprobs.tolist(), row.support) for row in trajectory.rows)
    return (trajectory.seed, trajectory.member, trajectory.turns, rows, trajectory.success, trajectory.end)


class Fragile(LineEnv):
    """Raises in one call, where it is broken."""

    def __init__(self, broken: bool, call: str) -> None:
        super().__init__()
        self.broken = broken
        self.call = call

    def _maybe(self, call: str) -> None:
        if self.broken and call == self.call:
            raise ValueError(f"the {call} is out of order")

    def reset(self, **kwargs: Any) -> Any:
        """Raise or reset."""
        self._maybe("reset")
        return super().reset(**kwargs)

    def step(self, action: str) -> Any:
        """Raise in the fourth step or act."""
        if super().snapshot().steps == 3:
            self._maybe("step")
        return super().step(action)

    def snapshot(self) -> Any:
        """Raise or save."""
        self._maybe("snapshot")
        return super().snapshot()


class Yielding:
    """A policy that lets others go first: each member of a group takes an environment of its own, in order."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.codec = policy.codec
        self.version = policy.version
        self.context_limit = policy.context_limit

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Wait for a moment, then answer."""
        await asyncio.sleep(0)
        return await self.policy.generate(requests)


def fragile(call: str, *broken: int) -> tuple[Callable[[], TextEnv], "count[int]"]:
    """Makes environments of which those with the given numbers fail in a call; and a counter of all that were made."""
    numbers = count()
    return (lambda: Fragile(next(numbers) in broken, call)), numbers


@pytest.mark.parametrize(
    ("call", "broken", "turn"), [("step", (2, 4, 5), 3), ("reset", (2, 3, 4), -1), ("snapshot", (2, 3, 4), 0)]
)
def test_a_member_that_fails_for_good_is_left_out(call: str, broken: tuple[int, ...], turn: int) -> None:
    """The others are kept; the failure is a record with task, seed, turn and traceback, never a reward of 0."""
    env, made = fragile(call, *broken)
    (group,) = groups(Yielding(ScriptedPolicy(["look"], repeat=True)), env=env, size=4)
    assert [trajectory.member for trajectory in group.trajectories] == [0, 1, 3]
    assert next(made) == 6
    (failure,) = group.failures
    assert (failure.cause, failure.where, failure.turn) == (FailureCause.ERROR, f"env.{call}", turn)
    assert (failure.task, failure.member) == ("start-5", 2)
    assert failure.seed not in {trajectory.seed for trajectory in group.trajectories}
    assert f"ValueError: the {call} is out of order" in failure.detail
    assert "Traceback" in failure.detail
    assert group.rewards_G.tolist() == [0.0, 0.0, 0.0]


def test_a_failed_episode_is_played_again_in_a_fresh_environment() -> None:
    """It then is what it would have been, from the same seeds."""
    policy = Yielding(UniformPolicy(("left", "look")))
    env, made = fragile("step", 2, 4)
    (whole,), (mended,) = groups(policy, size=4), groups(policy, env=env, size=4)
    assert next(made) == 6
    assert mended.failures == ()
    assert [plays(t) for t in mended.trajectories] == [plays(t) for t in whole.trajectories]


def test_without_retries_the_first_failure_counts() -> None:
    """``retries`` bounds the attempts: 0 means one."""
    env, made = fragile("step", 2)
    policy = Yielding(ScriptedPolicy(["look"], repeat=True))
    (group,) = groups(policy, env=env, size=4, rules=replace(RULES, retries=0))
    assert [failure.member for failure in group.failures] == [2]
    assert next(made) == 4


def test_a_policy_that_fails_is_a_failure_too() -> None:
    """It is recorded as the policy's, at its turn."""
    (group,) = groups(ScriptedPolicy(["look", OSError("no engine")], repeat=True), rules=replace(RULES, retries=0))
    assert [(f.where, f.turn, f.cause) for f in group.failures] == [("policy.generate", 1, FailureCause.ERROR)]
    assert "no engine" in group.failures[0].detail


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda reward, info: (reward, {}), "expected info['success'] from reset, restore and step"),
        (
            lambda reward, info: (reward, {"success": "False"}),
            "expected info['success'] to be true or false, got 'False'",
        ),
        (lambda reward, info: (reward, {"success": float("nan")}), "to be true or false, got nan"),
        (lambda reward, info: (float("nan"), info), "expected a finite reward from step, got nan"),
    ],
)
def test_a_broken_contract_is_a_failure(change: Callable[[float, dict[str, Any]], Any], message: str) -> None:
    """An environment without a verdict, or with a reward that is no number, is named as the cause."""

    class Odd(LineEnv):
        def step(self, action: str) -> Any:
            observation, reward, terminated, truncated, info = super().step(action)
            reward, info = change(reward, info)
            return observation, reward, terminated, truncated, info

    (group,) = groups(ScriptedPolicy(["look"], repeat=True), env=Odd)
    assert message in group.failures[0].detail
    assert group.failures[0].where == "env.step"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through(stop: type[BaseException]) -> None:
    """Ctrl-C is nobody's failed episode."""

    class Interrupted(LineEnv):
        def step(self, action: str) -> Any:
            raise stop

    with pytest.raises(stop):
        groups(ScriptedPolicy(["look"], repeat=True), env=Interrupted)


def test_cancellation_passes_through() -> None:
    """A cancelled rollout ends as cancelled, not as a group of failures."""

    class Waiting(ScriptedPolicy):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            await asyncio.sleep(3600)
            return []

    async def play() -> None:
        async with HostPool(lambda: InlineHost(LineEnv), 2) as hosts:
            playing = asyncio.create_task(
                Rollout(policy=Waiting([]), hosts=hosts, rules=RULES).groups([task()], 4, seed=0)
            )
            await asyncio.sleep(0)
            playing.cancel()
            await playing

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(play())


def failing(failures: int, finished: int) -> Group:
    """A group with so many failed and finished members."""
    (group,) = groups(ScriptedPolicy(["look"], repeat=True), size=finished) if finished else [
        Group(index=0, task=task(), trajectories=())
    ]  # fmt: skip
    failure = Failure(
        cause=FailureCause.ERROR, where="env.step", task="start-5", member=2, seed=7, turn=3, detail="ValueError: x"
    )
    return replace(group, failures=(failure,) * failures)


def test_too_many_failures_stop_the_run() -> None:
    """Above the share, and where nothing finished at all, the run ends with the first failure's story."""
    check_failure_share([failing(1, 3)], 0.25)
    check_failure_share([failing(0, 2)], 0.0)
    with pytest.raises(FailureShareError, match=r"at most 25% of 3 episodes to fail, got 1(.|\n)*env\.step at turn 3"):
        check_failure_share([failing(1, 2)], 0.25)
    with pytest.raises(FailureShareError, match="ValueError: x"):
        check_failure_share([failing(2, 0)], 1.0)


# Time


class Sluggish(LineEnv):
    """Takes its time in the step that is its second."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds

    def step(self, action: str) -> Any:
        """Sleep, then act."""
        if self.snapshot().steps == 1:
            time.sleep(self.seconds)
        return super().step(action)


def test_late_and_hanging_environments_time_out() -> None:
    """Of four members, one that sleeps an hour and one that is late fail with ``timeout``; no late answer turns up."""
    sleeps = iter([0.0, 3600.0, 0.0, 1.2])

    def make() -> Host:
        return ProcessHost(partial(Sluggish, next(sleeps)), 1.0)

    async def play() -> tuple[list[Group], list[Group], list[Any]]:
        async with HostPool(make, 4) as hosts:
            rules = replace(RULES, max_turns=3, retries=0)
            rollout = Rollout(policy=ScriptedPolicy(["look"], repeat=True), hosts=hosts, rules=rules)
            first = await rollout.groups([task()], 4, seed=0)
            second = await rollout.groups([task(3)], 2, seed=1)
            return first, second, [host._process for host in hosts._idle]  # type: ignore[attr-defined]  # ProcessHosts

    first, second, workers = asyncio.run(play())
    assert [trajectory.member for trajectory in first[0].trajectories] == [0, 2]
    assert [(f.member, f.cause, f.where, f.turn) for f in first[0].failures] == [
        (1, FailureCause.TIMEOUT, "env.step", 1),
        (3, FailureCause.TIMEOUT, "env.step", 1),
    ]
    assert [t.n_turns for t in second[0].trajectories] == [3, 3]
    assert {turn.result for t in second[0].trajectories for turn in t.turns} == {"You are in cell 3 of 0..9."}
    assert len(workers) == 2


def test_an_episode_has_a_deadline_of_its_own() -> None:
    """An episode whose single calls are fast enough ends as ``timeout`` when it lasts too long."""

    class Slow(ScriptedPolicy):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            await asyncio.sleep(0.05 if len(self.requests) < 3 else 3600)
            return await super().generate(requests)

    rules = replace(RULES, episode_deadline_s=0.4, retries=0)
    (group,) = groups(Slow(["look"], repeat=True), rules=rules)
    assert [(f.cause, f.where, f.turn) for f in group.failures] == [(FailureCause.TIMEOUT, "policy.generate", 3)]


@pytest.mark.parametrize("metrics", [{"f1": float("nan")}, {"f1": "high"}, 3])
def test_metrics_that_are_no_numbers_fail_the_episode(metrics: Any) -> None:
    """What cannot be averaged is a fault of the environment, named as such."""

    class Odd(LineEnv):
        def step(self, action: str) -> Any:
            observation, reward, terminated, truncated, info = super().step(action)
            return observation, reward, terminated, truncated, info | {"metrics": metrics}

    (group,) = groups(ScriptedPolicy(["right"], repeat=True), env=Odd)
    assert group.trajectories == ()
    assert "expected info['metrics'] to map names to finite numbers" in group.failures[0].detail
