"""Surveys and batches made by hand."""

from collections.abc import Sequence
from typing import Any

from prover.diagnosis.book import Batch, Named
from prover.diagnosis.survey import Course, Outcome, State
from prover.records import Segment


def states(successes: Sequence[int], n: int, turns: int = 0) -> tuple[State, ...]:
    """One state per number of successes out of n, which come first, and the known success at the end.

    All turns of a state are those of its first continuation.
    """
    spent = [(turns, 2 * turns)] + [(0, 0)] * (n - 1)
    found = [State(outcomes=tuple(Outcome(k < s, 0.0, *spent[k]) for k in range(n))) for s in successes]
    return (*found, State(outcomes=(Outcome(True, 0.0, 0, 0),), known=True))


def course(
    first: Sequence[int], second: Sequence[int], *, n: tuple[int, int] = (8, 4), idle: Sequence[int] = (), **more: Any
) -> Course:
    """A surveyed success: successes of the continuations before each turn, in both passes."""
    usable = tuple(turn not in idle and turn + 1 < len(first) for turn in range(len(first)))
    passes = (states(first, n[0], turns=3), states(second, n[1], turns=5))
    fields = {"group": 0, "task": "t", "trajectory": 0, "rewards": (0.0,) * len(first)} | more
    return Course(usable=usable, passes=passes, **fields)


def turn(place: int, trajectory: int = 0) -> Segment:
    """The segment of one turn."""
    return Segment(trajectory=trajectory, start=place, end=place)


def batch(number: int = 0, **more: Any) -> Batch:
    """Two groups of four, of which the first is eligible; its success was surveyed and one selector named turn 1."""
    fields: dict[str, Any] = {
        "tasks": ("t", "u"),
        "successes": (1, 0),
        "sizes": (4, 4),
        "eligible": (0,),
        "turns": 40,
        "invalid": 4,
        "courses": (course([0, 2, 6], [0, 1, 3]),),
        "chosen": 1,
        "named": (Named(selector="sharp", group=0, outcome="credited", segment=turn(1)),),
        "costs": {},
        "unmeasured": (),
        "cpu_seconds": 1.5,
    }
    return Batch(batch=number, **{**fields, **more})
