"""Sessions."""

import json
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from prover.envs.webshop.session import Session
from prover.errors import SnapshotError

DEEP = Session(
    task="A000000001-0123456789",
    page="description",
    query="red hat",
    number=3,
    asin="A000000001",
    options=(("color", "red"), ("size", "large")),
    visited=("A000000001", "A000000002"),
    invalid=True,
)


def test_json() -> None:
    """A session goes through JSON in less than 1000 bytes."""
    text = json.dumps(DEEP.to_json())
    assert Session.from_json(json.loads(text)) == DEEP
    assert len(text) < 1000


@pytest.mark.parametrize("value", [{}, {"options": 3}, {"task": "t", "options": [], "visited": [], "money": 5}])
def test_no_session(value: dict[str, Any]) -> None:
    """Anything else is refused."""
    with pytest.raises(SnapshotError, match="expected a session"):
        Session.from_json(value)


def test_frozen() -> None:
    """A session is a value."""
    with pytest.raises(FrozenInstanceError):
        DEEP.page = "item"  # type: ignore[misc]  # the misuse
    assert hash(DEEP) == hash(Session.from_json(DEEP.to_json()))


def test_key() -> None:
    """The key is of the state: not of the last action's sense, and of visited products only where they show."""
    other = Session.from_json({**DEEP.to_json(), "visited": [], "invalid": False})
    assert DEEP.key(visited=False) == other.key(visited=False)
    assert DEEP.key(visited=True) != other.key(visited=True)
    assert Session(task="t").key(visited=False) != Session(task="u").key(visited=False)


def test_address() -> None:
    """Options are written as JSON."""
    assert DEEP.address == 'A000000001/red+hat/3/{"color": "red", "size": "large"}'
