"""States."""

import json
from dataclasses import replace
from typing import Any

import pytest

from prover.envs.searchqa.episode import Episode, Move
from prover.errors import SnapshotError

SEARCH = Move(kind="search", text="ada", passages=("1", "2"))
STATE = Episode(task="q", observation="seen", moves=(SEARCH,), names=("Ada",), found=("Ada",))


def test_properties() -> None:
    """Searches are counted; an answer ends the episode."""
    over = replace(STATE, moves=(*STATE.moves, Move(kind="answer", text="x")))
    assert (STATE.searches, STATE.done, STATE.answer) == (1, False, None)
    assert (over.searches, over.done, over.answer) == (1, True, "x")
    assert Episode(task="q", observation="").done is False


def test_key() -> None:
    """It tells states apart, and forgets what an action that meant nothing left behind."""
    assert STATE.key() == replace(STATE, observation="refused", reason="empty").key()
    others = [
        replace(STATE, task="r"),
        replace(STATE, moves=()),
        replace(STATE, moves=(replace(SEARCH, text="Ada"),)),
        replace(STATE, moves=(replace(SEARCH, passages=("1",)),)),
        replace(STATE, moves=(replace(SEARCH, kind="answer"),)),
    ]
    assert len({state.key() for state in [STATE, *others]}) == 6


def test_json() -> None:
    """A state comes back equal after a way through JSON."""
    assert Episode.from_json(json.loads(json.dumps(STATE.to_json()))) == STATE


@pytest.mark.parametrize(
    "value", [{}, {"task": "q"}, {**STATE.to_json(), "x": 1}, {**STATE.to_json(), "moves": [{}]}, 7]
)
def test_damaged_json(value: Any) -> None:
    """What is no state is refused."""
    with pytest.raises(SnapshotError, match=r"expected a state as Episode\.to_json gives it"):
        Episode.from_json(value)
