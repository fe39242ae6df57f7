"""Walks and their comparison."""

from dataclasses import replace
from typing import Any

import pytest

from prover.checks.walk import (
    DEPTH,
    Answer,
    Walk,
    act,
    contract_info,
    difference,
    follow,
    instance,
    longest_walk,
    random_walk,
    start,
)
from prover.errors import EnvError
from prover.testing import CoinEnv, LineEnv

HERE = Answer(observation="here", reward=0.0, terminated=False, truncated=False, info={"success": False}, state_key="k")


def test_a_step_is_recorded_whole() -> None:
    """An answer holds observation, reward, flags, state key and the keys that the contract knows."""
    env = LineEnv()
    assert start(env, "start-8", seed=0).observation == "You are in cell 8 of 0..9."
    answer = act(env, "right")
    assert (answer.reward, answer.terminated, answer.truncated, answer.over) == (1.0, True, False, True)
    assert answer.state_key == env.state_key()
    assert answer.info == {"success": True, "admissible_actions": [], "invalid_action": False}


def test_other_info_is_left_out() -> None:
    """Keys that the contract does not know may differ."""
    assert contract_info({"success": True, "elapsed": 0.3}) == {"success": True}


def test_following_stops_at_the_end() -> None:
    """Actions after the end of the episode are not taken."""
    env = LineEnv()
    start(env, "start-7", seed=0)
    assert [answer.over for answer in follow(env, ["right"] * 5)] == [False, True]


def test_random_walks_repeat_and_keep_their_limit() -> None:
    """The seed fixes the walk; seeds differ; the answers are one more than the actions."""
    one, two = (random_walk(LineEnv(), "start-0", 4, limit=8) for _ in range(2))
    assert one == two
    assert (len(one.actions), len(one.answers)) == (8, 9)
    assert one.actions != random_walk(LineEnv(), "start-0", 5, limit=8).actions


def test_given_actions_replace_the_admissible_ones() -> None:
    """A walk draws from the list where there is one."""
    assert set(random_walk(LineEnv(), "start-0", 0, ["look"]).actions) == {"look"}


def test_a_walk_needs_actions() -> None:
    """Neither a list nor admissible actions is an error that names the argument."""

    class Silent(LineEnv):
        def _info(self) -> dict[str, Any]:
            return {"success": False}

    with pytest.raises(EnvError, match="actions="):
        random_walk(Silent(), "start-0", 0)


def test_the_longest_walk_is_taken() -> None:
    """A walk that does not end is preferred; where all end, the one that ends last."""
    walk = longest_walk(LineEnv, ["start-8", "start-0"], 0, ())
    assert len(walk.actions) == DEPTH
    assert not walk.answers[-1].over
    assert len(longest_walk(CoinEnv, ["coin"], 0, ()).actions) == 1


@pytest.mark.parametrize(("n", "depths"), [(1, (0,)), (2, (0, 1)), (12, (0, 1, 6, 11))])
def test_snapshots_are_tried_early_and_late(n: int, depths: tuple[int, ...]) -> None:
    """There is always an action left after the last depth."""
    assert Walk(task="t", seed=0, actions=("look",) * n, answers=(HERE,) * (n + 1)).depths == depths


@pytest.mark.parametrize(
    "change",
    [
        {"observation": "there"},
        {"reward": 1.0},
        {"terminated": True},
        {"truncated": True},
        {"info": {"success": True}},
        {"state_key": "l"},
    ],
)
def test_every_part_of_an_answer_is_compared(change: dict[str, Any]) -> None:
    """The first difference is told with its place; parts that were not asked for are not looked at."""
    (name,) = change
    other = replace(HERE, **change)
    told = difference([HERE, HERE, HERE], [HERE, HERE, other], first=3)
    assert told == f"expected {name} {getattr(HERE, name)!r} after 5 actions, got {getattr(other, name)!r}"
    assert difference([HERE], [other], [part for part in ("reward", "state_key") if part != name]) is None


def test_runs_of_other_lengths_differ() -> None:
    """One that ends earlier is told by where."""
    assert difference([HERE, HERE], [HERE, HERE]) is None
    assert difference([HERE, HERE], [HERE], first=1) == "expected the end after 2 actions, got it after 1"


def test_long_values_are_shortened() -> None:
    """A message stays readable."""
    told = difference([replace(HERE, observation="a" * 5000)], [HERE])
    assert told is not None
    assert len(told) < 500


def test_instances_are_closed() -> None:
    """Whatever happens in the block."""
    closed: list[str] = []

    class Closing(LineEnv):
        def close(self) -> None:
            closed.append("closed")

    with pytest.raises(OSError, match="planted"), instance(Closing):
        raise OSError("planted")
    assert closed == ["closed"]
