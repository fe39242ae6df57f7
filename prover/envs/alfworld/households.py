"""Households made from a seed: ALFWorld problems without ALFWorld's game files.

A household is a room (kitchen, living room, bedroom, bathroom) with one task in it, written as a problem of the
``alfred`` domain, so that the engine plays it as it plays the downloaded games. What stands where and what is asked for
follows the shares measured in `furniture`. Every household is solvable by construction: each place can be reached, the
goal object lies where it can be taken from, the target may hold it, and the goal does not hold at the start.

The same id gives the same household everywhere: only doubles of PCG64 are drawn, and every choice is made of them here.

>>> household = generate(seed_of("train/kitchen-heat-000000"))
>>> household.task_type, household.goal
('pick_heat_then_place_in_recep', 'heat some apple and put it in fridge')
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple

from prover import seeds
from prover.envs.alfworld.furniture import CONTAINS, GOALS, OBJECTS, PLACES, PROPERTIES, RECEPTACLES
from prover.envs.alfworld.game import Game
from prover.errors import UnknownNameError

SPLITS = {"train": 20_000, "dev": 500, "test": 1_000}
"""Split -> number of households."""
TASK_TYPES = {
    "place": "pick_and_place_simple",
    "light": "look_at_obj_in_light",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "two": "pick_two_obj_and_place",
}
"""Word in a task id -> ALFWorld's name of the task type."""

_STRIDE = 1_000_000  # the seeds of a split start at a multiple of it
_STATES = {"clean": ("cleanable", "isClean"), "heat": ("heatable", "isHot"), "cool": ("coolable", "isCool")}
_SENTENCES = {
    "place": ("put some {o} on {r}", "put a {o} in {r}"),
    "light": ("look at {o} under the {r}", "examine the {o} with the {r}"),
    "clean": ("put a clean {o} in {r}", "clean some {o} and put it in {r}"),
    "heat": ("put a hot {o} in {r}", "heat some {o} and put it in {r}"),
    "cool": ("put a cool {o} in {r}", "cool some {o} and put it in {r}"),
    "two": ("put two {o} in {r}", "find two {o} and put them in {r}"),
}
# Shares of games with 0, 1, 2, ... objects of the goal's type.
_CANDIDATES = {
    "place": (0, 38, 28, 21, 13),
    "light": (0, 35, 28, 21, 16),
    "clean": (0, 32, 30, 21, 17),
    "heat": (0, 27, 27, 25, 21),
    "cool": (0, 43, 29, 19, 9),
    "two": (0, 0, 43, 33, 24),
}
# Receptacles that often share the place of an earlier one of the named type, and how often.
_NEIGHBOURS = {
    "StoveBurner": ("StoveBurner", 0.45),
    "Drawer": ("Drawer", 0.15),
    "Cabinet": ("Cabinet", 0.09),
    "Shelf": ("Shelf", 0.08),
    "Toaster": ("CounterTop", 0.25),
    "CoffeeMachine": ("CounterTop", 0.23),
    "TowelHolder": ("HandTowelHolder", 0.04),
}
# An object that lies in the first is often found in the second as well: the house measures by boxes that overlap.
_OVERLAPS = {
    "CoffeeMachine": ("CounterTop", 0.85),
    "StoveBurner": ("StoveBurner", 0.25),
    "Toaster": ("CounterTop", 0.3),
}
_NOWHERE = "-"

Draw = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Household:
    """One generated game."""

    task_id: str
    task_type: str
    """ALFWorld's name, e.g. ``pick_heat_then_place_in_recep``."""
    problem: str
    """The problem text, in PDDL, of the ``alfred`` domain."""
    goal: str
    """The goal sentence, without ``Your task is to:`` and the full stop."""


class _Receptacle(NamedTuple):
    id: str
    type: str
    place: str
    openable: bool


class _Thing(NamedTuple):
    id: str
    type: str
    place: str
    inside: tuple[_Receptacle, ...]


def tasks(split: str) -> tuple[str, ...]:
    """Ids of a split's households, always in the same order.

    Raises:
        UnknownNameError: if there is no such split.
    """
    if split not in SPLITS:
        raise UnknownNameError(f"expected a split of households ({', '.join(SPLITS)}), got {split!r}")
    return _tasks(split)


