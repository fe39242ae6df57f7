"""The problem with two decisions that matter."""

import asyncio
from itertools import product

import numpy as np
import pytest

from prover.branch import Branch
from prover.checks import check_text_env
from prover.errors import EnvError, SnapshotError, UnknownNameError
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.records import Group, Proposal, Sampling, Segment, Task
from prover.rollout import EpisodeRules, Rollout
from prover.testing import PivotEnv, TabularPolicy
from prover.testing.pivots import DECISIONS, Pivots
from prover.verify import MonteCarloVerifier


def task(*pivotal: int, right: int = 1, slip: int = 0) -> Pivots:
    """A task with pivots at these places and the same right and slipping action everywhere."""
    return Pivots(
        right=np.full(DECISIONS, right),
        slip=np.full(DECISIONS, slip),
        pivotal=np.isin(np.arange(DECISIONS), pivotal),
    )


def test_it_keeps_the_contract() -> None:
    """Snapshots, restores, chance and errors are as the framework expects them."""
    check_text_env(PivotEnv)


def test_the_value_after_the_last_decision_is_what_was_earned() -> None:
    """Both pivots right and three slips: .95 x .95^3; one pivot right: .10; none: .02."""
    actions = np.full((3, DECISIONS), 2)
    actions[0, [4, 9]] = 1
    actions[0, [0, 1, 15]] = 0
    actions[1, 4] = 1
    values = task(4, 9).values(actions, np.full((DECISIONS, 4), 0.25))
    assert values[:, -1] == pytest.approx([0.95**4, 0.10, 0.02])


def test_a_slip_at_a_pivot_costs_nothing_but_the_pivot() -> None:
    """The slipping action counts elsewhere only."""
    actions = np.full((1, DECISIONS), 2)
    actions[0, 4] = 0
    assert task(4, 9).values(actions, np.full((DECISIONS, 4), 0.25))[0, -1] == pytest.approx(0.02)


def test_the_value_at_the_start_is_the_mean_over_all_that_can_happen() -> None:
    """A policy that hesitates at three decisions: the closed form equals the sum over its 27 episodes."""
    probabilities = np.zeros((DECISIONS, 4))
    probabilities[:, 2] = 1.0
    for place in (0, 4, 9):
        probabilities[place] = [0.2, 0.3, 0.5, 0.0]
    expected = 0.0
    for first, second, third in product(range(3), repeat=3):
        chance = np.prod([[0.2, 0.3, 0.5][action] for action in (first, second, third)])
        taken = (second == 1) + (third == 1)
        expected += chance * (0.02, 0.10, 0.95)[taken] * (0.95 if first == 0 else 1.0)
    some = np.full((1, DECISIONS), 2)
    assert task(4, 9).values(some, probabilities)[0, 0] == pytest.approx(expected)


def test_many_tasks_are_drawn_at_once() -> None:
    """Two pivots each; the best score is right and the worst one slips."""
    scores = np.random.default_rng(0).normal(size=(3, 5, DECISIONS, 4))
    drawn = Pivots.draw(np.random.default_rng(1), scores)
    assert (drawn.pivotal.sum(-1) == 2).all()
    assert np.array_equal(np.take_along_axis(scores, drawn.right[..., None], -1)[..., 0], scores.max(-1))
    assert np.array_equal(np.take_along_axis(scores, drawn.slip[..., None], -1)[..., 0], scores.min(-1))


def test_the_framework_measures_what_is_true() -> None:
    """Rollout, branch and verifier agree with the closed form: the difference of a pivotal turn within 4 errors."""
    pivots = PivotEnv.pivots("pivots-3")
    place = int(np.flatnonzero(pivots.pivotal)[0])
    probabilities = np.full((DECISIONS, 4), 0.25)
    last = int(np.flatnonzero(pivots.pivotal)[1])
    probabilities[last] = [0.7 if action == pivots.right[last] else 0.1 for action in range(4)]
    table = {f"Decision {t + 1} of 16.": probabilities[t].tolist() for t in range(DECISIONS)}
    table[f"Decision {place + 1} of 16."] = [float(action == pivots.right[place]) for action in range(4)]
    policy = TabularPolicy("0123", table)
    rules = EpisodeRules(max_turns=20, sampling=Sampling(max_tokens=4), text_format=Bare())

    async def measure() -> tuple[Group, float]:
        async with HostPool(lambda: InlineHost(PivotEnv), 8) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=rules)
            (group,) = await rollout.groups([Task(id="pivots-3", split="train")], 1, seed=1)
            # From here on the policy is unsure at the first pivot too: the recorded turn took it right.
            table[f"Decision {place + 1} of 16."] = [0.25] * 4
            verifier = MonteCarloVerifier(branch=Branch(rollout=rollout), continuations=400)
            segment = Segment(trajectory=0, start=place, end=place)
            estimate = await verifier.verify(Proposal(segment=segment, reason="", judge=""), group, seed=2)
            return group, estimate.delta

    group, delta = asyncio.run(measure())
    actions = np.array([[int(turn.action) for turn in group.trajectories[0].turns]])
    probabilities[place] = 0.25
    values = pivots.values(actions, probabilities)[0]
    true = values[place + 1] - values[place]
    errors = np.sqrt((values[place : place + 2] * (1 - values[place : place + 2])).sum() / 400)
    assert true > 0.3
    assert abs(delta - true) < 4 * errors


def test_what_cannot_be_done_is_refused() -> None:
    """Unknown tasks, foreign snapshots and steps after the end are errors; an unknown action changes nothing."""
    env = PivotEnv()
    with pytest.raises(UnknownNameError, match="pivots-200"):
        env.reset(options={"task": "pivots-200"})
    with pytest.raises(UnknownNameError, match="name one of these"):
        env.tasks("dev")
    with pytest.raises(SnapshotError, match="PivotState"):
        env.restore(3)  # type: ignore[arg-type]  # what is refused here
    with pytest.raises(EnvError, match="call one of them first"):
        PivotEnv().snapshot()
    env.reset(seed=0)
    assert env.step("jump")[4]["invalid_action"]
    for _ in range(DECISIONS):
        *_, terminated, _, _ = env.step("0")
    assert terminated
    with pytest.raises(EnvError, match="after it"):
        env.step("0")
