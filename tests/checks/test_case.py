"""What the rules build on: snapshots along a walk, continuations, refusals."""

from typing import Any

import pytest

from prover.checks.case import Broken, Case, difference_after, expect_continuation, expect_refusal, take_snapshots
from prover.checks.walk import Walk, follow, random_walk
from prover.testing import LineEnv


def walked() -> Walk:
    """Four actions of a LineEnv."""
    return random_walk(LineEnv(), "start-3", 0, ["right", "look"], limit=4)


def test_snapshots_are_taken_at_the_depths_of_a_walk() -> None:
    """Each holds the state after so many actions."""
    taken = take_snapshots(LineEnv(), walked())
    assert [(depth, snapshot.steps) for depth, snapshot in taken] == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_right_continuation_is_accepted() -> None:
    """From every snapshot, the walk goes on as it did."""
    env, walk = LineEnv(), walked()
    for depth, snapshot in take_snapshots(env, walk):
        expect_continuation(env, snapshot, walk, depth, "here")
        env.restore(snapshot)
        assert difference_after(walk, depth, follow(env, walk.actions[depth:])) is None


def test_a_wrong_continuation_is_told() -> None:
    """The message says what differs, after how many actions, how it was restored and what to do."""
    env, walk = LineEnv(), walked()
    snapshot = dict(take_snapshots(env, walk))[2]._replace(cell=0)
    with pytest.raises(Broken, match=r"after 2 actions, got 'You are in cell 0.*restored for a test; put all"):
        expect_continuation(env, snapshot, walk, 2, "for a test")


def test_refusals_are_expected_of_finished_episodes() -> None:
    """An EnvError is right; an answer or another exception is told."""
    env = LineEnv()
    env.reset(options={"task": "start-8"})
    with pytest.raises(Broken, match=r"expected step\(\) now to raise EnvError, got"):
        expect_refusal(env, "right", "now")
    expect_refusal(env, "right", "now")

    class Raises(LineEnv):
        def step(self, action: str) -> Any:
            raise ValueError("planted")

    with pytest.raises(Broken, match=r"got ValueError: planted; raise prover\.errors\.EnvError"):
        expect_refusal(Raises(), "right", "now")


def test_another_task_is_preferred() -> None:
    """The task of a disturbing episode differs from the walk's where it can."""
    options: dict[str, Any] = {"factory": LineEnv, "split": None, "seed": 0, "actions": (), "ending": None}
    assert Case(tasks=["start-3", "start-5"], walk=walked(), **options).other_task == "start-5"
    assert Case(tasks=["start-3"], walk=walked(), **options).other_task == "start-3"
