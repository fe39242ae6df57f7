"""Game: one ALFWorld household, played exactly as stock TextWorld plays it.

The rules are those of the domain of alfworld 0.4.2 ("move X to Y"), interpreted directly on the facts of the problem:
nothing is grounded, no planner is called. A game never changes after it is built; what changes is the `State`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from prover.envs.alfworld import text
from prover.envs.alfworld.entities import Item, Receptacle
from prover.envs.alfworld.facts import INDEXED, Facts
from prover.envs.alfworld.goal import Goal
from prover.envs.alfworld.problem import Problem
from prover.envs.alfworld.state import State
from prover.errors import DataError

_PATCH = (
    "ProVer plays games with the grammar of alfworld 0.4.0 or newer (json_2.1.2: 'move X to Y'); "
    "run alfworld-download of alfworld>=0.4 again, or patch the games with alfworld's scripts/patch_tw-pddl.py"
)
_NEW_GRAMMAR = ('"move {o} to {r}"', '"You arrive at {r.name}. #examineReceptacle.feedback#"')
_TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
_KNIVES = frozenset(("knife", "butterknife"))


class Game:
    """One game.

    Attributes:
        goal_sentence: The task in words, without "Your task is to: " and the full stop.
        goal: The goal condition: its test, task type and the types it is about.
        objects: All objects; an object's index is its number in every `State`.
        receptacles: All receptacles; likewise.
        initial: The state at the start.
        intro: The first observation.
    """

    def __init__(self, problem: Problem, goal_sentence: str) -> None:
        facts = Facts(problem)
        names = text.numbered(id_ for kind in INDEXED for id_ in facts.ids(kind))
        n_places = len(facts.ids("location"))
        self.goal_sentence = goal_sentence
        self.goal = Goal.compile(problem.goal, facts)
        self.initial = State.initial(facts)
        self.objects = tuple(Item.read(facts, i, names[id_]) for i, id_ in enumerate(facts.ids("object")))
        self.receptacles = tuple(Receptacle.read(facts, i, names[id_]) for i, id_ in enumerate(facts.ids("receptacle")))
        self._object_named = {item.name: index for index, item in enumerate(self.objects)}
        self._receptacle_named = {receptacle.name: index for index, receptacle in enumerate(self.receptacles)}
        self._here = tuple(
            tuple(index for index, receptacle in enumerate(self.receptacles) if receptacle.place == place)
            for place in range(n_places)
        )
        self._anywhere: dict[str, tuple[str, int, int]] = {
            **{f"go to {receptacle.name}": ("go", 0, index) for index, receptacle in enumerate(self.receptacles)},
            **{word: (word, 0, 0) for word in ("help", "inventory", "look")},
        }
        # Who stands at a receptacle is offered no way to it, nor to any other in the same place.
        self._routes = tuple(
            sorted(
                command
                for command, (verb, _, index) in self._anywhere.items()
                if verb != "go" or self.receptacles[index].place != place
            )
            for place in range(n_places)
        )
        self.intro = self.opening(goal_sentence)

    @classmethod
    def parse(cls, problem: str, goal_sentence: str) -> "Game":
        """Build a game from the text of a PDDL problem and the task in words, e.g. ``put a mug in desk``.

        Raises:
            DataError: the problem cannot be read, or says what this engine does not play.
        """
        return cls(Problem.parse(problem), goal_sentence)

    @classmethod
    def load(cls, folder: str | Path) -> "Game":
        """Read ``game.tw-pddl`` in a trial's folder, or the file itself.

        Raises:
            DataError: there is no such file, it is damaged or unsolvable, or its grammar is an older version.
        """
        path = Path(folder)
        path = path / "game.tw-pddl" if path.is_dir() else path
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            grammar, problem, solvable = data["grammar"], data["pddl_problem"], data.get("solvable", True)
        except OSError as error:
            raise DataError(f"expected an ALFWorld game at {path}, got: {error}; check the path") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"expected a game in JSON with grammar and pddl_problem at {path}, got: {error!r}; download it again"
            ) from error
        if not solvable:
            raise DataError(f"expected a solvable game, got solvable = {solvable} at {path}; choose another task")
        if not all(phrase in grammar for phrase in _NEW_GRAMMAR):
            raise DataError(f"expected the current texts, got an older grammar at {path}; {_PATCH}")
        sentence = re.search(r'"Your task is to: ((?:[^"\\]|\\.)*)"', grammar)
        if not sentence:
            raise DataError(f'expected "Your task is to: ..." in the grammar at {path}, got none; {_PATCH}')
        return cls.parse(problem, json.loads(f'"{sentence[1]}"').removesuffix("."))

    @property
    def task_type(self) -> str:
        """ALFWorld's name of the type of task, e.g. ``pick_two_obj_and_place``; empty for a goal of another form."""
        return self.goal.task_type

    def object_named(self, name: str) -> int | None:
        """Index of the object of that name, e.g. ``mug 1``; None where there is none."""
        return self._object_named.get(name)

    def receptacle_named(self, name: str) -> int | None:
        """Index of the receptacle of that name, e.g. ``desk 1``; None where there is none."""
        return self._receptacle_named.get(name)

    def receptacles_at(self, place: int) -> tuple[int, ...]:
        """Indices of the receptacles at a place."""
        return self._here[place]

    def where(self, state: State, thing: int) -> tuple[int, ...]:
        """Indices of the receptacles that an object is in, open or not; it may be none or several."""
        return tuple(index for index, inside in enumerate(state.contents) if thing in inside)

    def holding(self, state: State, kind: str) -> list[str]:
        """Names of the receptacles that hold objects of a type, e.g. ``mug``; one name for each of them."""
        things = [index for index, item in enumerate(self.objects) if item.name.rpartition(" ")[0] == kind]
        return [self.receptacles[place].name for thing in things for place in self.where(state, thing)]

    def is_shut(self, state: State, receptacle: int) -> bool:
        """Whether a receptacle can be opened and has not been."""
        return self.receptacles[receptacle].openable and receptacle not in state.opened

    def opening(self, goal_sentence: str) -> str:
        """The first observation of this household, with a task in words."""
        view = self._look(self.initial)
        if not self._here[self.initial.place]:
            view = text.overview("room", (receptacle.name for receptacle in self.receptacles))
        return text.opening(view, goal_sentence)

    def won(self, state: State) -> bool:
        """Whether the goal holds; it may cease to hold again."""
        return self.goal.test(state)

    def admissible(self, state: State) -> list[str]:
        """The commands that have an effect or an answer in this state, sorted."""
        return sorted([*self._routes[state.place], *self._local(state)])

    def step(self, state: State, command: str) -> tuple[State, str]:
        """Carry out a command; returns the next state and the observation. ``state`` is not changed.

        A command has to be one of ``admissible(state)``, letter by letter but for blanks around it. Any other leaves
        the state as it is and is answered with "Nothing happens.". A won game goes on.
        """
        command = command.strip()
        action = self._anywhere.get(command)
        if action is None:
            action = self._local(state).get(command)
        elif action[0] == "go" and self.receptacles[action[2]].place == state.place:
            action = None
        if action is None:
            return state, text.NOTHING
        return self._act(state, *action)

    def _local(self, state: State) -> dict[str, tuple[str, int, int]]:
        """The commands that concern what is at hand: command -> (verb, object, receptacle or knife)."""
        return dict(self._at_hand(state))

    def _at_hand(self, state: State) -> Iterator[tuple[str, tuple[str, int, int]]]:
        held = state.held
        item = None if held is None else self.objects[held]
        for index in self._here[state.place]:
            receptacle = self.receptacles[index]
            name = receptacle.name
            yield f"examine {name}", ("examine receptacle", 0, index)
            shut = receptacle.openable and index not in state.opened
            if receptacle.openable:
                yield (f"open {name}", ("open", 0, index)) if shut else (f"close {name}", ("close", 0, index))
            for thing in state.contents[index]:
                other = self.objects[thing]
                if item is None and not shut and "pickupable" in other.can:
                    yield f"take {other.name} from {name}", ("take", thing, index)
                # A lamp behind a closed door can be turned on.
                if "toggleable" in other.can:
                    yield f"use {other.name}", ("use", thing, index)
            if held is None or item is None:
                continue
            if not shut and item.kind in receptacle.accepts:
                yield f"move {item.name} to {name}", ("move", held, index)
            # Neither of these needs an open door.
            for verb, kind in _TOOLS.items():
                if receptacle.kind == kind and f"{verb}able" in item.can:
                    yield f"{verb} {item.name} with {name}", (verb, held, index)
        if held is None or item is None:
            return
        yield f"examine {item.name}", ("examine object", held, 0)
        if item.kind in _KNIVES:
            for thing in state.lying[state.place]:
                if "sliceable" in self.objects[thing].can:
                    yield f"slice {self.objects[thing].name} with {item.name}", ("slice", thing, held)

    def _act(self, state: State, verb: str, thing: int, other: int) -> tuple[State, str]:
        """Carry out an admissible action."""
        match verb:
            case "go":
                there = self.receptacles[other]
                return state._replace(place=there.place), f"You arrive at {there.name}. {self._contents(state, other)}"
            case "look":
                return state, self._look(state)
            case "inventory":
                held = [] if state.held is None else [self.objects[state.held].name]
                return state, f"You are carrying: {text.listed(held)}." if held else "You are not carrying anything."
            case "help":
                return state, text.HELP
            case "examine receptacle":
                return state, self._contents(state, other)
            case "examine object":
                return state, self._examine(state, thing)
            case "open":
                state = state._replace(opened=state.opened | {other})
                return state, f"You open the {self.receptacles[other].name}. {self._contents(state, other)}"
            case "close":
                state = state._replace(opened=state.opened - {other})
                return state, f"You close the {self.receptacles[other].name}."
            case "use":
                return state._replace(used=state.used | {thing}), f"You turn on the {self.objects[thing].name}."
            case "slice":
                knife = self.objects[other].name
                observation = f"You sliced the {self.objects[thing].name} with the {knife}."
                return state._replace(sliced=state.sliced | {thing}), observation
        return self._handle(state, verb, thing, other)

    def _handle(self, state: State, verb: str, thing: int, index: int) -> tuple[State, str]:
        """Carry out an admissible action on an object and a receptacle."""
        name, receptacle = self.objects[thing].name, self.receptacles[index].name
        one = frozenset((thing,))
        match verb:
            case "take":
                state = state._replace(
                    held=thing,
                    contents=_changed(state.contents, index, _without(state.contents[index], thing)),
                    lying=_changed(state.lying, state.place, _without(state.lying[state.place], thing)),
                    taken=state.taken | {(thing, index)},
                )
                return state, f"You pick up the {name} from the {receptacle}."
            case "move":
                state = state._replace(
                    held=None,
                    contents=_changed(state.contents, index, _with(state.contents[index], thing)),
                    lying=_changed(state.lying, state.place, _with(state.lying[state.place], thing)),
                    taken=state.taken - {(thing, index)},
                )
                return state, f"You move the {name} to the {receptacle}."
            case "clean":
                state = state._replace(clean=state.clean | one)
            case "heat":
                state = state._replace(hot=state.hot | one, cool=state.cool - one)
            case "cool":
                state = state._replace(cool=state.cool | one, hot=state.hot - one)
        return state, f"You {verb} the {name} using the {receptacle}."

    def _look(self, state: State) -> str:
        here = self._here[state.place]
        if not here:
            return text.overview("room", ())
        facing = text.joined([self.receptacles[index].name for index in here])
        # An object is named once for each receptacle here that it was taken out of.
        beside = text.listed(
            self.objects[thing].name
            for thing in state.lying[state.place]
            for index in here
            if (thing, index) in state.taken
        )
        return f"You are facing the {facing}. Next to it, you see {beside}."

    def _contents(self, state: State, index: int) -> str:
        receptacle = self.receptacles[index]
        if self.is_shut(state, index):
            return f"The {receptacle.name} is closed."
        inside = text.listed(self.objects[thing].name for thing in state.contents[index])
        if receptacle.openable:
            return f"The {receptacle.name} is open. In it, you see {inside}."
        return f"On the {receptacle.name}, you see {inside}."

    def _examine(self, state: State, thing: int) -> str:
        item = self.objects[thing]
        if item.holds is not None:
            inside = text.listed(self.objects[inner].name for inner in item.holds)
            return f"This is a normal {item.name}. In it, you see {inside}."
        return text.described(
            item.name,
            clean=thing in state.clean,
            hot=thing in state.hot,
            cool=thing in state.cool,
            sliced=thing in state.sliced,
            used=thing in state.used,
        )


def _changed(rows: tuple[tuple[int, ...], ...], index: int, row: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return (*rows[:index], row, *rows[index + 1 :])


def _with(row: tuple[int, ...], thing: int) -> tuple[int, ...]:
    return row if thing in row else tuple(sorted((*row, thing)))


def _without(row: tuple[int, ...], thing: int) -> tuple[int, ...]:
    return tuple(other for other in row if other != thing)
