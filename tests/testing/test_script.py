"""Tests of scripts."""

import pytest

from prover.errors import ConfigError
from prover.testing.script import item_of, said


def test_items_come_in_order_and_run_out_unless_repeated() -> None:
    """Item 2 of two is an error, or the first one again."""
    assert [item_of("ab", number, repeat=True, asks="groups") for number in range(5)] == list("ababa")
    assert item_of("ab", 1, repeat=False, asks="groups") == "b"
    with pytest.raises(ConfigError, match="expected at most 2 groups"):
        item_of("ab", 2, repeat=False, asks="groups")
    with pytest.raises(ConfigError, match="expected at most 0 requests"):
        item_of((), 0, repeat=True, asks="requests")


def test_callables_are_asked_and_exceptions_raised() -> None:
    """Whatever else is answered as it is."""
    assert said("a", 1) == "a"
    assert said(lambda asked: asked + 1, 1) == 2
    with pytest.raises(OSError, match="down"):
        said(OSError("down"), 1)
    with pytest.raises(OSError, match="down"):
        said(lambda asked: OSError("down"), 1)
