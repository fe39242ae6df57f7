"""Rules on play: each finds the fault that was planted for it, and others stay quiet."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("name", "rules", "others"),
    [
        ("ClassState", {"instances"}, {"siblings"}),
        ("MutableDefault", {"instances"}, {"siblings"}),
        ("IgnoresSeed", {"reset_repeats"}, None),
        ("NextTask", {"reset_repeats"}, None),
        ("GoesOnAfterEnd", {"after_end"}, set()),
        ("RefusesOddText", {"odd_actions"}, {"gymnasium_api"}),
        ("NoSuccess", {"answers"}, {"odd_actions"}),
        ("Unsorted", {"answers"}, {"odd_actions"}),
        ("Narrow", {"answers"}, {"odd_actions", "gymnasium_api"}),
        ("NotANumber", {"answers"}, None),
        ("AnyTask", {"tasks"}, set()),
        ("UnstableTasks", {"tasks"}, set()),
        ("CutsItself", {"never_cuts"}, set()),
        ("NumpyFlags", {"answers"}, set()),
    ],
)
def test_a_planted_fault_is_named_by_its_rule(
    name: str, rules: set[str], others: set[str] | None, failed: Callable[..., set[str]]
) -> None:
    """A fault breaks the rule that was made for it, and no rule that has nothing to do with it."""
    found = failed(name)
    assert rules <= found
    if others is not None:
        assert found <= rules | others


def test_a_long_time_limit_is_found_too(failed: Callable[..., set[str]]) -> None:
    """A TimeLimit that no walk reaches is found by its type."""
    assert "never_cuts" in failed("TimeLimited", max_episode_steps=100_000)
