"""Corridor: a first choice that cannot be undone, before a household.

An episode begins in a corridor with a door to each kind of room; a landmark stands behind each. Whoever goes to one is
in that room, and the door falls shut. Behind the right door is the household of the task. Behind any other is a
household of that other kind, with the goal of the task, which is never reached there. Things belong to rooms, so the
goal tells the right door from the others.

A corridor is played as a `Game` is: it never changes, what changes is the `Whereabouts`.
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from prover.envs.alfworld import text
from prover.envs.alfworld.data import Games
from prover.envs.alfworld.expert import Expert
from prover.envs.alfworld.game import Game
from prover.envs.alfworld.state import State
from prover.records import Trajectory
from prover.seeds import generator

LANDMARKS = {"kitchen": "fridge 1", "living": "sofa 1", "bedroom": "bed 1", "bathroom": "toilet 1"}
"""Kind of room -> what is seen of it: a receptacle that every room of that kind has, and no room of another kind."""


class Whereabouts(NamedTuple):
    """An immutable, hashable state of a corridor."""

    room: str = ""
    """Kind of the room that was entered; empty in the corridor."""
    inside: State | None = None
    """State of the household there; None in the corridor."""

    def canonical(self) -> tuple[object, ...]:
        """See ``State.canonical``."""
        return (self.room, None if self.inside is None else self.inside.canonical())


class Corridor:
    """The corridor before a household.

    Attributes:
        right: Kind of room of the household.
        doors: Command -> kind of room, in the order in which the landmarks are named.
        task_type: That of the household.
        initial: The state at the start.
        intro: The first observation.

    Args:
        room: Kind of room of the task's household.
        order: All kinds of room, in the order in which they are seen.
        enter: Gives the household of a kind of room; asked once.
    """

    def __init__(self, room: str, order: Iterable[str], enter: Callable[[str], Game]) -> None:
        self.right = room
        self.doors = {f"go to {LANDMARKS[kind]}": kind for kind in order}
        self._enter = enter
        # Households that were entered. They are what the task says, so keeping them is no state.
        self._entered: dict[str, Game] = {}
        self.task_type = self.behind(room).task_type
        self.initial = Whereabouts()
        view = text.overview("corridor", (LANDMARKS[kind] for kind in self.doors.values()))
        self.intro = text.opening(view, self.behind(room).goal_sentence)

    def behind(self, room: str) -> Game:
        """The household behind the door to a kind of room."""
        if room not in self._entered:
            self._entered[room] = self._enter(room)
        return self._entered[room]

    def won(self, state: Whereabouts) -> bool:
        """Whether the goal holds, in the right room."""
        return state.room == self.right and state.inside is not None and self.behind(state.room).won(state.inside)

    def admissible(self, state: Whereabouts) -> list[str]:
        """The commands that have an effect or an answer in this state, sorted."""
        return sorted(self.doors) if state.inside is None else self.behind(state.room).admissible(state.inside)

    def step(self, state: Whereabouts, command: str) -> tuple[Whereabouts, str]:
        """Carry out a command, see ``Game.step``; entering is answered with the opening of the household."""
        if state.inside is not None:
            inside, observation = self.behind(state.room).step(state.inside, command)
            return state._replace(inside=inside), observation
        room = self.doors.get(command.strip())
        if room is None:
            return state, text.NOTHING
        household = self.behind(room)
        return Whereabouts(room, household.initial), household.opening(self.behind(self.right).goal_sentence)

    def holding(self, state: Whereabouts, kind: str) -> list[str]:
        """See ``Game.holding``; nothing is seen from the corridor."""
        return [] if state.inside is None else self.behind(state.room).holding(state.inside, kind)


class Corridors:
    """Corridors before the households of other ``Games``, whose ids begin with split and kind of room."""

    def __init__(self, households: Games) -> None:
        self._households = households
        self.tasks = households.tasks
        self.task_type = households.task_type
        self.n_receptacles = households.n_receptacles
        self.content = households.content

    def load(self, task_id: str) -> Corridor:
        """The corridor before the household of that id.

        The id draws the order of the doors and which households of its split are behind the other ones.

        Raises:
            UnknownNameError: no household has that id.
        """
        self._households.task_type(task_id)  # raises where there is no such household
        split, right = _split_and_room(task_id)
        draw = generator(int.from_bytes(blake2b(task_id.encode(), digest_size=8).digest(), "big")).random
        order = sorted(LANDMARKS, key=lambda _: draw())
        every = self._households.tasks(split)

        def stranger(room: str) -> str:
            while _split_and_room(task := every[int(draw() * len(every))]) != (split, room):
                pass
            return task

        ids = {room: task_id if room == right else stranger(room) for room in LANDMARKS}
        return Corridor(right, order, lambda room: self._households.load(ids[room]))


class Usher:
    """An expert that takes the right door, then lets another one play.

    Args:
        corridor: Where it stands.
        expert: Plays the household.
    """

    def __init__(self, corridor: Corridor, expert: Expert) -> None:
        self._corridor = corridor
        self._expert = expert

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """See ``Expert.act``."""
        if info["admissible_actions"] == self._corridor.admissible(Whereabouts()):
            return next(command for command, room in self._corridor.doors.items() if room == self._corridor.right)
        return self._expert.act(observation, info)


def pivots(trajectory: Trajectory) -> list[int]:
    """The turn that chose a door: the first valid one. For ``judge.kind: oracle``, as the key ``pivots`` there."""
    return [index for index, turn in enumerate(trajectory.turns) if turn.invalid is None][:1]


def _split_and_room(task_id: str) -> tuple[str, str]:
    split, _, name = task_id.partition("/")
    return split, name.partition("-")[0]