@cache
def _tasks(split: str) -> tuple[str, ...]:
    start = list(SPLITS).index(split) * _STRIDE
    return tuple(f"{split}/{_kind(start + index)}-{index:06d}" for index in range(SPLITS[split]))


def seed_of(task_id: str) -> int:
    """The seed that a task id stands for.

    Raises:
        UnknownNameError: if no household has that id.
    """
    match = re.fullmatch(r"(\w+)/(\w+-\w+)-(\d{6})", task_id)
    if match and match[1] in SPLITS and (index := int(match[3])) < SPLITS[match[1]]:
        seed = list(SPLITS).index(match[1]) * _STRIDE + index
        if _kind(seed) == match[2]:
            return seed
    raise UnknownNameError(
        f"expected the id of a household such as {tasks('train')[0]!r}, got {task_id!r}; tasks(split) lists them"
    )


def task_type(task_id: str) -> str:
    """ALFWorld's name of a task's type, read from its id."""
    return TASK_TYPES[_kind(seed_of(task_id)).split("-")[1]]


@lru_cache(maxsize=64)
def load(task_id: str) -> Game:
    """The game of a household; games never change, so recent ones are kept."""
    household = generate(seed_of(task_id))
    return Game.parse(household.problem, household.goal)


def generate(seed: int) -> Household:
    """Make the household of a seed.

    Raises:
        UnknownNameError: if the seed lies in no split; the splits start at 0, 1,000,000 and 2,000,000.
    """
    split_number, index = divmod(seed, _STRIDE)
    split = dict(enumerate(SPLITS)).get(split_number, "")
    if index >= SPLITS.get(split, 0):
        raise UnknownNameError(f"expected the seed of a household, seed_of(task_id), got {seed}")
    kind = _kind(seed)
    room, task = kind.split("-")
    draw = seeds.generator(seed).random
    wanted, target = _goal(draw, kind)
    receptacles = _furnish(draw, room, target)
    things = _fill(draw, room, task, wanted, target, receptacles)
    sentence = _SENTENCES[task][int(2 * draw())].format(o=wanted.lower(), r=target.lower() or "desklamp")
    return Household(
        task_id=f"{split}/{kind}-{index:06d}",
        task_type=TASK_TYPES[task],
        problem=_problem(draw, task, wanted, target, receptacles, things),
        goal=sentence,
    )


def _kind(seed: int) -> str:
    """Room and task of a seed: a golden-ratio sequence, so that every stretch of seeds has the measured proportions."""
    kinds, bounds = _kinds()
    return kinds[bisect_right(bounds, seed * 2654435769 % 2**32 * bounds[-1] / 2**32)]


@cache
def _kinds() -> tuple[list[str], list[int]]:
    return list(GOALS), list(accumulate(goals.weight for goals in GOALS.values()))


def _rank(draw: Draw, weights: Sequence[float]) -> int:
    """An index, drawn in proportion to its weight."""
    bounds = list(accumulate(weights))
    return bisect_right(bounds, draw() * bounds[-1])


def _choose(draw: Draw, weights: Mapping[str, float]) -> str:
    return list(weights)[_rank(draw, list(weights.values()))]


def _goal(draw: Draw, kind: str) -> tuple[str, str]:
    """Object type and target receptacle type; the target is empty where nothing is delivered."""
    goals = GOALS[kind]
    if not goals.targets:
        return _choose(draw, goals.objects), ""
    fitting = {o: {r: n for r, n in goals.targets.items() if o in CONTAINS[r]} for o in goals.objects}
    wanted = _choose(draw, {o: n for o, n in goals.objects.items() if fitting[o]})
    return wanted, _choose(draw, fitting[wanted])


def _furnish(draw: Draw, room: str, target: str) -> list[_Receptacle]:
    """Receptacles of a room, among them the target or, where there is none, something for the lamp to stand on."""
    needs = [target] if target else list(PLACES["DeskLamp"])
    kinds = {kind for kind, stock in RECEPTACLES[room].items() if draw() < stock.present}
    if not kinds.intersection(needs):
        kinds.add(needs[0])
    taken: set[str] = set()
    receptacles: list[_Receptacle] = []
    for kind in sorted(kinds):
        stock = RECEPTACLES[room][kind]
        openable = stock.openable[int(draw() * len(stock.openable))] / 100
        for _ in range(stock.counts[int(draw() * len(stock.counts))]):
            spot = _spot(draw, taken)
            name = f"{kind[:-5]}{spot}_bar_{kind}" if kind.endswith("Basin") else kind + spot
            place = _beside(draw, kind, receptacles) or _place(draw, taken)
            receptacles.append(_Receptacle(name, kind, place, draw() < openable))
    return receptacles


