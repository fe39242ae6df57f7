"""Households made from a seed: ALFWorld problems without ALFWorld's game files.

A household is a room (kitchen, living room, bedroom, bathroom) with one task in it, written as a problem of the
``alfred`` domain, so that the engine plays it as it plays the downloaded games. What stands where and what is asked for
follows the shares measured in `furniture`. Every household is solvable by construction: each place can be reached, the
goal object lies where it can be taken from, the target may hold it, and the goal does not hold at the start.

The same id gives the same household everywhere: only doubles of PCG64 are drawn, and every choice is made of them here.

>>> household = generate(seed_of("train/kitchen-cool-000001"))
>>> household.task_type, household.goal
('pick_cool_then_place_in_recep', 'cool some apple and put it in garbagecan')
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
from prover.envs.alfworld import layout
from prover.envs.alfworld.furniture import CONTAINS, GOALS, OBJECTS, PLACES, PROPERTIES, RECEPTACLES
from prover.envs.alfworld.game import Game
from prover.envs.alfworld.goal import TASK_TYPES
from prover.envs.alfworld.layout import Receptacle, Thing
from prover.errors import UnknownNameError

SPLITS = {"train": 20_000, "dev": 500, "test": 1_000, "holdout": 1_000}
"""Split -> number of households. The settings of the examples were chosen on ``test``, those of studies on ``dev``;
``holdout`` is for figures to report."""
TASKS = dict(zip(("place", "light", "clean", "heat", "cool", "two"), TASK_TYPES, strict=True))
"""Word in a task id -> ALFWorld's name of the task type."""

_STRIDE = 1_000_000  # the seeds of a split start at a multiple of it
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
# Receptacle -> another one that often holds the same object: ALFWorld's receptacles are boxes that overlap.
_OVERLAPS = {"CoffeeMachine": ("CounterTop", 0.85), "StoveBurner": ("StoveBurner", 0.25)}
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


class _Plan(NamedTuple):
    """What is drawn first: the task, and how many receptacles there are of each type."""

    room: str
    task: str
    wanted: str
    """Type of the object that the goal asks for."""
    target: str
    """Type of the receptacle to bring it to; empty where nothing is brought."""
    counts: dict[str, int]


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
    return TASKS[_kind(seed_of(task_id)).split("-")[1]]


@lru_cache(maxsize=64)
def load(task_id: str) -> Game:
    """The game of a household; games never change, so recent ones are kept."""
    household = generate(seed_of(task_id))
    return Game.parse(household.problem, household.goal)


def n_receptacles(task_id: str) -> int:
    """Number of receptacles of a household; a hundred times faster than making it."""
    seed = seed_of(task_id)
    return sum(_plan(seed, seeds.generator(seed).random).counts.values())


def generate(seed: int) -> Household:
    """Make the household of a seed.

    Raises:
        UnknownNameError: if the seed lies in no split; the splits start at 0, 1,000,000 and 2,000,000.
    """
    split_number, index = divmod(seed, _STRIDE)
    split = dict(enumerate(SPLITS)).get(split_number, "")
    if index >= SPLITS.get(split, 0):
        raise UnknownNameError(f"expected the seed of a household, as seed_of(task_id) gives it, got {seed}")
    draw = seeds.generator(seed).random
    plan = _plan(seed, draw)
    receptacles = _furnish(draw, plan)
    things = _fill(draw, plan, receptacles)
    start = _place(draw, {r.place for r in receptacles} | {t.place for t in things})
    extra = _oddities(draw, plan, things)
    sentence = _SENTENCES[plan.task][int(2 * draw())]
    return Household(
        task_id=f"{split}/{plan.room}-{plan.task}-{index:06d}",
        task_type=TASKS[plan.task],
        problem=layout.problem(start, receptacles, things, extra, layout.goal(plan.task, plan.wanted, plan.target)),
        goal=sentence.format(o=plan.wanted.lower(), r=plan.target.lower() or "desklamp"),
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


def _plan(seed: int, draw: Draw) -> _Plan:
    """Task and receptacles, among them the target or, where there is none, something for the lamp to stand on."""
    room, task = _kind(seed).split("-")
    wanted, target = _goal(draw, f"{room}-{task}")
    needs = [target] if target else list(PLACES["DeskLamp"])
    present = {kind for kind, stock in RECEPTACLES[room].items() if draw() < stock.present}
    if not present.intersection(needs):
        present.add(needs[0])
    numbers = {kind: RECEPTACLES[room][kind].counts for kind in sorted(present)}
    return _Plan(room, task, wanted, target, {kind: many[int(draw() * len(many))] for kind, many in numbers.items()})


def _furnish(draw: Draw, plan: _Plan) -> list[Receptacle]:
    taken: set[str] = set()
    receptacles: list[Receptacle] = []
    for kind, count in plan.counts.items():
        shares = RECEPTACLES[plan.room][kind].openable
        openable = shares[int(draw() * len(shares))] / 100
        for _ in range(count):
            spot = _spot(draw, taken)
            name = f"{kind[:-5]}{spot}_bar_{kind}" if kind.endswith("Basin") else kind + spot
            place = _beside(draw, kind, receptacles) or _place(draw, taken)
            receptacles.append(Receptacle(name, kind, place, draw() < openable))
    return receptacles


def _beside(draw: Draw, kind: str, receptacles: list[Receptacle]) -> str:
    """Place of an earlier receptacle that a new one shares; mostly none."""
    other, share = _NEIGHBOURS.get(kind, ("", 0.01))
    near = [r.place for r in receptacles if r.type == other or not other]
    return near[int(draw() * len(near))] if near and draw() < share else ""


def _fill(draw: Draw, plan: _Plan, receptacles: list[Receptacle]) -> list[Thing]:
    """Objects of a room, so that the goal can be reached and does not hold yet."""
    taken = {receptacle.place for receptacle in receptacles}
    by_type: dict[str, list[Receptacle]] = {}
    for receptacle in receptacles:
        by_type.setdefault(receptacle.type, []).append(receptacle)
    # A basin is the receptacle of an object, whose id begins its own.
    things = [
        Thing(basin.id.rpartition("_bar_")[0], basin.type[:-5], _place(draw, taken), ())
        for basin in receptacles
        if basin.type.endswith("Basin")
    ]
    for kind, shares in sorted({**OBJECTS[plan.room], plan.wanted: _CANDIDATES[plan.task]}.items()):
        needed = kind == plan.wanted or (plan.task == "light" and kind == "DeskLamp")
        closed = plan.target if kind == plan.wanted and plan.task in ("place", "two") else ""
        for _ in range(max(_rank(draw, shares), int(needed))):
            inside = _lay(draw, kind, needed, closed, by_type)
            place = inside[0].place if inside else _aside(draw, receptacles, taken)
            things.append(Thing(kind + _spot(draw, taken), kind, place, inside))
    return things


def _lay(
    draw: Draw, kind: str, needed: bool, closed: str, by_type: Mapping[str, list[Receptacle]]
) -> tuple[Receptacle, ...]:
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


def _aside(draw: Draw, receptacles: list[Receptacle], taken: set[str]) -> str:
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


def _oddities(draw: Draw, plan: _Plan, things: list[Thing]) -> list[str]:
    """Things that are cold from the fridge (8 % of games) and things that lie in a dish (17 %)."""
    facts = []
    if draw() < 0.24 and plan.task != "cool":
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
