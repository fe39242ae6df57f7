"""LineEnv: cells 0..9, to the last one."""

import pytest

from prover.errors import EnvError, SnapshotError, UnknownNameError
from prover.protocols import TextEnv
from prover.records import EndReason, Task, Trajectory, Turn
from prover.testing import LineEnv
from prover.testing.line import pivots


def at(cell: int) -> LineEnv:
    """A LineEnv that starts in a cell."""
    env = LineEnv()
    env.reset(seed=0, options={"task": f"start-{cell}"})
    return env


def test_it_keeps_the_protocol() -> None:
    """It is a TextEnv with nine tasks, the same in every split."""
    env = LineEnv()
    assert isinstance(env, TextEnv)
    assert list(env.tasks("train")) == list(env.tasks("test")) == [f"start-{cell}" for cell in range(9)]


@pytest.mark.parametrize(("action", "cell"), [("left", 3), ("look", 4), ("right", 5)])
def test_actions_move(action: str, cell: int) -> None:
    """Each action leads from cell 4 to its cell, without reward."""
    observation, reward, terminated, truncated, info = at(4).step(action)
    assert observation == f"You are in cell {cell} of 0..9."
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info == {
        "success": False,
        "admissible_actions": ["left", "look", "right"],
        "invalid_action": False,
        "steps": 1,
    }


def test_the_wall_stops() -> None:
    """Left of cell 0 is cell 0."""
    assert at(0).step("left")[0] == "You are in cell 0 of 0..9."


def test_the_last_cell_ends_with_success() -> None:
    """Cell 9 pays 1, ends the episode, and nothing can be done there."""
    env = at(8)
    observation, reward, terminated, _, info = env.step("right")
    assert (observation, reward, terminated) == ("You are in cell 9 of 0..9.", 1.0, True)
    assert (info["success"], info["admissible_actions"]) == (True, [])
    with pytest.raises(EnvError, match="after it"):
        env.step("look")


def test_an_unknown_action_is_invalid() -> None:
    """It changes nothing but the number of steps, and a snapshot after it brings its answer back."""
    env = at(4)
    key = env.state_key()
    observation, _, _, _, info = env.step("jump")
    assert (observation, info["invalid_action"], env.state_key()) == ("Nothing happens.", True, key)
    assert at(0).restore(env.snapshot()) == (observation, info)


def test_keys_tell_cells_apart_and_not_steps() -> None:
    """Coming back to a cell is coming back to its key."""
    env = at(4)
    key = env.state_key()
    env.step("right")
    assert env.state_key() != key
    env.step("left")
    assert env.state_key() == key


def test_a_seed_draws_a_task() -> None:
    """Without a task the seed decides, and different seeds differ."""
    openings = [LineEnv().reset(seed=seed)[0] for seed in range(20)]
    assert openings == [LineEnv().reset(seed=seed)[0] for seed in range(20)]
    assert len(set(openings)) > 3


def test_misuse_is_told() -> None:
    """Unknown names, foreign snapshots and calls before reset are errors of their kind."""
    env = LineEnv()
    with pytest.raises(UnknownNameError, match="start-9"):
        env.reset(options={"task": "start-9"})
    with pytest.raises(UnknownNameError, match="nowhere"):
        env.tasks("nowhere")
    with pytest.raises(SnapshotError, match="got dict"):
        env.restore({})  # type: ignore[arg-type]  # the misuse
    with pytest.raises(EnvError, match="neither"):
        LineEnv().step("look")


def test_pivots_lead_farther_than_before() -> None:
    """Each step to a new cell is pivotal; going back, looking, and the same step again are not."""
    env = LineEnv()
    env.reset(options={"task": "start-2"})
    turns = []
    for action in ("look", "right", "left", "right", "right", "left", "jump", "right"):
        turns.append(Turn(text=action, action=action, result="", reward=0.0, snapshot=env.snapshot()))
        env.step(action)
    trajectory = Trajectory(
        task=Task(id="start-2", split="train"),
        member=0,
        seed=0,
        policy_version=0,
        opening="",
        turns=tuple(turns),
        rows=(),
        reward=0.0,
        success=False,
        end=EndReason.TURN_CAP,
    )
    # Cells 2 2 3 2 3 4 3 3: new ground in turns 1 and 4.
    assert pivots(trajectory) == [1, 4]
