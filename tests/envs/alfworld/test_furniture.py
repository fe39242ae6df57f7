"""The tables agree with each other and with ALFWorld's own games."""

import json
import lzma
import re
from pathlib import Path

from prover.envs.alfworld.furniture import CONTAINS, GOALS, OBJECTS, PLACES, PROPERTIES, RECEPTACLES

RECEPTACLE_TYPES = {kind for room in RECEPTACLES.values() for kind in room}
OBJECT_TYPES = {kind for room in OBJECTS.values() for kind in room}


def test_there_are_four_rooms_with_a_bin_each() -> None:
    """Every room has receptacles and objects, and a garbage can in every house."""
    assert set(RECEPTACLES) == set(OBJECTS) == {"kitchen", "living", "bedroom", "bathroom"}
    assert all(room["GarbageCan"].present == 1 for room in RECEPTACLES.values())


def test_counts_are_sorted_and_openable_is_a_percentage() -> None:
    """Quantiles never fall; nobody has less than one of what there is."""
    for room in RECEPTACLES.values():
        for stock in room.values():
            assert 0 < stock.present <= 1
            assert list(stock.counts) == sorted(stock.counts)
            assert stock.counts[0] >= 1
            assert list(stock.openable) == sorted(stock.openable)
            assert 0 <= stock.openable[0] <= stock.openable[-1] <= 100


def test_only_what_has_doors_opens() -> None:
    """Cabinets, drawers, fridges, microwaves and safes open; nothing else does."""
    opening = {kind for room in RECEPTACLES.values() for kind, stock in room.items() if stock.openable[-1]}
    assert opening == {"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"}


def test_shares_of_object_numbers_add_up() -> None:
    """Rounded to whole percents, the shares of one object type add up to about 100."""
    for room in OBJECTS.values():
        for shares in room.values():
            assert 96 <= sum(shares) <= 104


def test_every_name_is_known() -> None:
    """Tables name no type that another table does not have."""
    assert set(PLACES) <= OBJECT_TYPES
    assert {place for places in PLACES.values() for place in places} <= RECEPTACLE_TYPES | {"-"}
    assert set(CONTAINS) <= RECEPTACLE_TYPES
    assert set().union(*CONTAINS.values()) <= OBJECT_TYPES
    for kinds in PROPERTIES.values():
        assert kinds <= OBJECT_TYPES


def test_every_goal_can_be_reached() -> None:
    """Goal objects can be picked up, treated as asked and put into one of the targets."""
    for kind, goals in GOALS.items():
        room, task = kind.split("-")
        assert set(goals.objects) <= PROPERTIES["pickupable"] & set(OBJECTS[room])
        assert set(goals.targets) <= set(RECEPTACLES[room])
        if task in ("clean", "heat", "cool"):
            assert set(goals.objects) <= PROPERTIES[f"{task}able"]
        if task != "light":
            assert all(any(name in CONTAINS[target] for target in goals.targets) for name in goals.objects)


def test_weights_of_goals_count_the_training_games() -> None:
    """ALFWorld has 3,553 solvable training games: 790, 308, 650, 459, 533 and 813 of its six types."""
    numbers = dict.fromkeys(("place", "light", "clean", "heat", "cool", "two"), 0)
    for kind, goals in GOALS.items():
        numbers[kind.split("-")[1]] += goals.weight
    assert list(numbers.values()) == [790, 308, 650, 459, 533, 813]


def test_properties_and_containment_are_those_of_the_games(alfworld_data: Path) -> None:
    """In real games an object has a property exactly if its type has it here, and the same types fit into the same."""
    with lzma.open(alfworld_data / "games.jsonl.xz", "rt") as lines:
        problems = [json.loads(line)["problem"] for number, line in enumerate(lines) if number % 80 == 0]
    for problem in problems:
        facts = re.findall(r"\((\w+) (\S+?)(?: (\S+?))?\)", problem[problem.index("(:init") : problem.index("(:goal")])
        kinds = {name: kind.removesuffix("Type") for word, name, kind in facts if word == "objectType"}
        homes = {kind.removesuffix("Type") for word, _, kind in facts if word == "receptacleType"}
        for ability, with_it in PROPERTIES.items():
            named = {kinds[name] for word, name, _ in facts if word == ability and name in kinds}
            assert named - {"Footstool"} == with_it & set(kinds.values())  # some footstools can be lifted, some cannot
        fits = {(a.removesuffix("Type"), b.removesuffix("Type")) for word, a, b in facts if word == "canContain"}
        assert fits == {(home, kind) for home in homes & set(CONTAINS) for kind in CONTAINS[home] & set(kinds.values())}
