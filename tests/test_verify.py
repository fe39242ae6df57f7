"""What a segment is worth, measured."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from episodes import played

from prover.branch import Branch
from prover.errors import ConfigError, EnvError, SnapshotError
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.policies.hf import HFPolicy
from prover.policies.plain import PlainRows
from prover.protocols import Policy, TextEnv
from prover.records import (
    Arm,
    Completion,
    Estimate,
    Group,
    Proposal,
    Request,
    Sampling,
    Segment,
    Task,
    Trajectory,
    Turn,
)
from prover.rollout import EpisodeRules, Rollout
from prover.testing import CoinEnv, LineEnv, ScriptedPolicy, ToyCodec, UniformPolicy
from prover.verify import AnchorVerifier, MonteCarloVerifier

RULES = EpisodeRules(max_turns=10, sampling=Sampling(max_tokens=16), text_format=Bare())


def proposal(start: int, end: int) -> Proposal:
    """A claim about turns of the first trajectory."""
    return Proposal(segment=Segment(trajectory=0, start=start, end=end), reason="", judge="test")


def group_of(
    replies: Sequence[str], task: str, env: Callable[[], TextEnv] = LineEnv, rules: EpisodeRules = RULES
) -> Group:
    """A group whose one trajectory says what is scripted."""

    async def play() -> Group:
        async with HostPool(lambda: InlineHost(env), 1) as hosts:
            rollout = Rollout(policy=ScriptedPolicy(replies, repeat=True), hosts=hosts, rules=rules)
            (group,) = await rollout.groups([Task(id=task, split="train")], 1, seed=0)
            return group

    group = asyncio.run(play())
    assert len(group.trajectories) == 1
    return group


def measured(
    policy: Policy,
    group: Group,
    *proposals: Proposal,
    k: int = 8,
    env: Callable[[], TextEnv] = LineEnv,
    rules: EpisodeRules = RULES,
    restore_rng: bool = False,
    keep_rows: bool = False,
    chance: bool = True,
    concurrency: int = 16,
    seeds: Sequence[int] = (0,),
) -> list[Estimate]:
    """An estimate per proposal and seed, one after the other in a pool of their own."""

    async def play() -> list[Estimate]:
        async with HostPool(lambda: InlineHost(env), concurrency) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=rules)
            branch = Branch(rollout=rollout, restore_rng=restore_rng, keep_rows=keep_rows)
            verifier = MonteCarloVerifier(branch=branch, continuations=k, chance=chance)
            return [await verifier.verify(claim, group, seed=seed) for claim in proposals for seed in seeds]

    return asyncio.run(play())


def by_cell(**actions: str) -> ScriptedPolicy:
    """A policy that acts by the cell it is in, and looks where nothing is said."""

    def act(request: Request) -> str:
        cell = ToyCodec().decode(request.ids).rsplit("cell ", 1)[1][0]
        return actions.get(f"cell{cell}", "look")

    return ScriptedPolicy([act], repeat=True)


def test_both_arms_are_counted() -> None:
    """From cell 7 this policy never gets there, from cell 8 it always does: rates 0 and 1, and what that took."""
    group = group_of(["right", "right"], "start-7")
    policy = by_cell(cell7="left", cell8="right")
    (estimate,) = measured(policy, group, proposal(0, 0), k=3)
    assert estimate.before == Arm(successes=0, n=3, failures=0, mean_reward=0.0)
    assert estimate.after == Arm(successes=3, n=3, failures=0, mean_reward=1.0)
    assert estimate.delta == 1.0
    # Before: "left" and nine "look" of 5 ids each, to the cap. After: one "right" of 6 ids.
    assert estimate.turns == 3 * 10 + 3 * 1
    assert estimate.tokens == 3 * 50 + 3 * 6


def test_a_harmful_segment_has_a_negative_difference() -> None:
    """Rates may fall from before to after."""
    group = group_of(["left", "right", "right", "right"], "start-7")
    (estimate,) = measured(by_cell(cell7="right", cell8="right"), group, proposal(0, 0), k=2)
    assert (estimate.before.rate, estimate.after.rate, estimate.delta) == (1.0, 0.0, -1.0)


def test_a_planted_proposal_on_a_turn_without_effect_is_worth_nothing() -> None:
    """Whatever a trajectory talked the judge into, a turn that changes nothing earns nothing."""
    group = group_of(["look", "right", "right"], "start-7")
    for policy in (by_cell(cell7="right", cell8="right"), by_cell()):
        (estimate,) = measured(policy, group, proposal(0, 0))
        assert estimate.delta == 0.0
        assert estimate.before.n == estimate.after.n == 8


def test_sampling_seeds_are_never_shared_and_environment_seeds_are() -> None:
    """All requests of both arms have seeds of their own; continuation k of both arms has the same environment seed."""
    reseeded = []

    class Logging(LineEnv):
        def reseed(self, seed: int) -> None:
            reseeded.append(seed)

    policy = ScriptedPolicy(["look"], repeat=True)
    group = group_of(["look"], "start-5")
    measured(policy, group, proposal(2, 3), env=Logging, seeds=[0, 1])
    assert len(policy.requests) == 2 * 8 * (8 + 6)
    assert len({request.seed for request in policy.requests}) == len(policy.requests)
    assert sorted(Counter(reseeded).values()) == [2] * 16


def test_the_seed_repeats_an_estimate_at_any_concurrency() -> None:
    """Nothing but the seed decides."""
    policy = UniformPolicy(["left", "right", "look"])
    group = group_of(["look", "right", "look"], "start-7")
    first = measured(policy, group, proposal(0, 1), concurrency=1, seeds=range(5))
    assert measured(policy, group, proposal(0, 1), concurrency=64, seeds=range(5)) == first
    assert len({(estimate.before.successes, estimate.after.successes) for estimate in first}) > 1


def test_no_continuations_are_refused() -> None:
    """K = 0 measures nothing."""
    group = group_of(["look"], "start-5")
    with pytest.raises(ConfigError, match="at least 1 continuation per arm, got 0"):
        measured(ScriptedPolicy([]), group, proposal(0, 0), k=0)


# What goes wrong


def failing_restore(*broken: int) -> Callable[[], TextEnv]:
    """Environments that cannot restore, at the restores with the given numbers."""
    restores = count()

    class Fragile(LineEnv):
        def restore(self, snapshot: Any) -> Any:
            if next(restores) in broken:
                raise ValueError("cannot restore")
            return super().restore(snapshot)

    return Fragile


def test_failed_continuations_are_left_out_of_the_rates() -> None:
    """One of eight fails before the segment: 7 of 7 remain, and the failure is counted."""
    group = group_of(["look", "right"], "start-8")
    policy = by_cell(cell8="right")
    (estimate,) = measured(
        policy, group, proposal(0, 0), env=failing_restore(2), rules=replace(RULES, retries=0), concurrency=1
    )
    assert estimate.before == Arm(successes=7, n=7, failures=1, mean_reward=1.0)
    assert estimate.after == Arm(successes=8, n=8, failures=0, mean_reward=1.0)
    assert (estimate.delta, estimate.turns) == (0.0, 15)
    assert estimate.played == ()


def test_failed_continuations_are_not_kept_to_train_on() -> None:
    """One of three fails before the segment: two and three remain, all with what they sampled."""
    group = group_of(["look", "right"], "start-8")
    settings: dict[str, Any] = {"rules": replace(RULES, retries=0), "concurrency": 1, "keep_rows": True, "k": 3}
    (estimate,) = measured(by_cell(cell8="right"), group, proposal(0, 0), env=failing_restore(1), **settings)
    assert [[int(run.rows[0].loss_mask.sum()) for run in arm] for arm in estimate.played] == [[6] * 2, [6] * 3]


def test_an_arm_without_any_continuation_is_an_error() -> None:
    """There is nothing to compare; the message holds the first cause."""
    group = group_of(["look", "right"], "start-8")
    with pytest.raises(EnvError, match=r"at least one of 8 continuations to finish, got none(.|\n)*cannot restore"):
        measured(by_cell(cell8="right"), group, proposal(0, 0), env=failing_restore(*range(1000)))


@pytest.mark.parametrize(("start", "end"), [(1, 2), (0, 2), (-1, 0)])
def test_a_segment_that_cannot_be_branched_costs_nothing(start: int, end: int) -> None:
    """Both arms are checked before either is played: nothing is sampled for a segment beyond the episode."""
    group = group_of(["look", "right"], "start-8")
    policy = ScriptedPolicy(["look"], repeat=True)
    with pytest.raises(SnapshotError):
        measured(policy, group, proposal(start, end))
    assert policy.requests == []


def test_overflowed_continuations_count_alike_in_both_arms() -> None:
    """A continuation whose context is full has not succeeded; it is no failure in either arm."""
    policy = ScriptedPolicy(["look"], repeat=True, context_limit=150)
    group = group_of(["look"], "start-5", rules=replace(RULES, max_turns=4))
    (estimate,) = measured(policy, group, proposal(0, 1), k=4)
    assert estimate.before == estimate.after == Arm(successes=0, n=4, failures=0, mean_reward=0.0)
    # 27, 60, 93 and 126 ids of prompt fit beside a reply of 16: four turns from the start, two from turn 2.
    assert estimate.turns == 4 * 4 + 4 * 2


# Noise


class Box:
    """Opens at the second ``open`` and shuts for good at anything else; as cheap as an environment can be."""

    def __init__(self) -> None:
        self.opened = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Close it."""
        return self.restore(0)

    def step(self, action: str) -> Any:
        """Open it a little."""
        self.opened += 1
        done = action != "open" or self.opened == 2
        success = action == "open" and self.opened == 2
        return "c", float(success), done, False, {"success": success}

    def snapshot(self) -> int:
        """How often it was opened."""
        return self.opened

    def restore(self, snapshot: int) -> Any:
        """Bring that back."""
        self.opened = snapshot
        return "c", {"success": False}

    def state_key(self) -> str:
        """The same, as text."""
        return str(self.opened)

    def close(self) -> None:
        """Nothing to free."""


