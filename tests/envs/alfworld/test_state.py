"""States as values."""

import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

from prover.envs.alfworld.facts import Facts
from prover.envs.alfworld.game import Game
from prover.envs.alfworld.problem import Problem
from prover.envs.alfworld.state import State
from prover.errors import DataError


def test_initial_state(kitchen: Callable[..., Game]) -> None:
    """The initial facts are all in the state, as sorted indices."""
    game = kitchen(
        extra="(isCool Apple_bar_2) (opened Fridge_bar_1) (holds agent1 Pen_bar_1) (isToggled DeskLamp_bar_1)"
    )
    ids = [item.id for item in game.objects]
    rooms = [receptacle.id for receptacle in game.receptacles]
    state = game.initial
    assert state.place == 0
    assert state.held == ids.index("pen_bar_1")
    assert state.cool == {ids.index("apple_bar_2")}
    assert state.used == {ids.index("desklamp_bar_1")}
    assert state.opened == {rooms.index("fridge_bar_1")}
    assert state.contents[rooms.index("cabinet_bar_1")] == tuple(
        ids.index(id_) for id_ in ("desklamp_bar_1", "mug_bar_1", "spoon_bar_1")
    )
    assert state.lying[5] == tuple(ids.index(id_) for id_ in ("papertowelroll_bar_1", "tomato_bar_1"))
    assert state.lying[6] == ()


def test_values() -> None:
    """Equal states are equal, hash alike and survive pickling, however their sets were filled."""
    parts = {"place": 1, "held": None, "contents": ((1,),), "lying": ((),)}
    one = State(opened=frozenset([1, 9, 17]), **parts)
    two = State(opened=frozenset([17, 9, 1]), **parts)
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == two
    assert one.canonical() == two.canonical() == (1, None, (1, 9, 17), ((1,),), ((),), (), (), (), (), (), ())


def test_canonical_is_the_same_in_every_process() -> None:
    """The canonical form has no trace of the hash seed."""
    code = (
        "from prover.envs.alfworld.state import State\n"
        "taken = frozenset((i, i * 7 % 5) for i in range(50))\n"
        "print(State(0, None, frozenset(range(0, 900, 77)), (), (), taken).canonical())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_agent_has_to_be_somewhere() -> None:
    """Without a place for the agent there is no state."""
    with pytest.raises(DataError, match="got 0 places and 0 objects"):
        State.initial(Facts(Problem(entities={}, facts={}, goal=())))
