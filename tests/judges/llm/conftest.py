"""Groups made by hand, and replies about them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from prover.records import EndReason, Group, Task, Trajectory, Turn

Step = tuple[str, str]
"""Action and result."""


def run(steps: Sequence[Step | Turn], *, success: bool, member: int = 0, opening: str = "A room.") -> Trajectory:
    """A trajectory of these steps."""
    turns = tuple(
        step if isinstance(step, Turn) else Turn(text=step[0], action=step[0], result=step[1], reward=0.0)
        for step in steps
    )
    return Trajectory(
        task=Task(id="a", split="train"),
        member=member,
        seed=0,
        policy_version=0,
        opening=opening,
        turns=turns,
        rows=(),
        reward=float(success),
        success=success,
        end=EndReason.DONE if success else EndReason.TURN_CAP,
    )


def acts(count: int, word: str = "act") -> list[Step]:
    """Turns whose policy text is "act k"; turn 3 has an empty observation."""
    return [(f"{word} {k}", "" if k == 3 else f"seen {k}") for k in range(count)]


@pytest.fixture
def group_of() -> Callable[..., Group]:
    """Makes a group of runs given as ``(steps, success)``; member numbers are ten times the index."""

    def make(*runs: tuple[Sequence[Step | Turn], bool], opening: str = "A room.") -> Group:
        members = tuple(
            run(steps, success=success, member=10 * index, opening=opening)
            for index, (steps, success) in enumerate(runs)
        )
        return Group(index=0, task=Task(id="a", split="train"), trajectories=members)

    return make


@pytest.fixture
def reply_of() -> Callable[..., str]:
    """Makes the JSON of a good reply with some keys replaced; a key set to ``...`` is left out."""

    def make(start: Any = 3, end: Any = 4, *, cites: Any = "f", **changed: Any) -> str:
        reply = {
            "failure_mode": "the mug is left behind",
            "evidence": [{"trajectory": cites, "turn": 1}],
            "reason": "left the mug",
            "start_turn": start,
            "end_turn": end,
            "confidence": 0.5,
            **changed,
        }
        return json.dumps({key: value for key, value in reply.items() if value is not ...})

    return make


@pytest.fixture
def runs() -> tuple[Trajectory, dict[str, Trajectory]]:
    """A success of seven turns, and two failures by label."""
    failures = {"f": run(acts(5, "x"), success=False), "g": run(acts(2, "y"), success=False)}
    return run(acts(7), success=True), failures
