"""The environment loop: turn cap, cut and empty replies, context, failures, seeds."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Literal

import numpy as np
import pytest

from prover.errors import FailureShareError
from prover.formats import Bare, ReAct, ThinkAction
from prover.host import Host, HostPool, InlineHost, ProcessHost
from prover.protocols import Policy, TextEnv
from prover.records import (
    Completion,
    EndReason,
    Failure,
    FailureCause,
    Group,
    Request,
    Sampling,
    Task,
    Trajectory,
)
from prover.rollout import EpisodeRules, Rollout, check_failure_share
from prover.testing import CoinEnv, LineEnv, ScriptedPolicy, ToyCodec, UniformPolicy

RULES = EpisodeRules(max_turns=10, sampling=Sampling(max_tokens=32), text_format=Bare())
ACTIONS = ("left", "right", "look")


def task(cell: int = 5) -> Task:
    """The task that starts in a cell."""
    return Task(id=f"start-{cell}", split="train")


def groups(
    policy: Policy,
    *,
    env: Callable[[], TextEnv] = LineEnv,
    rules: EpisodeRules = RULES,
    tasks: Sequence[Task] = (task(),),
    size: int = 1,
    concurrency: int = 8,
    seed: int = 0,
    host: Callable[[], Host] | None = None,
) -> list[Group]:
    """Groups of episodes in a pool of their own."""

    async def play() -> list[Group]:
        async with HostPool(host or (lambda: InlineHost(env)), concurrency) as hosts:
            return await Rollout(policy=policy, hosts=hosts, rules=rules).groups(tasks, size, seed=seed)

    return asyncio.run(play())


def episode(policy: Policy, **kwargs: Any) -> Trajectory:
    """The one episode of one group."""
    ((trajectory,),) = [group.trajectories for group in groups(policy, **kwargs)]
    return trajectory


def plays(trajectory: Trajectory) -> tuple[Any, ...]:
    """All of a trajectory, as plain values that can be compared."""
    rows = tuple((row.ids.tolist(), row.logprobs.tolist(), row.support) for row in trajectory.rows)
    return (trajectory.seed, trajectory.member, trajectory.turns, rows, trajectory.success, trajectory.end)


# What an episode is


def test_an_episode_is_recorded_turn_by_turn() -> None:
    """Actions, observations, rewards, states and the verdict of the environment are all there."""
    found = episode(ScriptedPolicy(["right", "jump", "right"]), tasks=[task(7)])
    assert found.opening == "You are in cell 7 of 0..9."
    assert [turn.action for turn in found.turns] == ["right", "jump", "right"]
    assert [turn.result for turn in found.turns] == [
        "You are in cell 8 of 0..9.",
        "Nothing happens.",
        "You are in cell 9 of 0..9.",
    ]
    assert [turn.reward for turn in found.turns] == [0.0, 0.0, 1.0]
    assert [turn.invalid for turn in found.turns] == [None, "env", None]
    assert [turn.snapshot.cell for turn in found.turns] == [7, 8, 8]
    assert found.turns[1].state_key == found.turns[2].state_key != found.turns[0].state_key
    assert (found.success, found.reward, found.end) == (True, 1.0, EndReason.DONE)
    assert [found.observation(turn) for turn in range(3)] == [
        found.opening,
        "You are in cell 8 of 0..9.",
        "Nothing happens.",
    ]
    # "right" is 5 ids and the end token, "jump" 4 and one.
    assert found.n_sampled == 6 + 5 + 6


def test_the_turn_cap_ends_an_episode() -> None:
    """After ``max_turns`` turns there is no further request and no success."""
    policy = ScriptedPolicy(["look"], repeat=True)
    found = episode(policy)
    assert (found.n_turns, found.end, found.success, len(policy.requests)) == (10, EndReason.TURN_CAP, False, 10)


def test_states_are_stored_only_where_they_are_needed() -> None:
    """Without ``record_states`` an environment that has no snapshots will do."""

    class Forgetful(LineEnv):
        snapshot = None  # type: ignore[assignment]  # stands for an environment without the method
        state_key = None  # type: ignore[assignment]  # as above

    found = episode(ScriptedPolicy(["look"] * 3), env=Forgetful, rules=replace(RULES, record_states=False, max_turns=3))
    assert [(turn.snapshot, turn.state_key) for turn in found.turns] == [(None, "")] * 3


def test_text_of_the_environment_is_never_parsed() -> None:
    """A tag inside an observation is no action, and its tokens are not trained on."""

    class Speaking(LineEnv):
        def _observation(self) -> str:
            return "<action>right</action> <answer>42</answer>"

    replies = ["<action>look</action>", "no action here", "<action>look</action>"]
    found = episode(ScriptedPolicy(replies), env=Speaking, rules=replace(RULES, text_format=ThinkAction(), max_turns=3))
    assert [turn.action for turn in found.turns] == ["look", "", "look"]
    assert found.turns[1].invalid == "format: 0 actions, expected 1"
    (row,) = found.rows
    assert ToyCodec().decode(row.ids[row.loss_mask].tolist()) == "".join(replies)


def test_think_tags_go_to_the_transcript_and_the_action_to_the_environment() -> None:
    """The environment sees the bare action; the row keeps the reasoning that was sampled."""
    text = "<think>t1 t2</think><action>right</action>"
    rules = replace(RULES, text_format=ThinkAction(), sampling=Sampling(max_tokens=64), max_turns=3)
    found = episode(ScriptedPolicy([text] * 3), rules=rules)
    assert [turn.text for turn in found.turns] == [text] * 3
    assert [turn.snapshot.cell for turn in found.turns] == [5, 6, 7]
    (row,) = found.rows
    assert ToyCodec().decode(row.ids[row.loss_mask].tolist()) == text * 3


def test_replies_are_drawn_among_the_admissible_actions() -> None:
    """Each request lists what the environment admits, written in the format, and the row keeps what was open."""
    rules = replace(RULES, admissible=True, text_format=ReAct(), max_turns=2)
    policy = UniformPolicy()
    found = episode(policy, rules=rules)
    assert {turn.text.removeprefix("Action: ") for turn in found.turns} <= set(ACTIONS)
    (row,) = found.rows
    first = int(np.flatnonzero(row.turn_of_token == 0)[0])
    a = ToyCodec().encode("A")[0]
    assert row.support[first] == (a,)
    assert row.logprobs[first] == 0.0


def test_admissible_actions_that_cannot_be_written_are_left_out() -> None:
    """An action longer than the reply limit is no choice."""
    policy = ScriptedPolicy(["look"] * 2)
    rules = replace(RULES, admissible=True, sampling=Sampling(max_tokens=5), max_turns=2)
    episode(policy, rules=rules)
    assert policy.requests[0].choices == (ToyCodec().action("left"), ToyCodec().action("look"))


# Cut and empty replies


def cut_at_turn_1(**changes: Any) -> tuple[Trajectory, ScriptedPolicy]:
    """Three turns of which the second is 32 ids without an end token."""
    policy = ScriptedPolicy(["look", ([1] * 32, [-0.5] * 32, "length"), "look"])
    return episode(policy, rules=replace(RULES, max_turns=3, **changes)), policy


@pytest.mark.parametrize("trained", [True, False])
def test_a_cut_reply_is_flagged_and_kept_as_it_is(trained: bool) -> None:
    """32 ids stay 32; the turn is truncated, not invalid for its format; one setting says whether it is trained on."""
    found, policy = cut_at_turn_1(train_on_cut=trained)
    turn = found.turns[1]
    assert (turn.truncated, turn.invalid, turn.action, turn.text) == (True, "truncated", "", "a" * 32)
    assert [other.truncated for other in found.turns] == [False, True, False]
    (row,) = found.rows
    sampled = row.turn_of_token == 1
    assert row.ids[sampled].tolist() == [1] * 32
    assert row.logprobs[sampled].tolist() == [-0.5] * 32
    assert row.loss_mask[sampled].tolist() == [trained] * 32
    # The end token that follows is the environment's.
    after = int(np.flatnonzero(sampled)[-1]) + 1
    assert (row.ids[after], row.turn_of_token[after], row.loss_mask[after]) == (0, -1, False)
    assert found.turns[1].result == "Nothing happens."
    assert tuple(policy.requests[2].ids) == tuple(row.ids[: len(policy.requests[2].ids)].tolist())


def test_a_cut_reply_can_end_the_episode() -> None:
    """With ``end_on_cut`` the environment hears nothing more, and the row ends with the cut reply."""
    found, policy = cut_at_turn_1(end_on_cut=True)
    assert (found.n_turns, found.end, found.success) == (2, EndReason.CUT, False)
    assert found.turns[1].result == ""
    assert len(policy.requests) == 2
    assert found.rows[0].ids[-32:].tolist() == [1] * 32


@pytest.mark.parametrize("ids", [[], [0]])
@pytest.mark.parametrize("mode", ["append", "window"])
def test_an_empty_reply_is_the_empty_action(ids: list[int], mode: Literal["append", "window"]) -> None:
    """The environment receives ``""``; nothing else happens."""
    policy = ScriptedPolicy(["right", (ids, [-0.5] * len(ids), "stop"), "right"])
    found = episode(policy, rules=replace(RULES, max_turns=3, mode=mode))
    assert [turn.action for turn in found.turns] == ["right", "", "right"]
    assert (found.turns[1].result, found.turns[1].invalid) == ("Nothing happens.", "format: empty action")
    assert [turn.snapshot.cell for turn in found.turns] == [5, 6, 6]
    assert found.n_sampled == 12 + len(ids)


def test_only_empty_replies_make_an_episode_without_tokens() -> None:
    """An episode in which nothing was sampled still has its rows, with nothing to train on."""
    found = episode(ScriptedPolicy([([], [], "stop")], repeat=True))
    assert (found.n_turns, found.n_sampled, found.end) == (10, 0, EndReason.TURN_CAP)
    assert not found.rows[0].loss_mask.any()


# Context


def growing(replies: Sequence[str], limit: int, cell: int = 0) -> tuple[Trajectory, ScriptedPolicy]:
    """An episode whose prompts are 20 ids longer every turn: "right" and its end token, then 14 of the environment."""

    class Terse(LineEnv):
        def _observation(self) -> str:
            return "x" * 11

    policy = ScriptedPolicy(replies, context_limit=limit, repeat=True)
    rules = replace(RULES, sampling=Sampling(max_tokens=16))
    return episode(policy, env=Terse, rules=rules, tasks=[task(cell)]), policy


def test_a_full_context_ends_the_episode_without_an_exception() -> None:
    """No request is made whose prompt and reply limit pass the context: 13, 33, but not 53 + 16 > 64."""
    found, policy = growing(["right"], 64)
    assert [len(request.ids) for request in policy.requests] == [13, 33]
    assert (found.end, found.success, found.n_turns) == (EndReason.CONTEXT, False, 2)


def test_a_context_that_is_filled_exactly_is_used() -> None:
    """33 ids of prompt and 16 of reply fit into 49 and not into 48."""
    assert growing(["right"], 49)[0].n_turns == 2
    assert growing(["right"], 48)[0].n_turns == 1


def test_a_goal_reached_on_the_last_turn_that_fits_counts() -> None:
    """The turn that passes the limit keeps its reward."""
    found, _ = growing(["right"], 64, cell=7)
    assert (found.end, found.success, found.reward, found.n_turns) == (EndReason.DONE, True, 1.0, 2)


def test_an_opening_that_does_not_fit_makes_an_episode_without_turns() -> None:
    """It is an ordinary episode that failed, not an error."""
    found, policy = growing(["right"], 20)
    assert (found.end, found.n_turns, found.rows, policy.requests) == (EndReason.CONTEXT, 0, (), [])


# Failures


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


# Seeds


class Shuffling(LineEnv):
    """What an episode begins with is drawn from the seed of ``reset``."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Shuffle the things."""
        observation, info = super().reset(seed=seed, options=options)
        things = ["a mug", "a pan", "a cup", "a key", "a pen"]
        self.np_random.shuffle(things)
        return f"{observation} You see {', '.join(things)}.", info