def _beside(draw: Draw, kind: str, receptacles: list[_Receptacle]) -> str:
    """Place of an earlier receptacle that a new one shares; mostly none."""
    other, share = _NEIGHBOURS.get(kind, ("", 0.01))
    near = [r.place for r in receptacles if r.type == other or not other]
    return near[int(draw() * len(near))] if near and draw() < share else ""


def _fill(draw: Draw, room: str, task: str, wanted: str, target: str, receptacles: list[_Receptacle]) -> list[_Thing]:
    """Objects of a room, so that the goal can be reached and does not hold yet."""
    taken: set[str] = set()
    by_type: dict[str, list[_Receptacle]] = {}
    for receptacle in receptacles:
        by_type.setdefault(receptacle.type, []).append(receptacle)
    things = []
    for basin in receptacles:
        if basin.type.endswith("Basin"):  # the basin is a receptacle of the object whose name it bears
            name = basin.id.rpartition("_bar_")[0]
            things.append(_Thing(name, basin.type[:-5], _place(draw, taken), ()))
    stock: dict[str, Sequence[int]] = dict(OBJECTS[room])
    stock[wanted] = _CANDIDATES[task]
    for kind, shares in sorted(stock.items()):
        needed = kind == wanted or (task == "light" and kind == "DeskLamp")
        closed = target if kind == wanted and task in ("place", "two") else ""
        count = max(_rank(draw, shares), int(needed))
        for _ in range(count):
            inside = _lay(draw, kind, needed, closed, by_type)
            spot = inside[0].place if inside else _aside(draw, receptacles, taken)
            things.append(_Thing(kind + _spot(draw, taken), kind, spot, inside))
    return things


def _lay(
    draw: Draw, kind: str, needed: bool, closed: str, by_type: Mapping[str, list[_Receptacle]]
) -> tuple[_Receptacle, ...]:
    """Receptacles that an object lies in: mostly one, sometimes none unless it is needed, sometimes two."""
    weights = {
        name: weight * math.sqrt(len(by_type[name]))
        for name, weight in PLACES.get(kind, {}).items()
        if name in by_type and name != closed
    }
    nowhere = PLACES.get(kind, {_NOWHERE: 1}).get(_NOWHERE, 0 if weights else 1)
    if needed:
        weights = weights or {name: 1.0 for name in by_type if name != closed}
    elif nowhere:
        weights[_NOWHERE] = nowhere
    first = _choose(draw, weights)
    if first == _NOWHERE:
        return ()
    inside = [by_type[first][int(draw() * len(by_type[first]))]]
    second, share = _OVERLAPS.get(first, (closed, 0.0))
    if second != closed and draw() < share:
        more = [r for r in by_type.get(second, ()) if r is not inside[0]]
        inside += more[int(draw() * len(more)) :][:1]
    return tuple(inside)


def _aside(draw: Draw, receptacles: list[_Receptacle], taken: set[str]) -> str:
    """Place of an object that is in no receptacle: beside one, or where nobody can go."""
    return receptacles[int(draw() * len(receptacles))].place if draw() < 0.3 else _place(draw, taken)


def _spot(draw: Draw, taken: set[str]) -> str:
    """Coordinates that end an id, of a form that sorts as ALFWorld's do."""
    while True:
        numbers = [int(draw() * 800) - 400 for _ in range(3)]
        spot = "".join(
            f"_bar__{'plus' if n >= 0 else 'minus'}_{abs(n) // 100:02d}_dot_{abs(n) % 100:02d}" for n in numbers
        )
        if spot not in taken:
            taken.add(spot)
            return spot


def _place(draw: Draw, taken: set[str]) -> str:
    """Id of a place that nobody else has: x, z, rotation and horizon."""
    while True:
        numbers = int(draw() * 41) - 20, int(draw() * 41) - 20, int(draw() * 4), 15 * int(draw() * 5)
        place = "loc" + "".join(f"_bar_{n}" if n >= 0 else f"_bar__minus_{-n}" for n in numbers)
        if place not in taken:
            taken.add(place)
            return place


