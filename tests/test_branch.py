"""Continuations from states of stored trajectories."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

from prover.branch import Branch
from prover.errors import SnapshotError
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.policies.hf import HFPolicy
from prover.protocols import Policy, TextEnv
from prover.records import Continuation, Failure, FailureCause, Sampling, Task, Trajectory
from prover.rollout import EpisodeRules, Rollout
from prover.testing import CoinEnv, LineEnv, ScriptedPolicy, UniformPolicy

RULES = EpisodeRules(max_turns=10, sampling=Sampling(max_tokens=16), text_format=Bare())


def episode(
    policy: Policy, task: str = "start-2", env: Callable[[], TextEnv] = LineEnv, rules: EpisodeRules = RULES
) -> Trajectory:
    """One episode to branch from."""

    async def play() -> Trajectory:
        async with HostPool(lambda: InlineHost(env), 1) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=rules)
            (trajectory,) = await rollout.episodes([Task(id=task, split="train")], seeds=[0])
            assert isinstance(trajectory, Trajectory)
            return trajectory

    return asyncio.run(play())


def continued(
    policy: Policy,
    trajectory: Trajectory,
    turn: int,
    n: int = 8,
    *,
    env: Callable[[], TextEnv] = LineEnv,
    rules: EpisodeRules = RULES,
    restore_rng: bool = False,
    concurrency: int = 8,
    seeds: Sequence[int] | None = None,
    keep_rows: bool = False,
) -> list[Continuation | Failure]:
    """Continuations with the seeds 0.. for the policy and 1000.. for the environment, in a pool of their own."""

    async def play() -> list[Continuation | Failure]:
        async with HostPool(lambda: InlineHost(env), concurrency) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=rules)
            branch = Branch(rollout=rollout, restore_rng=restore_rng, keep_rows=keep_rows)
            env_seeds = range(1000, 1000 + n)
            return await branch.continuations(trajectory, turn, seeds=seeds or range(n), env_seeds=env_seeds)

    return asyncio.run(play())


def finished(runs: Sequence[Continuation | Failure]) -> list[Continuation]:
    """All of the runs, none of which may have failed."""
    assert all(isinstance(run, Continuation) for run in runs), runs
    return [run for run in runs if isinstance(run, Continuation)]


def test_continuations_get_what_is_left_of_the_turn_cap() -> None:
    """From the state before turn 4 of a cap of 10, all eight play exactly 6 turns, however often one branches."""
    policy = ScriptedPolicy(["look"], repeat=True)
    trajectory = episode(policy)
    for _ in range(2):
        assert [run.turns for run in finished(continued(policy, trajectory, 4))] == [6] * 8


@pytest.mark.parametrize("mode", ["append", "window"])
def test_continuations_go_on_from_the_very_ids_of_the_episode(mode: Literal["append", "window"]) -> None:
    """The first request of each has the prompt of the recorded turn, and a greedy policy repeats the episode."""
    rules = replace(RULES, mode=mode)
    script = ["right", "left", "jump", "right", "look"]
    recorded = ScriptedPolicy(script, repeat=True)
    trajectory = episode(recorded, rules=rules)
    for turn in range(10):
        policy = ScriptedPolicy([script[turn % 5 :][0], *(script[t % 5] for t in range(turn + 1, 10))])
        (run,) = finished(continued(policy, trajectory, turn, 1, rules=rules))
        assert run.turns == 10 - turn
        assert [tuple(r.ids) for r in policy.requests] == [tuple(r.ids) for r in recorded.requests[turn:]]


@pytest.mark.parametrize("ids", [[], [0], [1] * 16])
def test_continuations_start_before_and_after_empty_and_cut_replies(ids: list[int]) -> None:
    """A turn without an action is a state like any other, also where the environment had nothing to say about it."""
    empty = (ids, [-0.5] * len(ids), "length" if len(ids) > 1 else "stop")
    trajectory = episode(ScriptedPolicy(["right", empty, "right", "right"]), rules=replace(RULES, max_turns=4))
    for turn in (1, 2):
        policy = ScriptedPolicy(["right"], repeat=True)
        (run,) = finished(continued(policy, trajectory, turn, 1, rules=replace(RULES, max_turns=4)))
        assert run.turns == 4 - turn
        row = trajectory.rows[0].ids.tolist()
        assert list(policy.requests[0].ids) == row[: len(policy.requests[0].ids)]


def test_a_continuation_reports_how_it_ended() -> None:
    """Success, rewards from the branching state on, turns and sampled tokens."""
    trajectory = episode(ScriptedPolicy(["right", "right", "right"]), "start-6")
    (run,) = finished(continued(ScriptedPolicy(["look", "right", "right"]), trajectory, 1, 1))
    # "look" is 4 ids and "right" 5, each with an end token.
    assert run == Continuation(success=True, reward=1.0, turns=3, tokens=5 + 6 + 6)


@pytest.mark.parametrize("mode", ["append", "window"])
def test_what_a_continuation_sampled_is_kept_to_train_on(mode: Literal["append", "window"]) -> None:
    """The very ids and log-probabilities, of the turns from the branching state on; what was sampled before is masked.

    "ab" is sampled as [1, 2], which nobody encodes like that, before the branching state and after it.
    """
    rules = replace(RULES, mode=mode, window=2, max_turns=4)
    before = ([1, 2, 0], [-0.5, -0.75, -0.25], "stop")
    trajectory = episode(ScriptedPolicy([before], repeat=True), rules=rules)
    script = [([1, 2, 0], [-1.5, -2.5, -3.5], "stop"), ([2], [-4.5], "length")]
    policy = ScriptedPolicy(script)
    (run,) = finished(continued(policy, trajectory, 2, 1, rules=rules, keep_rows=True))
    prompts = [list(request.ids) for request in policy.requests]
    assert [1, 2, 0] in [prompts[0][place : place + 3] for place in range(len(prompts[0]))]
    ids = [row.ids.tolist() for row in run.rows]
    masks = [row.loss_mask.tolist() for row in run.rows]
    turns = [row.turn_of_token[row.loss_mask].tolist() for row in run.rows]
    logprobs = [row.logprobs[row.loss_mask].tolist() for row in run.rows]
    if mode == "append":
        assert ids == [[*prompts[1], 2]]
        between = len(prompts[1]) - len(prompts[0]) - 3
        assert masks == [[False] * len(prompts[0]) + [True] * 3 + [False] * between + [True]]
        assert (turns, logprobs) == ([[2, 2, 2, 3]], [[-1.5, -2.5, -3.5, -4.5]])
    else:
        assert ids == [[*prompts[0], 1, 2, 0], [*prompts[1], 2]]
        assert masks == [[False] * len(prompts[0]) + [True] * 3, [False] * len(prompts[1]) + [True]]
        assert (turns, logprobs) == ([[2, 2, 2], [3]], [[-1.5, -2.5, -3.5], [-4.5]])
    for row in run.rows:  # Nothing of the episode that was branched from is left but its ids.
        untrained = ~row.loss_mask
        assert (set(row.turn_of_token[untrained].tolist()), set(row.logprobs[untrained].tolist())) == ({-1}, {0.0})


def test_the_support_of_a_kept_token_is_that_it_was_drawn_from() -> None:
    """Of "ab" and "b" the first id is drawn among 2 and 3, and the end token from itself; the prompt has none."""
    policy = UniformPolicy(["ab", "b"])
    rules = replace(RULES, max_turns=3)
    (run,) = finished(continued(policy, episode(policy, rules=rules), 1, 1, rules=rules, keep_rows=True))
    (row,) = run.rows
    kept = [support for support, mine in zip(row.support, row.loss_mask, strict=True) if mine]
    assert kept == [(2, 3), (0,), (2, 3), (0,)]
    assert {support for support, mine in zip(row.support, row.loss_mask, strict=True) if not mine} == {None}


def test_nothing_is_kept_unless_asked_for() -> None:
    """Continuations that only measure hold no tokens."""
    policy = ScriptedPolicy(["look"], repeat=True)
    assert [run.rows for run in finished(continued(policy, episode(policy), 4))] == [()] * 8


def test_fresh_environment_seeds_let_luck_vary_and_restored_ones_do_not() -> None:
    """64 coins from one snapshot: a share of heads between 0.3 and 0.7; with the restored RNG all are equal."""
    policy = ScriptedPolicy(["open"], repeat=True)
    trajectory = episode(policy, "coin", CoinEnv)
    heads = [run.success for run in finished(continued(policy, trajectory, 0, 64, env=CoinEnv))]
    assert 0.3 < sum(heads) / 64 < 0.7
    again = [run.success for run in finished(continued(policy, trajectory, 0, 64, env=CoinEnv))]
    assert again == heads
    restored = finished(continued(policy, trajectory, 0, 64, env=CoinEnv, restore_rng=True))
    assert {run.success for run in restored} == {trajectory.success}


def test_seeds_decide_and_concurrency_does_not() -> None:
    """Equal seeds give equal continuations in 1 or 16 environments; the sampling seeds make them differ."""
    policy = UniformPolicy(["left", "right", "look"])
    trajectory = episode(ScriptedPolicy(["look"], repeat=True), "start-8")
    runs = [finished(continued(policy, trajectory, 1, 16, concurrency=n)) for n in (1, 16)]
    assert runs[0] == runs[1]
    assert len({run.turns for run in runs[0]}) > 1
    same = finished(continued(policy, trajectory, 1, 16, seeds=[5] * 16))
    assert len(set(same)) == 1


def test_continuations_end_at_a_full_context_as_episodes_do() -> None:
    """An overflowed continuation is one that did not succeed, not a failure."""
    policy = ScriptedPolicy(["look"], repeat=True, context_limit=150)
    trajectory = episode(policy)
    # The opening has 27 ids and each turn adds 5 + 28: 27, 60, 93, 126, and 126 + 16 is the last that fits.
    assert trajectory.n_turns == 4
    (run,) = finished(continued(policy, trajectory, 2, 1))
    assert (run.turns, run.success) == (2, False)


def test_continuations_store_no_states() -> None:
    """Nobody branches from them, so nobody pays for their snapshots."""
    taken = []

    class Counting(LineEnv):
        def snapshot(self) -> Any:
            taken.append(1)
            return super().snapshot()

    policy = ScriptedPolicy(["look"], repeat=True)
    trajectory = episode(policy, env=Counting)
    assert len(taken) == 10
    finished(continued(policy, trajectory, 4, env=Counting))
    assert len(taken) == 10


# What goes wrong


def failing_restore(*broken: int) -> tuple[Callable[[], TextEnv], "count[int]"]:
    """Environments that cannot restore, at the restores with the given numbers; and a counter of all restores."""
    restores = count()

    class Fragile(LineEnv):
        def restore(self, snapshot: Any) -> Any:
            if next(restores) in broken:
                raise ValueError("cannot restore")
            return super().restore(snapshot)

    return Fragile, restores


def test_a_continuation_that_fails_for_good_is_left_out() -> None:
    """One of eight is a record with its cause; the seven others are there."""
    policy = ScriptedPolicy(["look"], repeat=True)
    trajectory = episode(policy)
    env, restores = failing_restore(2, 3, 4)
    runs = continued(policy, trajectory, 4, env=env)
    assert next(restores) == 10
    assert [run.turns for run in runs if isinstance(run, Continuation)] == [6] * 7
    failure = runs[2]
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.where, failure.turn, failure.seed) == (FailureCause.ERROR, "env.restore", 4, 2)
    assert "ValueError: cannot restore" in failure.detail


def test_a_continuation_that_fails_once_is_played_again() -> None:
    """A retry from the same seeds loses nothing."""
    policy = UniformPolicy(["left", "right", "look"])
    trajectory = episode(policy)
    env, _ = failing_restore(2, 3)
    assert continued(policy, trajectory, 4, env=env) == continued(policy, trajectory, 4)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through(stop: type[BaseException]) -> None:
    """Ctrl-C in a continuation is nobody's failure."""

    class Interrupted(LineEnv):
        def restore(self, snapshot: Any) -> Any:
            raise stop

    policy = ScriptedPolicy(["look"], repeat=True)
    with pytest.raises(stop):
        continued(policy, episode(policy), 4, env=Interrupted)