class CoinPolicy:
    """Opens first, and then opens or gives up by the toss of a coin: the last bit of the request's seed."""

    def __init__(self) -> None:
        self.codec = ToyCodec()
        self.version = 0
        self.context_limit = 1_000_000
        self._replies = [
            Completion(ids=ids, logprobs=(0.0,) * len(ids), finish="stop")
            for ids in (self.codec.action("open"), self.codec.action("b"))
        ]

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One toss per request, but for the first turn of an episode."""
        return [self._replies[0 if len(request.ids) == 3 else request.seed & 1] for request in requests]


def test_noise_earns_what_the_binomial_says() -> None:
    """A segment without effect, rate 0.5, K = 8: the positive part of the difference is 0.098 on average, no more."""
    group = group_of(["open"], "box", Box)  # type: ignore[arg-type]  # no spaces and no tasks: the loop needs neither
    assert group.n_success == 1
    estimates = measured(CoinPolicy(), group, proposal(0, 0), env=Box, seeds=range(2000))  # type: ignore[arg-type]  # as above
    n = len(estimates)
    # The standard error of the mean is 0.0033, that of the shares 0.011.
    assert abs(sum(max(0.0, estimate.delta) for estimate in estimates) / n - 0.098) < 0.01
    assert abs(sum(estimate.delta > 0 for estimate in estimates) / n - 0.40) < 0.033
    assert abs(sum(estimate.delta < 0 for estimate in estimates) / n - 0.40) < 0.033
    assert abs(sum(estimate.before.rate for estimate in estimates) / n - 0.5) < 0.012


def test_luck_of_the_environment_cancels() -> None:
    """Both arms toss the environment's coin with the same seeds: a segment without effect is then worth exactly 0."""
    coin = lambda: CoinEnv(turns=2)  # noqa: E731 - a factory of one line
    group = group_of(["open"], "coin", coin)
    policy = ScriptedPolicy(["open"], repeat=True)
    estimates = measured(policy, group, proposal(0, 0), env=coin, seeds=range(20))
    assert {estimate.delta for estimate in estimates} == {0.0}
    assert 0.35 < sum(estimate.before.rate for estimate in estimates) / 20 < 0.65


