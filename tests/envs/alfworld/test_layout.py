"""Layouts are written as problems that the engine reads back."""

import pytest

from prover.envs.alfworld import layout
from prover.envs.alfworld.game import Game
from prover.envs.alfworld.layout import Receptacle, Thing

DESK = Receptacle("Desk_bar_1", "Desk", "loc_bar_1", False)
SAFE = Receptacle("Safe_bar_1", "Safe", "loc_bar_2", True)
LAMP = Thing("DeskLamp_bar_1", "DeskLamp", "loc_bar_1", (DESK,))
WATCH = Thing("Watch_bar_1", "Watch", "loc_bar_1", (DESK,))
CHAIR = Thing("Chair_bar_1", "Chair", "loc_bar_3", ())


def game(task: str, wanted: str, target: str, extra: tuple[str, ...] = ()) -> Game:
    """A study with a desk, a safe, a lamp, a watch and a chair."""
    goal = layout.goal(task, wanted, target)
    return Game.parse(layout.problem("loc_bar_0", [DESK, SAFE], [LAMP, WATCH, CHAIR], extra, goal), "do it")


def test_everything_is_where_it_was_put() -> None:
    """The engine shows the desk with lamp and watch, and the safe shut."""
    study = game("place", "Watch", "Safe")
    state, text = study.step(study.initial, "go to desk 1")
    assert text == "You arrive at desk 1. On the desk 1, you see a desklamp 1, and a watch 1."
    assert study.step(state, "go to safe 1")[1] == "You arrive at safe 1. The safe 1 is closed."


def test_more_facts_hold() -> None:
    """Facts beyond the layout are kept."""
    study = game("place", "Watch", "Safe", ("isCool Watch_bar_1",))
    watch = study.object_named("watch 1")
    assert study.initial.cool == {watch}


def test_only_what_can_be_lifted_is_offered() -> None:
    """A lamp can be used but not taken; what fits nowhere here is no place to move to."""
    study = game("place", "Watch", "Safe")
    state, _ = study.step(study.initial, "go to desk 1")
    commands = study.admissible(state)
    assert "take watch 1 from desk 1" in commands
    assert "use desklamp 1" in commands
    assert "take desklamp 1 from desk 1" not in commands


TAKE = ["go to desk 1", "take watch 1 from desk 1"]


@pytest.mark.parametrize(
    ("task", "commands"),
    [
        (
            "place",
            [*TAKE, "go to safe 1", "open safe 1", "move watch 1 to safe 1"],
        ),
        ("light", [*TAKE, "use desklamp 1"]),
    ],
)
def test_the_goal_holds_after_its_last_step_only(task: str, commands: list[str]) -> None:
    """Watch to safe, and watch under the lamp."""
    study = game(task, "Watch", "Safe")
    state = study.initial
    for command in commands:
        assert not study.won(state)
        state, _ = study.step(state, command)
    assert study.won(state)


@pytest.mark.parametrize(
    ("task", "task_type"),
    [
        ("place", "pick_and_place_simple"),
        ("light", "look_at_obj_in_light"),
        ("clean", "pick_clean_then_place_in_recep"),
        ("heat", "pick_heat_then_place_in_recep"),
        ("cool", "pick_cool_then_place_in_recep"),
        ("two", "pick_two_obj_and_place"),
    ],
)
def test_goals_have_the_six_shapes(task: str, task_type: str) -> None:
    """The engine recognises each task by its goal."""
    assert game(task, "Watch", "Safe").task_type == task_type
