"""Expert: a scripted player of ALFWorld that knows the goal and otherwise only what it has read.

It searches the receptacles in an order drawn from where such objects usually lie (`furniture.PLACES`), remembers what
it saw where, and brings what the goal asks for. Its moves are demonstrations for a warm start; it is no agent, since it
is told the goal in the game's own types rather than in words.

Other hands may act in between: it takes stock of every observation and carries on from whatever they left behind.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from prover.envs.alfworld.furniture import CONTAINS, PLACES, RECEPTACLES
from prover.envs.alfworld.game import Game

_RECEPTACLES = {kind.lower() for room in RECEPTACLES.values() for kind in room}
_CONTAINS = {kind.lower(): {name.lower() for name in names} for kind, names in CONTAINS.items()}
_PLACES = {name.lower(): {kind.lower(): n for kind, n in places.items()} for name, places in PLACES.items()}
_DOORS = {"cabinet", "drawer", "fridge", "microwave", "safe"}
PATIENCE = 30
"""Turns before an expert that may ask where things are does so: longer than the demonstrations of the small policy."""
_UNLIKELY = 2  # weight, in thousandths, of a receptacle where such an object was never met
_SPREAD = 0.5  # scale of the Gumbel noise: 1 draws in proportion to the weights, 0 always looks in the likeliest place
_TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
_UNDOES = {"heat": "cool", "cool": "heat"}

_CONTENTS = re.compile(r"(?:On the|The) (\w+ \d+)(?:,| is open\. In it,) you see ([^.]*)\.")
_SHUT = re.compile(r"The (\w+ \d+) is closed\.|You close the (\w+ \d+)\.")
_TAKEN = re.compile(r"You pick up the (\w+ \d+) from the (\w+ \d+)")
_MOVED = re.compile(r"You move the (\w+ \d+) to the (\w+ \d+)")
_TREATED = re.compile(r"You (heat|clean|cool) the (\w+ \d+) using")
_NAME = re.compile(r"\w+ \d+")


class Expert:
    """Plays one episode.

    Args:
        game: The game; only its goal is read.
        rng: Draws the order of the search.
        locate: Tells which receptacles hold objects of a type now. It is asked after ``PATIENCE`` turns only, so that
            a thing in the last of fifty cabinets is still found in time; until then the expert searches blindly.
    """

    def __init__(
        self, game: Game, rng: np.random.Generator, locate: Callable[[str], Iterable[str]] | None = None
    ) -> None:
        self._turns = 0
        self._locate = locate
        self._goal = game.goal
        self._verb = next((verb for verb in _TOOLS if f"_{verb}_" in game.task_type), "")
        self._two = game.task_type == "pick_two_obj_and_place"
        self._rng = rng
        self._receptacles: dict[str, None] = {}  # an ordered set
        self._seen: dict[str, list[str]] = {}  # receptacle -> what it held when last seen
        self._shut: set[str] = set()
        self._treated: dict[str, set[str]] = {verb: set() for verb in _TOOLS}
        self._here: list[str] = []
        self._held = ""
        self._eagerness: dict[str, dict[str, float]] = {}  # object type -> receptacle -> how soon to look there

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next command.

        Args:
            observation: The answer to the last command, whoever gave it; at first the opening.
            info: Its ``admissible_actions`` are the commands that have an effect now.
        """
        self._turns += 1
        admissible: list[str] = list(info["admissible_actions"])
        self._read(observation, admissible)
        command = self._plan()
        if command in admissible:
            return command
        # What was remembered does not hold any more, or nothing here can be done: move on.
        routes = [other for other in admissible if other.startswith("go to ")] or admissible
        return routes[int(self._rng.integers(len(routes)))]

    def _read(self, observation: str, admissible: Iterable[str]) -> None:
        """Take stock: where it stands and what it holds, what lies where, what was done to what."""
        self._here, self._held = [], ""
        for command in admissible:
            verb, _, name = command.partition(" ")
            if verb == "go":
                self._receptacles.setdefault(name.removeprefix("to "))
            elif verb == "examine" and name.rpartition(" ")[0] in _RECEPTACLES:
                self._receptacles.setdefault(name)
                self._here.append(name)
            elif verb == "examine":
                self._held = name
            elif verb == "open":
                self._shut.add(name)
        for match in _SHUT.finditer(observation):
            self._shut.add(match[1] or match[2])
        for receptacle, listed in _CONTENTS.findall(observation):
            self._seen[receptacle] = _NAME.findall(listed)
            self._shut.discard(receptacle)
        for thing, receptacle in _TAKEN.findall(observation):
            if thing in self._seen.get(receptacle, ()):
                self._seen[receptacle].remove(thing)
        for thing, receptacle in _MOVED.findall(observation):
            self._seen.setdefault(receptacle, []).append(thing)
        for verb, thing in _TREATED.findall(observation):
            self._treated[verb].add(thing)
            self._treated.get(_UNDOES.get(verb, ""), set()).discard(thing)

    def _plan(self) -> str:
        if not self._held:
            return self._fetch()
        if not _is(self._held, self._goal.object):
            return self._drop()
        if self._goal.lamp:
            return self._light()
        if self._verb and self._held not in self._treated[self._verb]:
            return self._use_tool()
        return self._deliver(self._bring_to())

    def _fetch(self) -> str:
        """Take an object that the goal asks for, or look for one."""
        home = self._bring_to() if self._two else ""
        ready = self._treated.get(self._verb, ())
        spots = [
            ((thing not in ready, self._cost(receptacle)), thing, receptacle)
            for receptacle, things in self._seen.items()
            for thing in things
            if _is(thing, self._goal.object) and receptacle != home and thing not in self._seen.get(home, ())
        ]
        if not spots:
            return self._search(self._goal.object)
        _, thing, receptacle = min(spots)
        return self._reach(receptacle) or f"take {thing} from {receptacle}"

    def _drop(self) -> str:
        """Get rid of an object that the goal does not ask for."""
        takers = [name for name in self._receptacles if _takes(name, self._held)]
        if not takers:
            return "look"  # nothing can hold it: the hands stay full
        return self._deliver(min(takers, key=self._cost))

    def _light(self) -> str:
        """Turn on a lamp next to the held object, or look for a lamp."""
        lamps = [
            (self._cost(receptacle), thing, receptacle)
            for receptacle, things in self._seen.items()
            for thing in things
            if _is(thing, self._goal.lamp)
        ]
        if not lamps:
            return self._search(self._goal.lamp)
        _, lamp, receptacle = min(lamps)
        return f"use {lamp}" if receptacle in self._here else f"go to {receptacle}"

    def _use_tool(self) -> str:
        tools = [name for name in self._receptacles if _is(name, _TOOLS[self._verb])]
        if not tools:
            return "look"
        tool = min(tools, key=self._cost)
        return f"{self._verb} {self._held} with {tool}" if tool in self._here else f"go to {tool}"

    def _bring_to(self) -> str:
        """The receptacle to deliver to: where one of two lies already, else the one that costs the fewest turns."""
        targets = [name for name in self._receptacles if _is(name, self._goal.receptacle)]

        def preference(name: str) -> tuple[int, float]:
            delivered = sum(_is(thing, self._goal.object) for thing in self._seen.get(name, ()) if thing != self._held)
            return -delivered if self._two else 0, self._cost(name)

        return min(targets, key=preference, default="")

    def _deliver(self, receptacle: str) -> str:
        return self._reach(receptacle) or f"move {self._held} to {receptacle}"

    def _reach(self, receptacle: str) -> str:
        """The next step towards a receptacle and into it; empty when nothing is in the way."""
        if receptacle not in self._here:
            return f"go to {receptacle}"
        return f"open {receptacle}" if receptacle in self._shut else ""

    def _search(self, kind: str) -> str:
        """Look into a receptacle that has not been seen; when all have been, forget it all and look again."""
        unseen = [name for name in self._receptacles if name not in self._seen]
        if not unseen:
            self._seen.clear()
            unseen = list(self._receptacles)
        eagerness = self._eagerness.setdefault(kind, {})
        if len(eagerness) < len(self._receptacles):
            self._draw_order(kind, eagerness)
        waiting = [name for name in unseen if name in self._here and name in self._shut]
        if self._locate is not None and self._turns > PATIENCE:
            waiting = [name for name in self._locate(kind) if name in unseen] or waiting
        best = max(waiting or unseen, key=lambda name: eagerness[name])
        return self._reach(best) or f"examine {best}"

    def _draw_order(self, kind: str, eagerness: dict[str, float]) -> None:
        """How soon to look where: the log of the chance per turn, with noise."""
        kinds = [name.rpartition(" ")[0] for name in self._receptacles]
        weights = _PLACES.get(kind, {})
        for name, place in zip(self._receptacles, kinds, strict=True):
            if name not in eagerness:
                weight = max(weights.get(place, 0), _UNLIKELY) / math.sqrt(kinds.count(place))
                eagerness[name] = math.log(weight / (1 + (place in _DOORS))) + _SPREAD * float(self._rng.gumbel())

    def _cost(self, receptacle: str) -> float:
        """Turns until things can be put into a receptacle or taken out of it."""
        shut = receptacle in self._shut or (receptacle.rpartition(" ")[0] in _DOORS and receptacle not in self._seen)
        return (receptacle not in self._here) + shut


def _is(name: str, kind: str) -> bool:
    """Whether an entity such as ``mug 1`` is of a type such as ``mug``."""
    return name.rpartition(" ")[0] == kind


def _takes(receptacle: str, thing: str) -> bool:
    return thing.rpartition(" ")[0] in _CONTAINS.get(receptacle.rpartition(" ")[0], ())
