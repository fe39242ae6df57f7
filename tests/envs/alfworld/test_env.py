"""The adapter: contract, snapshots, filters."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

from prover.checks import check_text_env
from prover.envs.alfworld import TASK_TYPES, ALFWorldEnv
from prover.envs.alfworld.data import SPLITS
from prover.errors import ConfigError, DataError, EnvError, SnapshotError, UnknownNameError
from prover.protocols import TextEnv


@pytest.fixture
def env() -> ALFWorldEnv:
    """The environment on generated households."""
    return ALFWorldEnv()


@pytest.fixture
def task(env: ALFWorldEnv) -> str:
    """A generated task."""
    return env.tasks("train")[0]


def test_contract(env: ALFWorldEnv) -> None:
    """It is a TextEnv and passes Gymnasium's own check."""
    assert isinstance(env, TextEnv)
    check_env(env, skip_render_check=True)


def test_opening(env: ALFWorldEnv, task: str) -> None:
    """A reset gives the whole stock text and all that is known about the task."""
    observation, info = env.reset(options={"task": task})
    assert observation.startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.")
    assert "\n\nYour task is to: " in observation
    assert info["success"] is False
    assert info["invalid_action"] is False
    assert info["task_type"] in TASK_TYPES
    assert info["task"] == task
    assert {"inventory", "look"} < set(info["admissible_actions"])
    assert info["admissible_actions"] == sorted(info["admissible_actions"])


def test_help_works_but_is_not_offered(env: ALFWorldEnv, task: str) -> None:
    """``help`` is left out of the offered actions, and is no invalid action."""
    _, info = env.reset(options={"task": task})
    assert "help" not in info["admissible_actions"]
    observation, _, _, _, info = env.step("help")
    assert observation.startswith("Available commands:")
    assert info["invalid_action"] is False


