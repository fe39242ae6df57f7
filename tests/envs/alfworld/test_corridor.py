"""The corridor: one choice that counts, and all else as in the household behind it."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from episodes import played

import prover
from prover.checks import check_text_env
from prover.envs.alfworld import ALFWorldEnv
from prover.envs.alfworld.corridor import LANDMARKS, Corridor, Whereabouts, pivots
from prover.envs.alfworld.furniture import RECEPTACLES
from prover.envs.alfworld.game import Game
from prover.errors import ConfigError, SnapshotError, UnknownNameError
from prover.records import EndReason, Task, Trajectory, Turn

DOORS = ["go to bed 1", "go to fridge 1", "go to sofa 1", "go to toilet 1"]
APPLE = (
    *("go to countertop 1", "take apple 2 from countertop 1", "go to microwave 1", "heat apple 2 with microwave 1"),
    *("go to shelf 1", "move apple 2 to shelf 1"),
)
BATHROOM = "test/bathroom-two-000000"
SOAP = (
    *("go to countertop 1", "take soapbottle 3 from countertop 1", "go to cabinet 1", "open cabinet 1"),
    *("move soapbottle 3 to cabinet 1", "go to toilet 1", "take soapbottle 1 from toilet 1", "go to cabinet 1"),
    "move soapbottle 1 to cabinet 1",
)


@pytest.fixture
def env() -> ALFWorldEnv:
    """Households behind doors."""
    return ALFWorldEnv(pivot="door")


@pytest.mark.parametrize(("right", "won"), [("kitchen", True), ("bedroom", False)])
def test_what_wins_in_the_right_room_does_not_in_a_wrong_one(
    kitchen: Callable[..., Game], right: str, won: bool
) -> None:
    """Behind every door is the same kitchen: what is asked for is done there, and counts behind the right door only."""
    corridor = Corridor(right, LANDMARKS, lambda room: kitchen())
    state, _ = corridor.step(corridor.initial, "go to fridge 1")
    for command in APPLE:
        assert not corridor.won(state)
        assert command in corridor.admissible(state)
        state, _ = corridor.step(state, command)
    assert corridor.won(state) is won
    assert corridor.step(state, "go to fridge 1")[1] == "You arrive at fridge 1. The fridge 1 is closed."


def test_the_opening_shows_a_landmark_of_every_room(env: ALFWorldEnv) -> None:
    """In ALFWorld's own words: where one is, what there is to see, and the task."""
    observation, info = env.reset(options={"task": BATHROOM})
    banner, view, goal = observation.split("\n\n")
    assert banner == "-= Welcome to TextWorld, ALFRED! =-"
    start, seen = view.removesuffix(".").split(", you see ")
    assert start == "You are in the middle of a corridor. Looking quickly around you"
    assert sorted(seen.replace("and ", "").split(", ")) == ["a bed 1", "a fridge 1", "a sofa 1", "a toilet 1"]
    assert goal == "Your task is to: find two soapbottle and put them in cabinet."
    assert info["admissible_actions"] == DOORS
    assert info["success"] is info["invalid_action"] is False
    assert info["task_type"] == "pick_two_obj_and_place"


def test_landmarks_belong_to_their_rooms() -> None:
    """Every room of the kind has its landmark and no other room has, and the small policy knows the words."""
    file = Path(prover.__file__).parent / "policies" / "small" / "tokenizer.json"
    vocabulary = json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]
    assert {"go to", *LANDMARKS.values()} <= vocabulary.keys()
    for kind, landmark in LANDMARKS.items():
        name = landmark.removesuffix(" 1").capitalize()
        assert {room for room, stock in RECEPTACLES.items() if name in stock} == {kind}
        assert RECEPTACLES[kind][name].present == 1


def test_behind_the_right_door_is_the_household_itself(env: ALFWorldEnv) -> None:
    """From the opening on everything is as in the plain household, to the reward at the end."""
    env.reset(options={"task": BATHROOM})
    plain = ALFWorldEnv()
    assert env.step("go to toilet 1")[0] == plain.reset(options={"task": BATHROOM})[0]
    for command in SOAP:
        answer = env.step(command)
        assert answer == plain.step(command)
    assert answer[1:3] == (1.0, True)


def test_behind_a_wrong_door_is_another_household_with_the_same_task(env: ALFWorldEnv) -> None:
    """It has the furniture of its kind, always the same, and the task that was given in the corridor."""
    for door in ("bed 1", "fridge 1", "sofa 1"):
        env.reset(options={"task": BATHROOM})
        observation, reward, terminated, _, info = env.step(f"go to {door}")
        assert observation.startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.")
        assert f"a {door}" in observation
        assert "toilet 1" not in observation
        assert observation.endswith("\n\nYour task is to: find two soapbottle and put them in cabinet.")
        assert (reward, terminated, info["success"]) == (0.0, False, False)
        other = ALFWorldEnv(pivot="door")
        other.reset(options={"task": BATHROOM})
        assert other.step(f"go to {door}")[0] == observation


def test_only_doors_lead_out_of_the_corridor(env: ALFWorldEnv) -> None:
    """What is said before a door was taken has no effect; a door is taken once."""
    env.reset(options={"task": BATHROOM})
    key = env.state_key()
    for command in ("look", "go to cabinet 1", "help", ""):
        observation, _, _, _, info = env.step(command)
        assert (observation, info["invalid_action"]) == ("Nothing happens.", True)
        assert env.state_key() == key
    env.step("go to fridge 1")
    inside = env.state_key()
    assert inside != key
    assert env.step("go to toilet 1")[0] == "Nothing happens."
    assert env.state_key() == inside


