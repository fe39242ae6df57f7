"""Goals: all six shapes of ALFWorld, and PDDL in general."""

from collections.abc import Callable

import pytest

from prover.envs.alfworld.game import Game
from prover.envs.alfworld.state import State
from prover.errors import DataError

Kitchen = Callable[..., Game]


def in_shelf(quality: str) -> str:
    """The goal of putting an apple with some quality on a shelf."""
    return f"""(exists (?r - receptacle) (exists (?o - object) (and (objectType ?o AppleType)
        (receptacleType ?r ShelfType) {quality} (inReceptacle ?o ?r))))"""


TWO = """(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 AppleType)
    (receptacleType ?r ShelfType) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and (not (= ?o1 ?o2))
    (objectType ?o2 AppleType) (receptacleType ?r ShelfType) (inReceptacle ?o2 ?r))))))"""
LIGHT = """(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot DeskLampType)
    (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))
    (exists (?o - object ?a - agent) (and (objectType ?o BookType) (holds ?a ?o)))"""


def play(game: Game, *commands: str) -> State:
    """The state after some commands."""
    state = game.initial
    for command in commands:
        state, observation = game.step(state, command)
        assert observation != "Nothing happens.", command
    return state


@pytest.mark.parametrize(
    ("goal", "about"),
    [
        (in_shelf(""), ("pick_and_place_simple", "apple", "shelf", "")),
        (in_shelf("(cleanable ?o) (isClean ?o)"), ("pick_clean_then_place_in_recep", "apple", "shelf", "")),
        (in_shelf("(heatable ?o) (isHot ?o)"), ("pick_heat_then_place_in_recep", "apple", "shelf", "")),
        (in_shelf("(coolable ?o) (isCool ?o)"), ("pick_cool_then_place_in_recep", "apple", "shelf", "")),
        (TWO, ("pick_two_obj_and_place", "apple", "shelf", "")),
        (LIGHT, ("look_at_obj_in_light", "book", "", "desklamp")),
        ("(exists (?o - object) (isSliced ?o))", ("", "", "", "")),
    ],
)
def test_what_a_goal_is_about(kitchen: Kitchen, goal: str, about: tuple[str, ...]) -> None:
    """Task type, object, receptacle and lamp are read off the goal."""
    parsed = kitchen(goal=goal).goal
    assert (parsed.task_type, parsed.object, parsed.receptacle, parsed.lamp) == about


APPLE_2_TO = ("go to countertop 1", "take apple 2 from countertop 1", "go to {0}", "move apple 2 to {0}")
APPLE_1_TO = ("go to fridge 1", "take apple 1 from fridge 1", "go to {0}", "move apple 1 to {0}")


def to(receptacle: str, commands: tuple[str, ...]) -> list[str]:
    """The commands with a receptacle filled in."""
    return [command.format(receptacle) for command in commands]


def test_two_have_to_be_in_the_same_receptacle(kitchen: Kitchen) -> None:
    """Two apples on two shelves do not win; on one shelf they do."""
    game = kitchen(goal=TWO)
    start = ["go to fridge 1", "open fridge 1"]
    assert not game.won(play(game, *start, *to("shelf 1", APPLE_2_TO)))
    assert not game.won(play(game, *start, *to("shelf 1", APPLE_2_TO), *to("shelf 2", APPLE_1_TO)))
    assert game.won(play(game, *start, *to("shelf 1", APPLE_2_TO), *to("shelf 1", APPLE_1_TO)))


def test_lamp_and_object_in_either_order(kitchen: Kitchen) -> None:
    """The book is held where the lamp is on; leaving the lamp undoes it."""
    game = kitchen(goal=LIGHT)
    book = ["go to drawer 1", "take book 1 from drawer 1"]
    assert game.won(play(game, *book, "go to cabinet 1", "use desklamp 1"))
    assert game.won(play(game, "go to cabinet 1", "use desklamp 1", *book, "go to cabinet 1"))
    assert not game.won(play(game, "go to cabinet 1", "use desklamp 1", *book))
    assert not game.won(play(game, *book, "go to cabinet 1"))


def test_a_quality_has_to_be_there_in_the_end(kitchen: Kitchen) -> None:
    """A clean apple wins on a shelf, an unclean one does not."""
    game = kitchen(goal=in_shelf("(isClean ?o)"))
    take, clean = APPLE_2_TO[:2], ("go to sinkbasin 1", "clean apple 2 with sinkbasin 1")
    assert not game.won(play(game, *to("shelf 1", APPLE_2_TO)))
    assert game.won(play(game, *take, *clean, "go to shelf 2", "move apple 2 to shelf 2"))


def test_general_connectives(kitchen: Kitchen) -> None:
    """``forall``, ``or`` and ``not`` mean what they mean, with changing and fixed predicates."""
    goal = """(forall (?o - object) (or (not (objectType ?o AppleType)) (isClean ?o)))
        (not (exists (?r - receptacle) (and (openable ?r) (opened ?r))))"""
    game = kitchen(goal=goal, extra="(isClean Apple_bar_2)")
    assert not game.won(game.initial)
    clean = ["go to countertop 1", "take apple 2 from countertop 1", "go to sinkbasin 1"]
    clean += ["clean apple 2 with sinkbasin 1", "go to fridge 1"]
    assert game.won(play(game, *clean))
    assert not game.won(play(game, *clean, "open fridge 1"))
    assert game.won(play(game, *clean, "open fridge 1", "close fridge 1"))


def test_constants_and_inner_variables_of_the_same_name(kitchen: Kitchen) -> None:
    """A goal may name entities, and an inner variable hides an outer one of its name only inside."""
    goal = """(exists (?o - object) (and (objectType ?o PenType)
        (exists (?o - object) (and (objectType ?o KnifeType) (inReceptacle ?o CounterTop_bar_1)))
        (inReceptacle ?o Shelf_bar_2)))"""
    game = kitchen(goal=goal)
    assert game.won(game.initial)
    assert not game.won(play(game, "go to shelf 1", "take pen 1 from shelf 1"))
    assert not game.won(play(game, "go to countertop 1", "take knife 1 from countertop 1"))


def test_objects_at_places_and_empty_hands(kitchen: Kitchen) -> None:
    """The remaining changing predicates can be asked for."""
    goal = "(holdsAny agent1) (objectAtLocation Apple_bar_1 loc_bar_4) (not (isSliced Apple_bar_1))"
    game = kitchen(goal=goal)
    assert not game.won(game.initial)
    taken = ["go to countertop 1", "take knife 1 from countertop 1"]
    assert game.won(play(game, *taken))
    assert not game.won(play(game, *taken, "slice apple 2 with knife 1"))


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("(exists (?r - receptacle) (checked ?r))", "'checked'"),
        ("(when (isClean Apple_bar_1) (isHot Apple_bar_1))", "expected a PDDL goal"),
    ],
)
def test_other_goals_are_refused(kitchen: Kitchen, goal: str, message: str) -> None:
    """A predicate that no text tells of and a connective that is none are errors."""
    with pytest.raises(DataError, match=message):
        kitchen(goal=goal)