def measured_together(
    policy: Policy,
    group: Group,
    *proposals: Proposal,
    k: int = 8,
    sequential: bool = False,
    signed: bool = False,
    keep_rows: bool = False,
) -> list[Estimate]:
    """The estimates of several segments, measured at once."""

    async def play() -> list[Estimate]:
        async with HostPool(lambda: InlineHost(LineEnv), 16) as hosts:
            branch = Branch(rollout=Rollout(policy=policy, hosts=hosts, rules=RULES), keep_rows=keep_rows)
            verifier = MonteCarloVerifier(branch=branch, continuations=k, sequential=sequential, signed=signed)
            return await verifier.verify_all(proposals, group, seed=0)

    return asyncio.run(play())


def test_states_that_segments_share_are_measured_once() -> None:
    """Three turns have four boundaries, one of them the end: 3 x 2 continuations, and their cost is counted once."""
    group = group_of(["right"], "start-6")
    policy = ScriptedPolicy(["right"], repeat=True)
    found = measured_together(policy, group, proposal(0, 0), proposal(1, 1), proposal(2, 2), k=2)
    assert [(e.before.rate, e.after.rate) for e in found] == [(1.0, 1.0)] * 3
    # From cells 6, 7 and 8 it takes 3, 2 and 1 turns; the first segment pays for both of its states.
    assert [estimate.turns for estimate in found] == [2 * (3 + 2), 2 * 1, 0]
    assert len(policy.requests) == 12


