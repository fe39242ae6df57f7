"""What never changes about objects and receptacles."""

from collections.abc import Callable

import pytest

from prover.envs.alfworld.game import Game
from prover.errors import DataError


def test_item(kitchen: Callable[..., Game]) -> None:
    """An item has its name, type and abilities, and knows what was in it, itself left out."""
    items = {item.id: item for item in kitchen().objects}
    mug, lamp, roll = items["mug_bar_1"], items["desklamp_bar_1"], items["papertowelroll_bar_1"]
    assert (mug.name, mug.kind, lamp.can) == ("mug 1", "mug", {"toggleable"})
    assert mug.can == {"pickupable", "cleanable", "heatable", "coolable"}
    assert mug.holds == (list(items).index("spoon_bar_1"),)
    assert roll.holds is None


def test_item_without_a_type(kitchen_text: str) -> None:
    """An object of no type can be taken but never put down, as in two of ALFWorld's games."""
    game = Game.parse(kitchen_text.replace("(objectType Pen_bar_1 PenType)", ""), "x")
    pen = game.object_named("pen 1")
    assert pen is not None
    assert game.objects[pen].kind == ""
    state, _ = game.step(game.initial, "go to shelf 1")
    state, observation = game.step(state, "take pen 1 from shelf 1")
    assert observation == "You pick up the pen 1 from the shelf 1."
    assert "move pen 1 to shelf 1" not in game.admissible(state)


def test_receptacle(kitchen: Callable[..., Game]) -> None:
    """A receptacle has its name, type, place and what it accepts."""
    receptacles = {receptacle.id: receptacle for receptacle in kitchen().receptacles}
    fridge, basin = receptacles["fridge_bar_1"], receptacles["sink_bar_1_bar_sinkbasin"]
    assert (fridge.name, fridge.kind, fridge.openable, fridge.place) == ("fridge 1", "fridge", True, 1)
    assert fridge.accepts == {"apple", "mug", "tomato"}
    assert (basin.name, basin.kind, basin.openable) == ("sinkbasin 1", "sinkbasin", False)


def test_receptacle_without_a_place(kitchen: Callable[..., Game], kitchen_text: str) -> None:
    """A receptacle that stands nowhere is an error."""
    with pytest.raises(DataError, match="expected type and place of fridge_bar_1, got fridgetype and None"):
        Game.parse(kitchen_text.replace("(receptacleAtLocation Fridge_bar_1 loc_bar_1)", ""), "x")
