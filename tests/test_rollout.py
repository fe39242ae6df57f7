"""The environment loop: turn cap, cut and empty replies, context, seeds. Failures have a file of their own."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from prover.formats import Bare, ReAct, ThinkAction
from prover.host import HostPool, InlineHost
from prover.protocols import Policy, TextEnv
from prover.records import (
    EndReason,
    Group,
    Sampling,
    Task,
    Trajectory,
)
from prover.rollout import EpisodeRules, Rollout
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
) -> list[Group]:
    """Groups of episodes in a pool of their own."""

    async def play() -> list[Group]:
        async with HostPool(lambda: InlineHost(env), concurrency) as hosts:
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


def test_success_is_the_environments_verdict_and_no_sum_of_rewards() -> None:
    """Rewards without ``info["success"]``, part of a graded score, make no success, and a success needs no reward."""

    class Graded(LineEnv):
        def step(self, action: str) -> Any:
            observation, _, terminated, truncated, info = super().step(action)
            return observation, 0.0 if terminated else 0.5, terminated, truncated, info

    lost, won = (
        episode(ScriptedPolicy(["right"] * 3), env=Graded, tasks=[task(6)], rules=replace(RULES, max_turns=n))
        for n in (2, 3)
    )
    assert (lost.reward, lost.success, won.reward, won.success) == (1.0, False, 1.0, True)
    group = Group(index=0, task=task(), trajectories=(lost, won))
    assert (group.rewards_G.tolist(), group.n_success) == ([0.0, 1.0], 1)


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


def test_the_environment_hears_its_own_words() -> None:
    """A policy whose vocabulary has no capitals still acts in an environment that tells them apart."""

    class Small(ToyCodec):
        def encode(self, text: str) -> list[int]:
            return super().encode(text.lower())

    class Loud(LineEnv):
        def step(self, action: str) -> Any:
            heard.append(action)
            observation, reward, terminated, truncated, info = super().step(action.lower())
            return observation, reward, terminated, truncated, info | {"admissible_actions": ["Left", "LOOK"]}

    heard: list[str] = []
    policy = UniformPolicy()
    policy.codec = Small()
    found = episode(policy, env=Loud, rules=replace(RULES, admissible=True))
    assert set(heard[1:]) == {"Left", "LOOK"}
    assert [turn.action for turn in found.turns] == heard
    assert {turn.text for turn in found.turns[1:]} == {"left", "look"}


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


def test_a_group_knows_the_seed_of_its_environments() -> None:
    """Each member was reset with it, and groups have different ones."""
    seeds: list[int | None] = []

    class Logging(LineEnv):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            seeds.append(seed)
            return super().reset(seed=seed, options=options)

    policy = ScriptedPolicy(["right"], repeat=True)
    first, second = groups(policy, env=Logging, tasks=(task(8), task(7)), size=2, concurrency=1)
    assert seeds == [first.env_seed] * 2 + [second.env_seed] * 2
    assert first.env_seed != second.env_seed


def test_enlarged_groups_are_those_of_that_size() -> None:
    """Adding members later gives the very episodes that larger groups would have had."""

    async def play() -> tuple[list[Group], list[Group]]:
        async with HostPool(lambda: InlineHost(LineEnv), 8) as hosts:
            rollout = Rollout(policy=UniformPolicy(ACTIONS), hosts=hosts, rules=RULES)
            small = await rollout.groups([task(5), task(6)], 2, seed=3)
            large = await rollout.groups([task(5), task(6)], 4, seed=3)
            return await rollout.enlarged(small, [2, 0], seed=3), large

    enlarged, large = asyncio.run(play())
    assert [plays(run) for run in enlarged[0].trajectories] == [plays(run) for run in large[0].trajectories]
    assert [plays(run) for run in enlarged[1].trajectories] == [plays(run) for run in large[1].trajectories[:2]]