def test_what_was_played_from_a_state_is_kept_once() -> None:
    """Three turns: the first estimate holds the continuations of its two states, the second those of the third."""
    group = group_of(["right"], "start-6")
    policy = ScriptedPolicy(["right"], repeat=True)
    claims = [proposal(turn, turn) for turn in range(3)]
    found = measured_together(policy, group, *claims, k=2, keep_rows=True)
    kept = [[[(run.turns, len(run.rows)) for run in arm] for arm in estimate.played] for estimate in found]
    assert kept == [[[(3, 1)] * 2, [(2, 1)] * 2], [[(1, 1)] * 2], []]
    assert [estimate.played for estimate in measured_together(policy, group, *claims, k=2)] == [()] * 3


def test_after_the_last_turn_the_outcome_is_known() -> None:
    """A segment that ends the episode is compared with how it ended, which costs nothing."""
    group = group_of(["right", "right"], "start-7")
    (estimate,) = measured(by_cell(cell8="look"), group, proposal(1, 1), k=4)
    assert estimate.before == Arm(successes=0, n=4)
    assert estimate.after == Arm(successes=1, n=1, known=True)
    assert estimate.delta == 1.0
    assert estimate.gained == 1.0
    assert estimate.reward_delta == 1.0
    assert estimate.turns == 4 * 9


def test_a_state_without_alternative_is_not_continued_where_there_is_no_chance() -> None:
    """The first action was one of two, the rest was certain: only the state before it is continued."""
    group = group_of(["right", "right"], "start-7")
    run = group.trajectories[0]
    (row,) = run.rows
    drawn = replace(row, logprobs=np.where(row.turn_of_token == 0, np.log(0.5), 0.0))
    group = replace(group, trajectories=(replace(run, rows=(drawn,)),))
    policy = by_cell(cell7="left", cell8="right")
    (known,) = measured(policy, group, proposal(0, 0), k=3, chance=False)
    assert known.before == Arm(successes=0, n=3)
    assert known.after == Arm(successes=1, n=1, known=True, mean_reward=1.0)
    assert (known.turns, known.delta, known.reward_delta) == (3 * 10, 1.0, 1.0)
    (played,) = measured(policy, group, proposal(0, 0), k=3)
    assert played.after == Arm(successes=3, n=3, mean_reward=1.0)


def test_one_segment_alone_and_among_others_is_measured_alike() -> None:
    """With the first states in common, a segment keeps its seeds."""
    group = group_of(["right", "right", "right", "right"], "start-5")
    policy = UniformPolicy(["left", "right"])
    (alone,) = measured(policy, group, proposal(0, 0))
    first, _ = measured_together(policy, group, proposal(0, 0), proposal(1, 2))
    assert (first.before, first.after) == (alone.before, alone.after)


def test_a_sequential_measurement_stops_when_everything_ends_alike() -> None:
    """Two of eight continuations from either side are enough where all succeed, or all fail."""
    group = group_of(["right", "right", "right", "right"], "start-5")
    for action, turns in (("right", 4 + 3), ("look", 10 + 9)):
        (estimate,) = measured_together(ScriptedPolicy([action], repeat=True), group, proposal(0, 0), sequential=True)
        assert (estimate.before.n, estimate.after.n, estimate.delta) == (2, 2, 0.0)
        assert estimate.turns == 2 * turns


def test_a_sequential_measurement_goes_on_while_something_differs() -> None:
    """A gain is measured in full."""
    group = group_of(["right", "right"], "start-7")
    (estimate,) = measured_together(by_cell(cell8="right"), group, proposal(0, 0), k=6, sequential=True)
    assert (estimate.before.n, estimate.after.n, estimate.delta) == (6, 6, 1.0)


def test_a_loss_is_given_up_after_four_unless_it_counts() -> None:
    """From cell 7 this policy gets there and from cell 6 it does not: with signed credit all 8 are played."""
    group = group_of(["left", "right", "right", "right"], "start-7")
    policy = by_cell(cell7="right", cell8="right")
    for signed, n in ((False, 4), (True, 8)):
        (estimate,) = measured_together(policy, group, proposal(0, 0), sequential=True, signed=signed)
        assert (estimate.before.n, estimate.after.n, estimate.delta) == (n, n, -1.0)