def test_invalid_action(env: ALFWorldEnv, task: str) -> None:
    """A command without effect says so and gives no reward."""
    env.reset(options={"task": task})
    key = env.state_key()
    observation, reward, terminated, truncated, info = env.step("fly to moon 1")
    assert (observation, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
    assert info["invalid_action"] is True
    assert env.state_key() == key


APPLE = (
    *("go to countertop 1", "take apple 2 from countertop 1", "go to microwave 1", "heat apple 2 with microwave 1"),
    *("go to shelf 1", "move apple 2 to shelf 1"),
)


@pytest.fixture
def kitchen_folder(tmp_path: Path, kitchen_text: str) -> Path:
    """A folder with the kitchen as the only game."""
    file = tmp_path / "json_2.1.1/valid_seen/pick_heat_then_place_in_recep-Apple-None-Shelf-1/trial_T1/game.tw-pddl"
    file.parent.mkdir(parents=True)
    grammar = '"move {o} to {r}" "You arrive at {r.name}. #examineReceptacle.feedback#" "Your task is to: heat it."'
    file.write_text(json.dumps({"grammar": grammar, "pddl_problem": kitchen_text, "solvable": True}), encoding="utf-8")
    return tmp_path


KITCHEN = {"task": "valid_seen/pick_heat_then_place_in_recep-Apple-None-Shelf-1/trial_T1"}


def test_goal_ends_the_episode(kitchen_folder: Path) -> None:
    """Reaching the goal gives reward 1 and ends the episode; a further step is an error."""
    env = ALFWorldEnv(data=str(kitchen_folder))
    env.reset(options=KITCHEN)
    rewards = []
    for action in APPLE:
        _, reward, terminated, truncated, info = env.step(action)
        rewards.append(reward)
    assert rewards == [0.0] * 5 + [1.0]
    assert (terminated, truncated, info["success"]) == (True, False, True)
    with pytest.raises(EnvError, match="expected step\\(\\) before the end"):
        env.step("look")
    env.restore(env.snapshot())
    with pytest.raises(EnvError, match="expected step\\(\\) before the end"):
        env.step("look")


def test_snapshot_in_another_instance(kitchen_folder: Path) -> None:
    """A restored state continues as the original did, twice, in another instance, after pickling."""
    env = ALFWorldEnv(data=str(kitchen_folder))
    env.reset(options=KITCHEN)
    observation, _, _, _, info = [env.step(action) for action in APPLE[:3]][-1]
    snapshot, key = env.snapshot(), env.state_key()
    rest = [env.step(action) for action in APPLE[3:]]
    other = ALFWorldEnv(data=str(kitchen_folder))
    for _ in range(2):
        assert other.restore(pickle.loads(pickle.dumps(snapshot))) == (observation, info)
        assert (other.state_key(), other.snapshot()) == (key, snapshot)
        assert [other.step(action) for action in APPLE[3:]] == rest


def test_conformance(kitchen_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rule of the conformance kit holds, at the end of an episode too."""
    monkeypatch.setitem(SPLITS, "valid_seen", 1)
    factory = partial(ALFWorldEnv, data=str(kitchen_folder), split="valid_seen")
    report = check_text_env(factory, tasks=[KITCHEN["task"]], split="valid_seen", ending=APPLE, raises=False)
    assert report.passed, str(report)


def test_conformance_of_generated_games() -> None:
    """The same with households; the kit has the environment's own expert play an episode to its end."""
    report = check_text_env(ALFWorldEnv, raises=False)
    assert report.passed, str(report)
    assert {result.rule: result.status for result in report.results}["after_end"] == "ok"


def test_state_key_in_another_process(env: ALFWorldEnv, task: str) -> None:
    """The key of a state is the same in every process, and differs between states and tasks."""
    env.reset(options={"task": task})
    code = (
        "from prover.envs.alfworld import ALFWorldEnv\n"
        f"env = ALFWorldEnv(); env.reset(options={{'task': {task!r}}}); print(env.state_key())"
    )
    run = [sys.executable, "-c", code]
    key = subprocess.run(run, env={"PYTHONHASHSEED": "7"}, capture_output=True, check=True, text=True).stdout.strip()
    assert key == env.state_key()
    _, info = env.reset(options={"task": task})
    env.step(next(action for action in info["admissible_actions"] if action.startswith("go to")))
    assert env.state_key() != key
    env.reset(options={"task": env.tasks("train")[1]})
    assert env.state_key() != key


def test_state_key_is_of_the_state_alone(env: ALFWorldEnv, task: str) -> None:
    """Two ways to the same state have the same key."""
    _, info = env.reset(options={"task": task})
    first, second = [action for action in info["admissible_actions"] if action.startswith("go to")][:2]
    env.step(first)
    key = env.state_key()
    env.step(second)
    env.step(first)
    env.step("look")
    assert env.state_key() == key


def test_draws_from_the_seed(env: ALFWorldEnv) -> None:
    """Without a task the seed decides, in the split that is asked for."""
    task = env.reset(seed=3, options={"split": "test"})[1]["task"]
    assert ALFWorldEnv(split="test").reset(seed=3)[1]["task"] == task
    assert task in env.tasks("test")
    assert len({env.reset(seed=seed)[1]["task"] for seed in range(8)}) > 1


def test_filters(env: ALFWorldEnv) -> None:
    """Tasks are kept by type and by the number of receptacles, in the same order."""
    light = ALFWorldEnv(task_types=["look_at_obj_in_light"], max_receptacles=12)
    kept = light.tasks("dev")
    assert kept
    assert [task for task in env.tasks("dev") if task in set(kept)] == list(kept)
    for task in kept[:5]:
        observation, info = light.reset(options={"task": task})
        assert info["task_type"] == "look_at_obj_in_light"
        assert observation.partition("you see ")[2].partition(".")[0].count("a ") <= 12
    with pytest.raises(DataError, match="widen the filters"):
        ALFWorldEnv(max_receptacles=1).tasks("dev")


@pytest.mark.parametrize("call", ["snapshot", "state_key"])
def test_calls_before_reset(env: ALFWorldEnv, call: str) -> None:
    """Before the first episode there is nothing to save, and no step."""
    with pytest.raises(EnvError, match=f"before {call}"):
        getattr(env, call)()
    with pytest.raises(EnvError, match="before step"):
        env.step("look")


def test_wrong_arguments(env: ALFWorldEnv, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wrong argument is refused with its own error."""
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(ConfigError, match="pick_and_place_simple"):
        ALFWorldEnv(task_types=["pick"])
    with pytest.raises(ConfigError, match="max_receptacles"):
        ALFWorldEnv(max_receptacles=0)
    with pytest.raises(DataError, match="ALFWORLD_DATA"):
        ALFWorldEnv(data=None)
    with pytest.raises(ConfigError, match="'tasks'"):
        env.reset(options={"tasks": task})
    with pytest.raises(UnknownNameError, match="kitchen"):
        env.reset(options={"task": "train/kitchen"})
    with pytest.raises(SnapshotError, match="tuple"):
        env.restore(())
    env.reset(options={"task": task})
    with pytest.raises(EnvError, match="NoneType"):
        env.step(None)


def test_real_games(some_games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ALFWorld's own games the id is the path, and the variable names the folder."""
    monkeypatch.setenv("ALFWORLD_DATA", str(some_games))
    env = ALFWorldEnv(data="", split="valid_seen")
    with pytest.warns(UserWarning, match="expected 140 games"):
        observation, info = env.reset(seed=0)
    assert info["task"].startswith("valid_seen/")
    assert info["task"].split("/")[1].startswith(info["task_type"])
    assert observation.startswith("-= Welcome to TextWorld, ALFRED! =-")


def test_import_loads_no_generator(kitchen: Callable[..., object]) -> None:
    """The generator of households is imported only when it is used."""
    code = "import sys, prover.envs.alfworld; print('prover.envs.alfworld.households' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def played(env: ALFWorldEnv, task: str, seed: int, cap: int = 50) -> int:
    """Turns in which the environment's expert solves a task; ``cap`` and more when it does not."""
    observation, info = env.reset(options={"task": task})
    player = env.expert(seed)
    for turn in range(1, cap + 1):
        observation, _, done, _, info = env.step(player.act(observation, info))
        if done:
            return turn
    return cap + 1


def test_the_expert_of_the_environment_wins_every_generated_game() -> None:
    """Within 50 turns, also where the thing lies in the last of many cabinets and a blind search takes longer."""
    env = ALFWorldEnv()
    tasks = [*env.tasks("test")[:150], "train/kitchen-cool-000585"]
    turns = [played(env, task, seed=0) for task in tasks]
    assert max(turns) <= 50
    assert turns[-1] > 30


def test_households_are_told_apart_by_their_seeds(env: ALFWorldEnv) -> None:
    """Tasks of equal number and type in two splits are two households, and ids that do not exist are refused."""
    tasks = [task for split in ("train", "dev", "test") for task in env.tasks(split)[:50]]
    assert len({env.goal(task) for task in tasks}) == 150
    with pytest.raises(UnknownNameError, match="the id of a household"):
        env.goal("train/kitchen-cool-999999")
