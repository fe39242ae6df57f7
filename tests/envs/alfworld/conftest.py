"""A small kitchen with the oddities of ALFWorld's games, and ALFWorld's own games where they are."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from prover.envs.alfworld.game import Game

# What stands where: receptacle -> place, what can be opened, what it may contain.
RECEPTACLES = {
    "Fridge_bar_1": ("loc_bar_1", True, "Apple Mug Tomato"),
    "Microwave_bar_1": ("loc_bar_2", True, "Apple Mug"),
    "Sink_bar_1_bar_SinkBasin": ("loc_bar_3", False, "Apple Knife Mug Spoon Tomato"),
    "CounterTop_bar_1": ("loc_bar_4", False, "Apple Knife Mug Spoon Tomato Book Pen"),
    "Drawer_bar_1": ("loc_bar_4", True, "Book Knife Spoon Pen"),
    "Drawer_bar_2": ("loc_bar_4", False, "Book Knife Spoon Pen"),
    "Shelf_bar_1": ("loc_bar_5", False, "Apple Mug Tomato Book Pen"),
    "Shelf_bar_2": ("loc_bar_6", False, "Apple Mug Tomato Book Pen"),
    "Cabinet_bar_1": ("loc_bar_7", True, "Mug Spoon Book"),
}
# Object -> the receptacles that it is in, its place, what can be done with it.
OBJECTS = {
    "Apple_bar_1": ("CounterTop_bar_1", "loc_bar_4", "pickupable cleanable heatable coolable sliceable"),
    "Apple_bar_2": ("Fridge_bar_1", "loc_bar_1", "pickupable cleanable heatable coolable sliceable"),
    "Knife_bar_1": ("CounterTop_bar_1", "loc_bar_4", "pickupable cleanable"),
    "Mug_bar_1": ("Cabinet_bar_1", "loc_bar_7", "pickupable cleanable heatable coolable isReceptacleObject"),
    "Spoon_bar_1": ("Cabinet_bar_1", "loc_bar_7", "pickupable cleanable"),
    "DeskLamp_bar_1": ("Cabinet_bar_1", "loc_bar_7", "toggleable"),
    "PaperTowelRoll_bar_1": ("Shelf_bar_1", "loc_bar_5", "pickupable"),
    "Book_bar_1": ("Drawer_bar_1 Drawer_bar_2", "loc_bar_4", "pickupable"),
    "Tomato_bar_1": ("Shelf_bar_2", "loc_bar_5", "pickupable sliceable"),
    "Pen_bar_1": ("Shelf_bar_2", "", "pickupable"),
}
GOAL = """(exists (?r - receptacle) (exists (?o - object) (and (heatable ?o) (objectType ?o AppleType)
    (receptacleType ?r ShelfType) (isHot ?o) (inReceptacle ?o ?r))))"""


def _kind(id_: str) -> str:
    return ("SinkBasin" if "Basin" in id_ else id_.split("_bar_")[0]) + "Type"


def kitchen_problem(goal: str = GOAL, extra: str = "", start: str = "loc_bar_0") -> str:
    """The kitchen as a PDDL problem, with another goal, more facts or another start."""
    types = {
        "agent": ["agent1"],
        "object": list(OBJECTS),
        "receptacle": list(RECEPTACLES),
        "location": [f"loc_bar_{place}" for place in range(8)],
        "otype": sorted({_kind(id_) for id_ in OBJECTS}),
        "rtype": sorted({_kind(id_) for id_ in RECEPTACLES}),
    }
    facts = [f"atLocation agent1 {start}", "inReceptacleObject Spoon_bar_1 Mug_bar_1"]
    facts += ["inReceptacleObject Mug_bar_1 Mug_bar_1"]
    for id_, (place, openable, contents) in RECEPTACLES.items():
        facts += [f"receptacleType {id_} {_kind(id_)}", f"receptacleAtLocation {id_} {place}"]
        facts += [f"openable {id_}"] if openable else []
        facts += [f"canContain {_kind(id_)} {word}Type" for word in contents.split()]
    for id_, (receptacles, place, abilities) in OBJECTS.items():
        facts += [f"objectType {id_} {_kind(id_)}"]
        facts += [f"inReceptacle {id_} {receptacle}" for receptacle in receptacles.split()]
        facts += [f"objectAtLocation {id_} {place}"] if place else []
        facts += [f"{ability} {id_}" for ability in abilities.split()]
    declared = "\n".join(f"{' '.join(names)} - {kind}" for kind, names in types.items())
    initial = "\n".join(f"({fact})" for fact in facts)
    return (
        f"(define (problem kitchen) (:domain alfred) ; made by hand\n(:objects\n{declared})\n"
        f"(:init\n{initial}\n{extra})\n(:goal (and {goal})))"
    )


@pytest.fixture(scope="session")
def kitchen() -> Callable[..., Game]:
    """Builds the kitchen; takes the arguments of ``kitchen_problem``."""
    return lambda **changes: Game.parse(kitchen_problem(**changes), "heat some apple and put it in shelf")


@pytest.fixture(scope="session")
def kitchen_text() -> str:
    """The kitchen as the text of a PDDL problem."""
    return kitchen_problem()


@pytest.fixture(scope="session")
def alfworld_data(shared: Path) -> Path:
    """Folder with the packed games and the traces of stock TextWorld."""
    folder = shared / "data" / "alfworld"
    if not (folder / "games.jsonl.xz").exists():
        pytest.skip(f"needs shared data: no games.jsonl.xz in {folder}; set PROVER_SHARED")
    return folder


@pytest.fixture(scope="session")
def some_games(alfworld_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the first three games of each split, in the layout that alfworld-download writes."""
    folder = tmp_path_factory.mktemp("alfworld")
    command = [sys.executable, str(alfworld_data / "expand.py"), str(folder), "--limit", "3"]
    subprocess.run(command, check=True, capture_output=True)
    return folder