def test_a_step_that_raises_is_recorded_at_its_turn() -> None:
    """Turns are counted from the start of the episode."""

    class Breaking(LineEnv):
        def step(self, action: str) -> Any:
            if self.snapshot().steps == 7:
                raise ValueError("no more")
            return super().step(action)

    policy = ScriptedPolicy(["look"], repeat=True)
    (failure,) = continued(policy, episode(policy), 4, 1, env=Breaking)
    assert isinstance(failure, Failure)
    assert (failure.where, failure.turn, failure.cause) == ("env.step", 7, FailureCause.ERROR)


def test_a_state_that_does_not_come_back_is_a_mismatch() -> None:
    """It is not tried again, and nothing is sampled from it."""
    restores = count()

    class Wrong(LineEnv):
        def restore(self, snapshot: Any) -> Any:
            next(restores)
            return super().restore(snapshot._replace(cell=snapshot.cell + 1))

    trajectory = episode(ScriptedPolicy(["look"], repeat=True))
    policy = ScriptedPolicy([])
    (failure,) = continued(policy, trajectory, 4, 1, env=Wrong)
    assert isinstance(failure, Failure)
    assert failure.cause == FailureCause.MISMATCH
    assert "expected state key and observation before turn 4 back" in failure.detail
    assert (next(restores), policy.requests) == (1, [])


