"""Surveys of successes."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from surveyed import course, turn

from prover.branch import Branch
from prover.diagnosis.survey import FIRST, SECOND, Course, Surveyor, turns_of
from prover.errors import EnvError
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.records import (
    Continuation,
    Failure,
    FailureCause,
    Group,
    Proposal,
    Sampling,
    Segment,
    Task,
    Trajectory,
)
from prover.rollout import EpisodeRules, Rollout
from prover.testing import LineEnv, ScriptedPolicy

RULES = EpisodeRules(max_turns=6, sampling=Sampling(max_tokens=16), text_format=Bare())
TASK = Task(id="start-7", split="train")


def test_values_pool_the_continuations_of_both_passes() -> None:
    """2 of 8 and 3 of 4 are 5 of 12; what follows the last turn is known."""
    found = course([0, 2], [0, 3])
    assert found.value(1) == pytest.approx(5 / 12)
    assert found.value(2) == 1
    assert found.delta(turn(0)) == pytest.approx(5 / 12)
    assert found.delta(turn(0), (FIRST,)) == 0.25
    assert found.delta(turn(0), (SECOND,)) == 0.75


def test_an_estimate_is_that_of_a_verifier() -> None:
    """Counts, turns and tokens of both states, and what the segment itself brought."""
    found = course([1, 2, 6], [0, 0, 0], rewards=(0.5, 0.25, 1.0)).estimate(Segment(trajectory=0, start=0, end=1))
    assert (found.before.successes, found.after.successes, found.after.n) == (1, 6, 8)
    assert (found.delta, found.turns, found.tokens, found.gained) == (0.625, 6, 12, 0.75)


def test_fewer_continuations_are_the_first_ones() -> None:
    """Of 8 the first 2: successes come first, and the first one took all 3 turns of its state; ends stay known."""
    found = course([1, 5], [0, 0])
    two = found.estimate(turn(0), FIRST, 2)
    assert (two.before.successes, two.after.successes, two.before.n, two.after.n) == (1, 2, 2, 2)
    assert (two.delta, two.turns, two.tokens) == (0.5, 6, 12)
    assert found.estimate(turn(1), FIRST, 4).after == found.estimate(turn(1)).after
    assert turns_of([found], [(0, turn(0))], FIRST, 4) == 6
    assert turns_of([found], [(0, turn(0))], FIRST, 0) == 0


def test_the_best_turn_is_chosen_by_the_first_pass_alone() -> None:
    """The first pass rises most at turn 1, the second one at turn 0; the last turn, a rise of 7, may not be named."""
    found = course([0, 0, 1, 1], [0, 4, 4, 4])
    assert found.best() == turn(1)
    assert found.delta(turn(1), (SECOND,)) == 0


def test_idle_turns_are_not_named() -> None:
    """Without turns 1 and 3 only 0 and 2 are left, worth 2/8 and 3/8; no two turns in a row are."""
    found = course([0, 2, 4, 7], [0, 0, 0, 0], idle=[1])
    assert found.segments() == [turn(0), turn(2)]
    assert found.random_delta(1, (FIRST,)) == pytest.approx(2.5 / 8)
    assert found.random_delta(2) is None
    assert course([3], [1]).best() is None


def test_records_come_back_from_json() -> None:
    """What is written is read back as it was."""
    found = course([0, 2, 4], [0, 1, 3], idle=[0], group=5, task="a b")
    assert Course.of_record(json.loads(json.dumps(found.record()))) == found


def test_shared_states_cost_once() -> None:
    """Turns 0 and 1 share the state between them: three states of 3 turns each, the last known one is free."""
    found = course([0, 2], [0, 1])
    places = [(0, turn(0)), (0, turn(1))]
    assert turns_of([found], places) == 2 * 3
    assert turns_of([found], places[:1]) == 2 * 3
    assert turns_of([found], places[1:]) == 3


def test_a_choice_costs_what_it_was_made_by() -> None:
    """Turn 1 of three, measured by the second pass: two states of 5 turns, and all three of the first of 3 turns."""
    assert turns_of([course([0, 2, 4], [0, 1, 3])], [(0, turn(1))], SECOND) == 2 * 5 + 3 * 3


async def surveyed(*members: int) -> tuple[Surveyor, Group, list[Course]]:
    """Surveys of members of a group of three that walk from cell 7 to 9: left first, then thrice right."""
    said = [*("left", "right", "right", "right") * 3]
    async with HostPool(lambda: InlineHost(LineEnv), 1) as hosts:
        rollout = Rollout(policy=ScriptedPolicy([*said, "right"], repeat=True), hosts=hosts, rules=RULES)
        runs = await rollout.episodes([TASK] * 3, seeds=[0, 1, 2])
        group = Group(index=4, task=TASK, trajectories=tuple(run for run in runs if isinstance(run, Trajectory)))
        rollout = Rollout(policy=ScriptedPolicy(["right"], repeat=True), hosts=hosts, rules=RULES)
        surveyor = Surveyor(branch=Branch(rollout=rollout), continuations=4, seed=3)
        return surveyor, group, [await surveyor.course(group, member) for member in members]


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[int], list[int]]]:
    """Turn and seeds of all continuations."""
    seen: list[tuple[int, list[int], list[int]]] = []
    play = Branch.continuations

    async def spy(
        self: Branch, trajectory: Trajectory, turn: int, *, seeds: Sequence[int], env_seeds: Sequence[int]
    ) -> Any:
        seen.append((turn, [*seeds], [*env_seeds]))
        return await play(self, trajectory, turn, seeds=seeds, env_seeds=env_seeds)

    monkeypatch.setattr(Branch, "continuations", spy)
    return seen


def test_the_second_pass_is_fresh(seeds: list[tuple[int, list[int], list[int]]]) -> None:
    """Every continuation has a sampling seed of its own; the passes share no environment seed either."""
    _, _, (found,) = asyncio.run(surveyed(0))
    assert [place for place, *_ in seeds] == [0, 1, 2, 3] * 2
    assert [len(drawn) for _, drawn, _ in seeds] == [4] * 4 + [2] * 4
    sampling = [seed for _, drawn, _ in seeds for seed in drawn]
    assert len(set(sampling)) == len(sampling) == 24
    first, second = ({seed for _, _, drawn in part for seed in drawn} for part in (seeds[:4], seeds[4:]))
    assert (len(first), len(second), first & second) == (4, 2, set())
    assert [state.arm.n for state in found.passes[SECOND]] == [2, 2, 2, 2, 1]


def test_a_survey_walks_on_from_every_state() -> None:
    """From cells 7, 6, 7 and 8 there are 2, 3, 2 and 1 cells to go; each of four continuations gets there."""
    _, _, (found,) = asyncio.run(surveyed(0))
    assert [state.turns for state in found.passes[FIRST]] == [8, 12, 8, 4, 0]
    assert {state.arm.rate for state in found.passes[FIRST]} == {1.0}
    assert found.passes[FIRST][-1].arm.known
    assert (found.group, found.task, found.trajectory, found.n_turns) == (4, "start-7", 0, 4)
    assert found.usable == (True, True, True, False)
    assert found.rewards == (0, 0, 0, 1)


def test_a_run_is_surveyed_once(seeds: list[tuple[int, list[int], list[int]]]) -> None:
    """Whoever asks for it, and as a verifier as well."""

    async def ask() -> None:
        surveyor, group, _ = await surveyed(1)
        before = len(seeds)
        proposal = Proposal(segment=turn(2, trajectory=1), reason="", judge="x")
        (estimate,) = await surveyor.verify_all([proposal], group, seed=9)
        assert (estimate.before.n, estimate.after.n, estimate.turns) == (4, 4, 12)
        assert [found.trajectory for found in await surveyor.surveyed()] == [1]
        assert len(seeds) == before == 8

    asyncio.run(ask())


def test_what_was_sampled_is_given_once() -> None:
    """Two segments share the state between them: the second gets the continuations of its far end alone."""

    async def ask() -> None:
        said = ["left", "right", "right", "right"]
        async with HostPool(lambda: InlineHost(LineEnv), 1) as hosts:
            rollout = Rollout(policy=ScriptedPolicy(said, repeat=True), hosts=hosts, rules=RULES)
            runs = await rollout.episodes([TASK], seeds=[0])
            group = Group(index=4, task=TASK, trajectories=tuple(run for run in runs if isinstance(run, Trajectory)))
            rollout = Rollout(policy=ScriptedPolicy(["right"], repeat=True), hosts=hosts, rules=RULES)
            surveyor = Surveyor(branch=Branch(rollout=rollout, keep_rows=True), continuations=4, seed=3)
            proposals = [Proposal(segment=turn(place), reason="", judge="x") for place in (1, 2, 3)]
            first, second, last = await surveyor.verify_all(proposals, group, seed=0)
            assert [[len(part) for part in one.played] for one in (first, second, last)] == [[4, 4], [4], []]
            assert {run.turns for run in first.played[0]} == {3}
            assert all(run.rows for part in (*first.played, *second.played) for run in part)

    asyncio.run(ask())


def test_a_state_without_an_outcome_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every continuation failed the run cannot be surveyed; where some finished they are counted."""
    lost = Failure(cause=FailureCause.ERROR, where="env.step", task="t", member=0, seed=0, turn=1, detail="it broke")
    kept = Continuation(success=True, reward=1.0, turns=2, tokens=4)
    answers: list[list[Continuation | Failure]] = [[kept, lost]]

    async def scripted(self: Branch, *args: Any, **kwargs: Any) -> list[Continuation | Failure]:
        return answers[0]

    monkeypatch.setattr(Branch, "continuations", scripted)
    _, _, (found,) = asyncio.run(surveyed(0))
    assert (found.passes[FIRST][0].arm.n, found.passes[FIRST][0].arm.failures) == (1, 1)
    answers[0] = [lost, lost]
    with pytest.raises(EnvError, match=r"expected at least one of 2 continuations .* env.step: it broke"):
        asyncio.run(surveyed(0))
