"""Rules on snapshots: each finds the fault that was planted for it, and others stay quiet."""

from collections.abc import Callable

import pytest

SNAPSHOTS = {"restore_exact", "restore_twice", "restore_elsewhere", "restore_rng", "snapshot_pickles", "siblings"}


@pytest.mark.parametrize(
    ("name", "rules", "others"),
    [
        ("ShallowCopy", {"restore_exact"}, SNAPSHOTS | {"after_end"}),
        ("SharedByRestore", {"restore_twice", "siblings"}, SNAPSHOTS),
        ("ForgottenRng", {"restore_rng"}, SNAPSHOTS),
        ("ForgottenCounter", {"restore_counters"}, SNAPSHOTS),
        ("SideEffect", {"snapshot_is_pure"}, SNAPSHOTS),
        ("Unpicklable", {"snapshot_pickles"}, {"odd_actions"}),
        ("LocalSnapshot", {"restore_elsewhere"}, {"siblings", "after_end"}),
        ("ForgottenAnswer", {"restore_exact"}, SNAPSHOTS | {"after_end"}),
        ("RestlessReseed", {"reseed"}, set()),
        ("TimeLimited", {"restore_counters"}, None),
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


@pytest.mark.parametrize("name", ["HashKey", "Unpicklable", "LocalSnapshot"])
def test_a_state_bound_to_its_process_is_found(name: str, failed: Callable[..., set[str]]) -> None:
    """What another process cannot use breaks the rule of the other process."""
    assert "restore_in_process" in failed(name, spawn=True)
