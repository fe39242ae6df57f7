"""State: everything that changes during a game."""

from typing import NamedTuple


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

    def canonical(self) -> tuple[object, ...]:
        """The same value with every set as a sorted tuple: equal states have equal ``repr`` in every process."""
        return tuple(tuple(sorted(part)) if isinstance(part, frozenset) else part for part in self)
