"""Goals."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from prover.envs.webshop.data import ShopFolder
from prover.envs.webshop.goal import NO_LIMIT, human_goals, price_limit, synthetic_goals
from prover.envs.webshop.product import Product

INSTRUCTIONS = {"A000000001": {"instruction": "Find me sun proof hats", "instruction_attributes": ["sun proof"]}}


def test_every_combination_of_options(hat: Product, cap: Product) -> None:
    """One goal each, for products with an instruction; the text names options in the order of their names."""
    hat = replace(hat, options=hat.options[::-1])
    found = synthetic_goals([cap, hat], {**INSTRUCTIONS, "A000000002": {"attributes": [], "instruction": None}})
    limit, text = price_limit(15.0, hat.asin)
    assert [goal.options for goal in found] == [
        (("color", colour), ("size", size)) for colour in ("rusty", "red") for size in ("small", "large")
    ]
    assert found[3].text == f"Find me sun proof hats with color: red, and size: large{text}"
    assert {goal.price_upper for goal in found} == {limit}
    assert {goal.asin for goal in found} == {hat.asin}
    assert all(goal.id.startswith(f"{hat.asin}-") and goal.attributes == ("sun proof",) for goal in found)


def test_ids_are_stable(hat: Product) -> None:
    """An id depends on the product and the options alone; a repeated goal has an id of its own."""
    one = synthetic_goals([hat], INSTRUCTIONS)
    two = synthetic_goals([replace(hat, title="Other", price=300.0, options=hat.options[::-1])], INSTRUCTIONS)
    assert [goal.id for goal in one] == [goal.id for goal in two]
    (first, second) = synthetic_goals([replace(hat, options=(("size", ("5", "5")),))], INSTRUCTIONS)
    assert second.id == f"{first.id}-2"
    assert replace(second, id=first.id) == first


@pytest.mark.parametrize(
    ("price", "expected"),
    [(0.5, {20.0, 30.0, 40.0}), (10.0, {30.0, 40.0, 50.0}), (965.0, {980.0, 990.0}), (975.0, {990.0})],
)
def test_price_limits(price: float, expected: set[float]) -> None:
    """The limit is one of the next four multiples of 10 but the lowest, the highest most often."""
    drawn = Counter(price_limit(price, str(key))[0] for key in range(600))
    assert set(drawn) == expected
    if len(expected) == 3:  # in one, two and three of six pairs
        low, middle, high = (drawn[limit] for limit in sorted(expected))
        assert 70 < low < 130 < middle < 250 < high < 350
    assert price_limit(price, "7")[1] == f", and price lower than {price_limit(price, '7')[0]:.2f} dollars"


@pytest.mark.parametrize("price", [980.0, 990.0, 4000.0])
def test_no_price_limit(price: float) -> None:
    """Where fewer than two multiples are left there is no limit."""
    assert price_limit(price, "x") == (NO_LIMIT, "")


def test_human_goals(hat: Product) -> None:
    """Instructions of people keep their words; those without attributes are left out; options have values only."""
    entry = {"instruction": "i want a hat.", "instruction_attributes": ["sun proof"], "instruction_options": ["red"]}
    (found,) = human_goals([hat], {hat.asin: [{**entry, "instruction_attributes": []}, entry], "none": [entry]})
    assert found.text.startswith("i want a hat, and price lower than ")
    assert (found.attributes, found.options) == (("sun proof",), (("", "red"),))


def test_public_goals(folder: Path, public: dict[str, Product]) -> None:
    """WebShop's 1000 products have 6910 synthetic goals, 15 without a price limit, and 13 of people."""
    products = tuple(public.values())
    found = ShopFolder(folder).goals(products, "synthetic")
    assert len(found) == len({goal.id for goal in found}) == 6910
    assert len({goal.asin for goal in found}) == 415
    assert Counter(len(goal.options) for goal in found) == {0: 185, 1: 538, 2: 4729, 3: 1458}
    assert sum(goal.price_upper == NO_LIMIT for goal in found) == 15
    assert len(ShopFolder(folder).goals(products, "human")) == 13