def _problem(
    draw: Draw, task: str, wanted: str, target: str, receptacles: list[_Receptacle], things: list[_Thing]
) -> str:
    """The problem text."""
    taken = {r.place for r in receptacles} | {t.place for t in things}
    start = _place(draw, taken)
    kinds = {r.type for r in receptacles}, {t.type for t in things}
    declared = [("agent1", "agent")]
    declared += [(f"{kind}Type", "otype") for kind in sorted(kinds[1])]
    declared += [(f"{kind}Type", "rtype") for kind in sorted(kinds[0])]
    declared += [(name, "object") for name in sorted(t.id for t in things)]
    declared += [(name, "receptacle") for name in sorted(r.id for r in receptacles)]
    declared += [(place, "location") for place in sorted(taken)]
    facts = [*_facts(receptacles, things), f"atLocation agent1 {start}", *_oddities(draw, task, things)]
    return "\n".join(
        [
            "(define (problem household)",
            "(:domain alfred)",
            "(:objects",
            *(f"    {name} - {kind}" for name, kind in declared),
            ")",
            "(:init",
            *(f"    ({fact})" for fact in facts),
            ")",
            _goal_text(task, wanted, target),
            ")",
        ]
    )


def _facts(receptacles: list[_Receptacle], things: list[_Thing]) -> list[str]:
    """What holds at the start, without the agent."""
    facts = [f"receptacleType {r.id} {r.type}Type" for r in receptacles]
    facts += [f"receptacleAtLocation {r.id} {r.place}" for r in receptacles]
    facts += [f"openable {r.id}" for r in receptacles if r.openable]
    facts += [f"objectType {t.id} {t.type}Type" for t in things]
    facts += [f"objectAtLocation {t.id} {t.place}" for t in things]
    facts += [f"inReceptacle {t.id} {r.id}" for t in things for r in t.inside]
    facts += [f"pickupable {t.id}" for t in things if t.type not in PROPERTIES["fixed"]]
    for name, kinds in PROPERTIES.items():
        if name != "fixed":
            facts += [f"{name} {t.id}" for t in things if t.type in kinds]
    present = {t.type for t in things}
    for kind in sorted({r.type for r in receptacles}):
        facts += [f"canContain {kind}Type {name}Type" for name in sorted(present & CONTAINS.get(kind, frozenset()))]
    return facts


def _oddities(draw: Draw, task: str, things: list[_Thing]) -> list[str]:
    """Things that are cold from the fridge (8 % of games) and things that lie in a dish (17 %)."""
    facts = []
    if draw() < 0.24 and task != "cool":
        chilled = [t for t in things if t.inside and t.inside[0].type == "Fridge"]
        facts += [f"isCool {t.id}" for t in chilled if t.type in PROPERTIES["coolable"]]
    pairs = [
        (inner, outer)
        for outer in things
        if outer.type in PROPERTIES["isReceptacleObject"]
        for inner in things
        if inner.inside and inner.inside[:1] == outer.inside[:1] and inner is not outer
    ]
    if pairs and draw() < 0.22:
        inner, outer = pairs[int(draw() * len(pairs))]
        facts.append(f"inReceptacleObject {inner.id} {outer.id}")
    return facts


def _goal_text(task: str, wanted: str, target: str) -> str:
    """The goal condition, in one of the six shapes of ALFWorld."""
    if task == "light":
        lamp = "(objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot)"
        here = "(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)"
        return (
            f"(:goal (and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and {lamp} {here}))\n"
            f"    (exists (?o - object ?a - agent) (and (objectType ?o {wanted}Type) (holds ?a ?o)))))"
        )
    kinds = f"(objectType {{o}} {wanted}Type) (receptacleType ?r {target}Type) (inReceptacle {{o}} ?r)"
    if task == "two":
        other = f"(exists (?o2 - object) (and (not (= ?o1 ?o2)) {kinds.format(o='?o2')}))"
        first = f"(exists (?o1 - object) (and {kinds.format(o='?o1')} {other}))"
        return f"(:goal (and (exists (?r - receptacle) {first})))"
    able, state = _STATES.get(task, ("", ""))
    changed = f"({able} ?o) ({state} ?o) " if able else ""
    return f"(:goal (and (exists (?r - receptacle) (exists (?o - object) (and {changed}{kinds.format(o='?o')})))))"
