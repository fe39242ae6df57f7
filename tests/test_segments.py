"""Tests of prover.segments."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from episodes import played

from prover.errors import ConfigError
from prover.records import Group, Segment, Task, Trajectory, Turn
from prover.segments import choose_success, validate_segment


def trajectory(n_turns: int, *, success: bool = True, invalid: Collection[int] = (), truncated: int = -1) -> Trajectory:
    """A trajectory of that many turns."""
    turns = tuple(
        Turn(
            text=f"act {t}",
            action=f"act {t}",
            result="",
            reward=0.0,
            invalid="env" if t in invalid else None,
            truncated=t == truncated,
        )
        for t in range(n_turns)
    )
    return played(turns, success)


def group(*members: Trajectory) -> Group:
    """A group of these members."""
    return Group(index=3, task=Task(id="a", split="train"), trajectories=members)


def segment(start: Any, end: Any) -> Segment:
    """A segment of trajectory 0."""
    return Segment(trajectory=0, start=start, end=end)


def test_vectors(shared: Path) -> None:
    """Every verdict agrees with the vectors."""
    for case in json.loads((shared / "vectors" / "algorithm_vectors.json").read_text())["segment_validation"]:
        run = trajectory(case["num_turns"], invalid=case["invalid_action_turns"])
        got = validate_segment(segment(case["start"], case["end"]), run, case["max_turns"])
        assert (got or "ok") == case["verdict"]


@pytest.mark.parametrize(
    ("start", "end", "verdict"),
    [
        (0, 0, None),
        (6, 6, "out_of_bounds"),
        (7, 9, "out_of_bounds"),
        (-1, 2, "out_of_bounds"),
        (4, 2, "out_of_bounds"),
        (2, 2, None),
        (1, 6, "out_of_bounds"),
        (5, 5, "terminal_endpoint"),
        (1, 4, None),
        (0, 4, "too_long"),
        (0, 5, "terminal_endpoint"),
        (4, 4, None),
    ],
)
def test_bounds(start: int, end: int, verdict: str | None) -> None:
    """Six turns: what is outside, reversed, terminal or longer than four is refused and never moved inside."""
    assert validate_segment(segment(start, end), trajectory(6), 4) == verdict


@pytest.mark.parametrize("bound", [1.0, "1", True, None])
def test_bounds_are_integers(bound: Any) -> None:
    """Numbers in another type, texts and truth values name no turn."""
    assert validate_segment(segment(bound, 2), trajectory(6), 4) == "not_integer"
    assert validate_segment(segment(0, bound), trajectory(6), 4) == "not_integer"


def test_invalid_actions() -> None:
    """A segment may end before an invalid or truncated turn and begin after it, but not hold it."""
    run = trajectory(8, invalid=[2], truncated=5)
    assert validate_segment(segment(0, 1), run, 4) is None
    assert validate_segment(segment(3, 4), run, 4) is None
    assert validate_segment(segment(1, 3), run, 4) == "contains_invalid_action"
    assert validate_segment(segment(5, 5), run, 4) == "contains_invalid_action"


def test_first_reason_wins() -> None:
    """A segment with several faults is refused for the first in the list of codes."""
    run = trajectory(8, invalid=[2])
    assert validate_segment(segment(0, 7), run, 4) == "terminal_endpoint"
    assert validate_segment(segment(0, 6), run, 4) == "too_long"


def test_methods_that_cut_runs_themselves_are_held_to_no_length() -> None:
    """Six turns as one segment, an idle one and the last included; bounds hold for them too."""
    run = trajectory(6, invalid=[2])
    assert validate_segment(segment(0, 5), run, 4, strict=False) is None
    assert validate_segment(segment(0, 6), run, 4, strict=False) == "out_of_bounds"


def test_choose_success() -> None:
    """The success with the fewest turns is chosen, the first among equals; failures never are."""
    members = trajectory(2, success=False), trajectory(5), trajectory(4), trajectory(4)
    assert choose_success(group(*members)) == 2
    with pytest.raises(ConfigError, match="got none in group 3"):
        choose_success(group(members[0]))
