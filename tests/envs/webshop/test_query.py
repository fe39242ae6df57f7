"""Searches that a goal's text suggests."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.envs.webshop.catalogue import open_shop
from prover.envs.webshop.query import proposals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Find me mugs", ["mugs"]),
        ("Find me oil free tops, tees & blouses", ["oil free tops, tees & blouses", "tees & blouses"]),
        (
            "Find me wide brim hats for men with straw with color: red, and size: 7, and price lower than 2.00 dollars",
            [
                "wide brim hats for men with straw red 7",
                "wide brim hats for men with straw",
                "wide brim hats men straw",
                "brim hats",
            ],
        ),
        (
            "i need a long clip-in hair extension which is natural looking",
            [
                "long clip-in hair extension which is natural looking",
                "long clip-in hair extension natural looking",
                "hair extension",
            ],
        ),
        ("I want [two] hats.", ["two hats"]),
        ("", []),
    ],
)
def test_proposals(text: str, expected: list[str]) -> None:
    """From specific to short, without price, names of options and brackets, each once."""
    assert proposals(text) == expected


@given(st.text())
def test_any_text(text: str) -> None:
    """Every proposal can be written as an action."""
    for query in proposals(text):
        assert query
        assert query == " ".join(query.split())
        assert not {"[", "]", "\n"} & set(query)


def test_wanted_products_are_within_reach(folder: Path) -> None:
    """Of WebShop's 6910 goals all but 31 have their product among the 50 that one of their searches finds."""
    shop, _ = open_shop(str(folder))
    hidden = 0
    for goal in shop.goals.values():
        hidden += not any(goal.asin in shop.search(query) for query in proposals(goal.text))
    assert hidden == 31
