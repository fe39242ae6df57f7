"""Item and Receptacle: what never changes about the things of a game."""

from dataclasses import dataclass

from prover.envs.alfworld.facts import Facts
from prover.errors import DataError

_ABILITIES = ("pickupable", "cleanable", "heatable", "coolable", "sliceable", "toggleable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An object."""

    id: str
    name: str
    """As the texts call it, e.g. ``alarmclock 2``."""
    kind: str
    """Its type, e.g. ``alarmclock``; empty where the problem names none."""
    can: frozenset[str]
    """Among ``pickupable cleanable heatable coolable sliceable toggleable``."""
    holds: tuple[int, ...] | None
    """Other objects that were in it at the start, which is all that ``examine`` ever tells; None: it can hold none."""

    @classmethod
    def read(cls, facts: Facts, index: int, name: str) -> "Item":
        """The object of that index."""
        id_ = facts.ids("object")[index]
        inner = tuple(thing for thing, outer in facts.indices("inreceptacleobject") if outer == index != thing)
        return cls(
            id=id_,
            name=name,
            kind=str(facts.one("objecttype", index, id_) or "").removesuffix("type"),
            can=frozenset(ability for ability in _ABILITIES if facts.has(ability, index)),
            holds=inner if facts.has("isreceptacleobject", index) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Receptacle:
    """A receptacle."""

    id: str
    name: str
    """As the texts call it, e.g. ``sidetable 1``."""
    kind: str
    """Its type, e.g. ``sidetable``."""
    place: int
    """Index of the place where it stands; several may stand in one."""
    openable: bool
    accepts: frozenset[str]
    """Types of the objects that can be put into it."""

    @classmethod
    def read(cls, facts: Facts, index: int, name: str) -> "Receptacle":
        """The receptacle of that index.

        Raises:
            DataError: it has no type, no place or several.
        """
        id_ = facts.ids("receptacle")[index]
        kind = facts.one("receptacletype", index, id_)
        place = facts.one("receptacleatlocation", index, id_)
        if kind is None or place is None:
            raise DataError(
                f"expected type and place of {id_}, got {kind} and {place}; this engine cannot play the game"
            )
        accepted = (row[1] for row in facts.rows("cancontain") if row[0] == kind)
        return cls(
            id=id_,
            name=name,
            kind=str(kind).removesuffix("type"),
            place=int(place),
            openable=facts.has("openable", index),
            accepts=frozenset(str(thing).removesuffix("type") for thing in accepted),
        )
