"""Rewards."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from prover.envs.webshop.goal import Goal
from prover.envs.webshop.product import Product
from prover.envs.webshop.reward import (
    COLOURS,
    Variant,
    attribute_found,
    best_options,
    colour_of,
    option_matches,
    reward,
    type_reward,
)

RIGHT = {"color": "red", "size": "large"}


def test_the_right_purchase(goal: Goal, hat: Product) -> None:
    """Attribute, both options and price: 4 of 4."""
    found = reward(goal, hat, hat, RIGHT)
    assert found.total == 1.0
    assert found.parts() == {
        **{"r_type": 1.0, "r_att": 1.0, "w_att": 0.25, "query_match": True, "category_match": True},
        **{"title_score": 1.0, "r_option": 1.0, "w_option": 0.5, "r_price": True, "w_price": 0.25},
    }


@pytest.mark.parametrize(
    ("options", "price", "expected"),
    [
        ({}, 15.0, 0.5),
        ({"color": "red"}, 15.0, 0.75),
        (RIGHT, 20.0, 1.0),
        (RIGHT, 20.01, 0.75),
        ({"size": "x"}, 30.0, 0.25),
    ],
)
def test_parts_add_up(goal: Goal, hat: Product, options: dict[str, str], price: float, expected: float) -> None:
    """Each option and the price are a quarter; the limit itself is low enough."""
    assert reward(goal, hat, replace(hat, price=price), options).total == expected


def test_another_kind_of_thing(goal: Goal, hat: Product, cap: Product) -> None:
    """No noun in common gives nothing, whatever else fits."""
    found = reward(goal, hat, replace(cap, query="hats", attributes=("sun proof",)), RIGHT)
    assert (found.r_type, found.r_att, found.total) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("nouns", "query", "path", "expected"),
    [
        (("straw",), "hats", "x", (1.0, True, False, 0.5)),
        (("straw",), "other", "x", (1.0, False, False, 0.5)),
        ((), "hats", "Garden \u203a Clothing", (0.0, True, True, 0.0)),
    ],
)
def test_type(
    hat: Product, nouns: tuple[str, ...], query: str, path: str, expected: tuple[float, bool, bool, float]
) -> None:
    """A title score above 0.2 makes a match by itself, and none overrides all matches."""
    assert type_reward(hat, replace(hat, nouns=nouns, query=query, product_category=path)) == expected


@pytest.mark.parametrize(
    ("shared", "query", "r_type"),
    [(0, "hats", 0.0), (1, "hats", 0.1), (2, "hats", 1.0), (2, "other", 0.5), (4, "other", 0.5), (5, "other", 1.0)],
)
def test_type_thresholds(hat: Product, shared: int, query: str, r_type: float) -> None:
    """Of twenty nouns: 0.05 is below 0.1, 0.1 is not; 0.2 is no match by itself, 0.25 is."""
    nouns = tuple(f"n{i}" for i in range(20))
    bought = replace(hat, nouns=nouns[:shared], query=query, product_category="elsewhere")
    assert type_reward(replace(hat, nouns=nouns), bought)[0] == r_type


def test_titles_without_nouns(hat: Product) -> None:
    """They score 0.2; repeated nouns count in the denominator."""
    assert type_reward(replace(hat, nouns=()), hat)[3] == 0.2
    assert type_reward(replace(hat, nouns=("hat", "hat", "hat")), hat)[3] == pytest.approx(1 / 3)


def test_attributes(hat: Product) -> None:
    """Found among the attributes from 86 on, or word by word in title, features or description."""
    washable = replace(hat, attributes=("machine washable",))
    assert attribute_found("machine wash", washable)
    assert not attribute_found("wash", replace(hat, attributes=("washable",)))
    assert attribute_found("straw h", hat)
    assert attribute_found("keeps off", hat)
    assert not attribute_found("brim keeps", hat)
    assert attribute_found("hat of", hat)


def test_colours() -> None:
    """There are 102, in alphabetical order; the first that occurs stands for the whole."""
    assert len(COLOURS) == 102
    assert sorted(COLOURS) == list(COLOURS)
    values = ["rose gold", "light blue", "standard", "rectangular", "washed denim", "stainless steel", "medium"]
    assert [colour_of(value) for value in values] == ["gold", "blue", "tan", "tan", "ash", "steel", "medium"]


@pytest.mark.parametrize(
    ("name", "value", "chosen", "variant", "expected"),
    [
        ("color", "red", "red", "original", True),
        ("color", "red", "dark red", "original", False),
        ("color", "light blue", "light blue", "original", True),
        ("color", "rusty", "rusty", "original", False),
        ("color", "rusty", "rusty", "value_match", True),
        ("color", "light blue", "navy blue", "value_match", True),
        ("size", "5", "5", "original", True),
        ("size", "5", "6", "original", False),
        ("", "light blue", "blue", "original", True),
        ("color", "caf\u00e9", "caf", "value_match", True),
    ],
)
def test_options(name: str, value: str, chosen: str, variant: Variant, expected: bool) -> None:
    """The original compares with the pair, in which ``rusty`` is one word, and ``rust`` none.

    ``dark red`` is read as ``dark``, the first colour word in it.
    """
    assert option_matches(name, value, chosen, variant) is expected


def test_best_options(goal: Goal, hat: Product) -> None:
    """The goal's own values where they match; what a goal cannot have is not chosen at the cost of another."""
    assert best_options(goal, hat) == RIGHT
    rusty = replace(goal, options=(("color", "rusty"), ("size", "large")))
    assert reward(rusty, hat, hat, best_options(rusty, hat)).total == 0.75
    assert best_options(rusty, hat) == {"color": "rusty", "size": "large"}
    assert reward(rusty, hat, hat, best_options(rusty, hat, "value_match"), "value_match").total == 1.0
    assert best_options(goal, replace(hat, options=())) == {}


def test_recorded_rewards(recorded: Callable[[str], list[Any]], public: dict[str, Product]) -> None:
    """All recorded purchases have WebShop's reward and parts, to the last bit."""
    cases = recorded("reward_vectors.jsonl.gz")
    assert len(cases) >= 150
    for case in cases:
        options = case["goal"]["goal_options"]
        pairs = options.items() if isinstance(options, dict) else [("", value) for value in options]
        asked = Goal(
            id="",
            asin=case["goal"]["asin"],
            text="",
            attributes=tuple(case["goal"]["attributes"]),
            options=tuple(pairs),
            price_upper=case["goal"]["price_upper"],
        )
        bought = replace(public[case["asin"]], price=case["price"])
        found = reward(asked, public[asked.asin], bought, case["options"])
        assert (found.total, found.parts()) == (case["reward"], case["info"])