def test_what_is_measured_stepwise_is_what_is_measured_at_once() -> None:
    """Where all stages are played, they are the very continuations of a full measurement."""
    group = group_of(["right", "right"], "start-7")
    policy = UniformPolicy(["left", "right"])
    (full,) = measured_together(policy, group, proposal(0, 0), k=4)
    (stepwise,) = measured_together(policy, group, proposal(0, 0), k=4, sequential=True)
    assert 0 < full.before.rate < 1
    assert stepwise == full


def run_through(states: str, success: bool) -> Trajectory:
    """A run through states, one turn in each."""
    turns = tuple(Turn(text="", action="", result="", reward=0.25, state_key=state) for state in states)
    return played(turns, success, task=Task(id="t", split="train"))


def test_anchors_count_how_runs_through_a_state_ended() -> None:
    """State a: one of four succeeded; state b: one of two; the end of the first run: it succeeded. None is played."""
    runs = (run_through("ab", True), run_through("ac", False), run_through("ba", False), run_through("aa", False))
    group = Group(index=0, task=runs[0].task, trajectories=runs)
    found = asyncio.run(AnchorVerifier().verify_all([proposal(0, 0), proposal(1, 1)], group, seed=0))
    # Rewards from the first visit of a on: .5, .5, .25 and .5; from b on: .25 and .5.
    a = Arm(successes=1, n=4, mean_reward=0.4375)
    b = Arm(successes=1, n=2, mean_reward=0.375)
    end = Arm(successes=1, n=1, known=True)
    assert [(estimate.before, estimate.after) for estimate in found] == [(a, b), (b, end)]
    assert [(estimate.turns, estimate.tokens, estimate.gained) for estimate in found] == [(0, 0, 0.25)] * 2


def test_anchors_need_recorded_states() -> None:
    """Runs without state keys have nothing in common."""
    group = Group(index=0, task=Task(id="t", split="train"), trajectories=(run_through(" ", True),))
    blank = replace(group.trajectories[0].turns[0], state_key="")
    runs = (replace(group.trajectories[0], turns=(blank,)),)
    with pytest.raises(SnapshotError, match="record_states=True"):
        asyncio.run(AnchorVerifier().verify(proposal(0, 0), replace(group, trajectories=runs), seed=0))


def test_what_a_group_and_its_verification_share_is_forwarded_once(
    line_policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted where a real model forwards tokens: each history once, and one token for what has been there before."""
    forwarded: list[int] = []
    extend = PlainRows.extend

    def counted(self: PlainRows, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> Any:
        forwarded.append(sum(map(len, chunks)))
        return extend(self, rows, chunks)

    monkeypatch.setattr(PlainRows, "extend", counted)
    policy = HFPolicy.load(line_policy, context_limit=512)
    rules = replace(RULES, max_turns=3, admissible=True)

    async def play() -> tuple[Group, Estimate, int]:
        async with HostPool(lambda: InlineHost(LineEnv), 16) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=rules)
            (group,) = await rollout.groups([Task(id="start-4", split="train")], 2, seed=0)
            sampling = sum(forwarded)
            verifier = MonteCarloVerifier(branch=Branch(rollout=rollout, keep_rows=True), continuations=8)
            return group, await verifier.verify(proposal(1, 1), group, seed=0), sampling

    group, estimate, sampling = asyncio.run(play())
    acted = [tuple(turn.action for turn in run.turns) for run in group.trajectories]
    before, after = estimate.played
    drawn = [
        (acted[0][0], policy.codec.decode(row.ids[row.turn_of_token == 1].tolist()))
        for run in before
        for row in run.rows
    ]
    assert acted == [("left", "right", "left"), ("left", "right", "right")]
    assert (len(after), set(drawn)) == (8, {("left", "right"), ("left", "left")})
    # The first observation has 5 tokens; an action has 2 (its end is forced: no pass of its own), an observation 4.
    assert sampling == 5 + (2 + 4) + (2 + 4)
    # Both arms begin where the group has been: for each one token is computed again, for its logits, and not 8. Then
    # those before are at turn 2, some where the group has been, some after an action and an observation that are new.
    assert sum(forwarded) - sampling == (1 + 1) + (1 + 2 + 4)