@pytest.mark.parametrize("door", DOORS)
def test_a_snapshot_holds_all(env: ALFWorldEnv, door: str) -> None:
    """Brought back elsewhere, before and behind a door, everything goes on as it did."""
    env.reset(options={"task": BATHROOM})
    before = pickle.dumps(env.snapshot())
    opening = env.step(door)
    behind, key = pickle.dumps(env.snapshot()), env.state_key()
    there = next(action for action in opening[4]["admissible_actions"] if action.startswith("go to "))
    arrival = env.step(there)
    after = env.state_key()
    other = ALFWorldEnv(pivot="door")
    assert other.restore(pickle.loads(behind)) == (opening[0], opening[4])
    assert other.state_key() == key
    assert other.step(there) == arrival
    assert other.state_key() == after
    assert other.restore(pickle.loads(before))[1]["admissible_actions"] == DOORS
    assert other.step(door) == opening


def test_conformance() -> None:
    """Every rule of the conformance kit holds; the kit has the expert play an episode to its end."""
    report = check_text_env(partial(ALFWorldEnv, pivot="door"), raises=False)
    assert report.passed, str(report)
    assert {result.rule: result.status for result in report.results}["after_end"] == "ok"


def test_the_expert_takes_the_right_door(env: ALFWorldEnv) -> None:
    """It goes where the room of the task's id is, and then succeeds as it does in plain households."""
    for task in env.tasks("dev")[:20]:
        observation, info = env.reset(options={"task": task})
        expert, commands = env.expert(0), list[str]()
        while not info["success"] and len(commands) < 60:
            commands.append(expert.act(observation, info))
            observation, _, _, _, info = env.step(commands[-1])
        assert commands[0] == f"go to {LANDMARKS[task.split('/')[1].split('-')[0]]}"
        assert info["success"], task


def test_the_expert_copes_with_a_wrong_door(env: ALFWorldEnv) -> None:
    """Who was led into a wrong room plays on; what is offered is all it says."""
    env.reset(options={"task": BATHROOM})
    expert = env.expert(0)
    observation, _, _, _, info = env.step("go to bed 1")
    for _ in range(40):
        command = expert.act(observation, info)
        assert command in info["admissible_actions"]
        observation, _, terminated, _, info = env.step(command)
        assert not terminated


def test_the_task_draws_the_doors() -> None:
    """Each landmark comes first somewhere, and another process draws the same."""
    tasks = ALFWorldEnv().tasks("test")[:40]
    code = (
        "from prover.envs.alfworld import ALFWorldEnv\nenv = ALFWorldEnv(pivot='door')\n"
        f"for task in {tasks!r}:\n    env.reset(options={{'task': task}})\n"
        "    print(env.step('go to sofa 1')[0].splitlines()[2])"
    )
    run = [sys.executable, "-c", code]
    shown = subprocess.run(run, env={"PYTHONHASHSEED": "7"}, capture_output=True, check=True, text=True).stdout
    env, views, first = ALFWorldEnv(pivot="door"), list[str](), set[str]()
    for task in tasks:
        first.add(env.reset(options={"task": task})[0].split(", you see a ")[1].split(",")[0])
        views.append(env.step("go to sofa 1")[0].splitlines()[2])
    assert shown.splitlines() == views
    assert first == {"bed 1", "fridge 1", "sofa 1", "toilet 1"}


def test_results_are_told_apart(env: ALFWorldEnv) -> None:
    """The label says that there are doors; plain households have none. The goal of a task is that of its household."""
    assert env.manifest() == {"label": "ALFWorld-generated-doors"}
    assert ALFWorldEnv().manifest() == {}
    assert env.goal(BATHROOM) == ALFWorldEnv().goal(BATHROOM)
    assert env.tasks("test") == ALFWorldEnv().tasks("test")


def test_mistakes_are_named(tmp_path: Path, env: ALFWorldEnv) -> None:
    """There is one kind of pivot, for generated households only; unknown tasks and snapshots are refused."""
    with pytest.raises(ConfigError, match="pivot 'door' with data 'generated'"):
        ALFWorldEnv(pivot="window")
    with pytest.raises(ConfigError, match="original games have no corridor"):
        ALFWorldEnv(data=str(tmp_path), pivot="door")
    with pytest.raises(UnknownNameError, match="test/attic-two-000000"):
        env.reset(options={"task": "test/attic-two-000000"})
    with pytest.raises(SnapshotError, match="expected a Snapshot, got Whereabouts"):
        env.restore(Whereabouts())  # type: ignore[arg-type]  # that it is none is what is tested


def test_pivots_name_the_turn_at_the_door() -> None:
    """The first turn, or the first after those without effect; none where no door was taken."""

    def run(*invalid: str | None) -> Trajectory:
        turns = tuple(Turn(text="", action="", result="", reward=0.0, invalid=why) for why in invalid)
        return played(turns, False, task=Task(id=BATHROOM, split="test"), end=EndReason.TURN_CAP)

    assert pivots(run(None, None, None)) == [0]
    assert pivots(run("env", "format: empty", None, None)) == [2]
    assert pivots(run("env", "env")) == []
