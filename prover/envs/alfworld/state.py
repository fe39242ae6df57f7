"""State: everything that changes during a game."""

from typing import NamedTuple

from prover.envs.alfworld.facts import Facts
from prover.errors import DataError


class State(NamedTuple):
    """An immutable, hashable state. Objects, receptacles and places are 0-based indices into the game's sorted ids."""

    place: int
    """Where the agent stands."""
    held: int | None
    """The object in its hands."""
    opened: frozenset[int]
    """Receptacles that are open."""
    contents: tuple[tuple[int, ...], ...]
    """Per receptacle the sorted objects in or on it; an object may be in several."""
    lying: tuple[tuple[int, ...], ...]
    """Per place the sorted objects there; not always the place of the receptacle that holds them."""
    taken: frozenset[tuple[int, int]] = frozenset()
    """Pairs (object, receptacle) of a take that no move into the same receptacle has undone; only ``look`` tells."""
    clean: frozenset[int] = frozenset()
    """Objects that have been cleaned."""
    hot: frozenset[int] = frozenset()
    """Objects that have been heated, and not cooled since."""
    cool: frozenset[int] = frozenset()
    """Objects that have been cooled, and not heated since."""
    sliced: frozenset[int] = frozenset()
    """Objects that have been sliced."""
    used: frozenset[int] = frozenset()
    """Objects, such as lamps, that have been turned on."""

    @classmethod
    def initial(cls, facts: Facts) -> "State":
        """The state in which the initial facts hold.

        Raises:
            DataError: they do not put one agent at one place with at most one object in its hands.
        """
        start = [row[1] for row in facts.rows("atlocation")]
        held = [row[1] for row in facts.rows("holds")]
        if len(start) != 1 or len(held) > 1:
            raise DataError(
                f"expected one agent at one place with at most one object, got {len(start)} places and {len(held)} "
                f"objects; this engine cannot play the game"
            )

        def things(predicate: str) -> frozenset[int]:
            return frozenset(thing for (thing,) in facts.indices(predicate))

        def grouped(predicate: str, kind: str) -> tuple[tuple[int, ...], ...]:
            groups: list[list[int]] = [[] for _ in facts.ids(kind)]
            for thing, container in facts.indices(predicate):
                groups[container].append(thing)
            return tuple(map(tuple, groups))

        return cls(
            place=int(start[0]),
            held=int(held[0]) if held else None,
            opened=things("opened"),
            contents=grouped("inreceptacle", "receptacle"),
            lying=grouped("objectatlocation", "location"),
            clean=things("isclean"),
            hot=things("ishot"),
            cool=things("iscool"),
            sliced=things("issliced"),
            used=things("istoggled"),
        )

    def canonical(self) -> tuple[object, ...]:
        """The same value with every set as a sorted tuple: equal states have equal ``repr`` in every process."""
        return tuple(tuple(sorted(part)) if isinstance(part, frozenset) else part for part in self)