@pytest.mark.parametrize("turn", [-1, 10])
def test_only_recorded_turns_can_be_branched_from(turn: int) -> None:
    """After the last turn there is no state to continue from."""
    policy = ScriptedPolicy(["look"], repeat=True)
    with pytest.raises(SnapshotError, match=r"expected a turn in 0\.\.9, got"):
        continued(policy, episode(policy), turn)


def test_other_weights_are_refused() -> None:
    """A trajectory is continued by the policy that sampled it."""
    trajectory = episode(ScriptedPolicy(["look"], repeat=True, version=3))
    with pytest.raises(SnapshotError, match=r"policy version 4, got version 3.*before the weights change"):
        continued(ScriptedPolicy(["look"], version=4), trajectory, 4)


def test_a_trajectory_without_snapshots_is_refused() -> None:
    """The message says how to get them."""
    policy = ScriptedPolicy(["look"], repeat=True)
    trajectory = episode(policy, rules=replace(RULES, record_states=False))
    with pytest.raises(SnapshotError, match="record_states=True"):
        continued(policy, trajectory, 4)


def test_the_prefix_of_all_continuations_is_computed_once(line_policy: Path) -> None:
    """A real policy: of both arms' prompts one token each is computed, which stands for all K continuations."""
    policy = HFPolicy.load(line_policy, context_limit=512)
    trajectory = episode(policy)
    counters, k = policy.counters, 8
    for turn in (3, 4):
        computed, reused, batches = (counters.prompt_tokens_computed, counters.prompt_tokens_reused, counters.batches)
        # Under this cap every continuation plays one turn, so its prompt is the only one.
        rules = replace(RULES, max_turns=turn + 1)
        assert len(finished(continued(policy, trajectory, turn, k, rules=rules))) == k
        assert counters.batches == batches + 1
        assert counters.prompt_tokens_computed - computed == 1
        assert counters.prompt_tokens_reused - reused == k * trajectory.turns[turn].prompt_length - 1
