"""Layout: what stands where in a generated household, written as a problem of the ``alfred`` domain."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from prover.envs.alfworld.furniture import CONTAINS, PROPERTIES

_STATES = {"clean": ("cleanable", "isClean"), "heat": ("heatable", "isHot"), "cool": ("coolable", "isCool")}


class Receptacle(NamedTuple):
    """A receptacle at a place."""

    id: str
    type: str
    """Type in the domain's spelling, e.g. ``SinkBasin``."""
    place: str
    """Id of the place that one stands at to reach it."""
    openable: bool


class Thing(NamedTuple):
    """An object at a place, in or on receptacles or in none."""

    id: str
    type: str
    place: str
    inside: tuple[Receptacle, ...]


def problem(
    start: str, receptacles: Sequence[Receptacle], things: Sequence[Thing], extra: Iterable[str], goal: str
) -> str:
    """The text of a problem.

    Args:
        start: Place where the agent stands.
        receptacles: All receptacles, shut where they can be.
        things: All objects.
        extra: More facts that hold at the start, without parentheses.
        goal: The goal section.
    """
    places = {start} | {r.place for r in receptacles} | {t.place for t in things}
    declared = [
        ("agent1", "agent"),
        *((f"{kind}Type", "otype") for kind in sorted({t.type for t in things})),
        *((f"{kind}Type", "rtype") for kind in sorted({r.type for r in receptacles})),
        *((name, "object") for name in sorted(t.id for t in things)),
        *((name, "receptacle") for name in sorted(r.id for r in receptacles)),
        *((place, "location") for place in sorted(places)),
    ]
    facts = [f"atLocation agent1 {start}", *_facts(receptacles, things), *extra]
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
            goal,
            ")",
        ]
    )


def _facts(receptacles: Sequence[Receptacle], things: Sequence[Thing]) -> list[str]:
    facts = [f"receptacleType {r.id} {r.type}Type" for r in receptacles]
    facts += [f"receptacleAtLocation {r.id} {r.place}" for r in receptacles]
    facts += [f"openable {r.id}" for r in receptacles if r.openable]
    facts += [f"objectType {t.id} {t.type}Type" for t in things]
    facts += [f"objectAtLocation {t.id} {t.place}" for t in things]
    facts += [f"inReceptacle {t.id} {r.id}" for t in things for r in t.inside]
    for name, kinds in PROPERTIES.items():
        facts += [f"{name} {t.id}" for t in things if t.type in kinds]
    present = {t.type for t in things}
    for kind in sorted({r.type for r in receptacles}):
        facts += [f"canContain {kind}Type {name}Type" for name in sorted(present & CONTAINS.get(kind, frozenset()))]
    return facts


def goal(task: str, wanted: str, target: str) -> str:
    """The goal section, in one of ALFWorld's six shapes.

    Args:
        task: ``place``, ``light``, ``clean``, ``heat``, ``cool`` or ``two``.
        wanted: Type of the object.
        target: Type of the receptacle; not used for ``light``.
    """
    if task == "light":
        lamp = "(objectType ?ot DeskLampType) (toggleable ?ot) (isToggled ?ot)"
        here = "(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)"
        return (
            f"(:goal (and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and {lamp} {here}))\n"
            f"    (exists (?o - object ?a - agent) (and (objectType ?o {wanted}Type) (holds ?a ?o)))))"
        )
    lies = f"(objectType {{o}} {wanted}Type) (receptacleType ?r {target}Type) (inReceptacle {{o}} ?r)"
    if task == "two":
        other = f"(exists (?o2 - object) (and (not (= ?o1 ?o2)) {lies.format(o='?o2')}))"
        inner = f"(exists (?o1 - object) (and {lies.format(o='?o1')} {other}))"
    else:
        able, state = _STATES.get(task, ("", ""))
        treated = f"({able} ?o) ({state} ?o) " if able else ""
        inner = f"(exists (?o - object) (and {treated}{lies.format(o='?o')}))"
    return f"(:goal (and (exists (?r - receptacle) {inner})))"