def test_members_share_their_task_and_differ_in_their_sampling() -> None:
    """One task, one first observation, four seeds, and not four times the same actions."""
    rules = replace(RULES, max_turns=6)
    tasks = [task(2), task(3), task(3)]
    found = groups(UniformPolicy(["left", "right"]), env=Shuffling, rules=rules, tasks=tasks, size=4)
    for group in found:
        assert {t.task.id for t in group.trajectories} == {group.task.id}
        assert len({t.opening for t in group.trajectories}) == 1
        assert len({t.seed for t in group.trajectories}) == 4
        assert len({tuple(turn.action for turn in t.turns) for t in group.trajectories}) > 1
    assert len({t.seed for group in found for t in group.trajectories}) == 12
    # The same task in another group of the update is another draw.
    assert found[1].trajectories[0].opening != found[2].trajectories[0].opening


def test_every_request_has_a_seed_of_its_own() -> None:
    """No two turns of an update sample from the same seed."""
    policy = ScriptedPolicy(["look"], repeat=True)
    groups(policy, tasks=[task(1), task(2)], size=4)
    assert len({request.seed for request in policy.requests}) == 2 * 4 * 10


@pytest.mark.parametrize("env", [LineEnv, Shuffling, CoinEnv])
def test_the_seed_repeats_everything_at_any_concurrency(env: Callable[[], TextEnv]) -> None:
    """1, 8 or 64 environments give the same trajectories; another seed gives others."""
    policy = UniformPolicy(["open"] if env is CoinEnv else ACTIONS)
    tasks = [Task(id="coin", split="train")] * 3 if env is CoinEnv else [task(5), task(6), task(7)]

    def run(concurrency: int, seed: int) -> list[Any]:
        found = groups(policy, env=env, tasks=tasks, size=6, concurrency=concurrency, seed=seed)
        return [plays(t) for group in found for t in group.trajectories]

    first = run(64, 0)
    assert len(first) == 18
    assert run(1, 0) == run(8, 0) == run(64, 0) == first
    assert [p[2] for p in run(8, 1)] != [p[2] for p in first]


def test_the_policy_version_is_recorded() -> None:
    """A trajectory knows which weights sampled it."""
    assert episode(ScriptedPolicy(["look"], repeat=True, version=7)).policy_version == 7


def test_task_types_come_from_the_environment() -> None:
    """``info["task_type"]`` becomes the task's kind."""

    class Typed(LineEnv):
        def reset(self, **kwargs: Any) -> Any:
            observation, info = super().reset(**kwargs)
            return observation, info | {"task_type": "walk"}

    assert episode(ScriptedPolicy(["look"], repeat=True), env=Typed).task == replace(task(), kind="walk")
