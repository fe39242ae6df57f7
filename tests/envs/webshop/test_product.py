"""Products from raw rows."""

from typing import Any

import pytest

from prover.envs.webshop.product import UNKNOWN_ATTRIBUTE, Product, from_processed, from_raw

RAW: dict[str, Any] = {
    **{
        "asin": "B000000001",
        "name": "Steel Mug",
        "full_description": "A Mug.",
        "small_description": ["Holds/Tea", "b"],
    },
    **{
        "pricing": "$16.99 - $1,026.99",
        "category": "garden",
        "query": " Mugs ",
        "product_category": "Home \u203a Mugs",
    },
    "customization_options": {"Color": [{"value": " Red/Blue ", "image": None}, {"value": "Green"}], "Size": None},
}


def test_from_raw() -> None:
    """Values are in lower case with spaced slashes, the price is the lower end, options without values are left out."""
    product = from_raw(RAW, {"B000000001": {"attributes": ["leak proof"]}}, {"B000000001": ["mug", "steel"]})
    assert product == Product(
        asin="B000000001",
        category="garden",
        query="mugs",
        product_category="Home \u203a Mugs",
        title="Steel Mug",
        description="A Mug.",
        bullets=("Holds/Tea", "b"),
        price=16.99,
        price_text="$16.99 to $1026.99",
        options=(("color", ("red | blue", "green")),),
        attributes=("leak proof",),
        nouns=("mug", "steel"),
    )
    assert product.search_text == "steel mug a mug. holds/tea color: red | blue, green"
    assert product.lower_texts == ("steel mug", "holds/tea b", "a mug.")


@pytest.mark.parametrize(
    ("pricing", "price", "text"), [(None, 100.0, "$100.0"), ("", 100.0, "$100.0"), ("$5", 5.0, "$5.0")]
)
def test_prices(pricing: str | None, price: float, text: str) -> None:
    """A missing price is 100 dollars."""
    product = from_raw({**RAW, "pricing": pricing, "small_description": "one"}, {}, {})
    assert (product.price, product.price_text, product.bullets) == (price, text, ("one",))
    assert product.attributes == (UNKNOWN_ATTRIBUTE,)
    assert product.nouns == ()


def test_from_processed() -> None:
    """A row whose fields are derived already gives the same product."""
    row = {
        **{"asin": "B000000001", "category": "garden", "query": "mugs", "product_category": "Home \u203a Mugs"},
        **{"title": "Steel Mug", "description": "A Mug.", "bullet_points": ["Holds/Tea", "b"]},
        **{"pricing": [16.99, 1026.99], "price_text": "$16.99 to $1026.99", "attributes": ["leak proof"]},
        "options": {"color": ["red | blue", "green"]},
    }
    raw = from_raw(RAW, {"B000000001": {"attributes": ["leak proof"]}}, {})
    assert from_processed(row, {}) == raw


def test_option_of(hat: Product) -> None:
    """A value belongs to the last option that has it."""
    assert hat.option_of("red") == "color"
    both = from_raw(
        {**RAW, "customization_options": {"A": [{"value": "x"}], "B": [{"value": "x"}], "C": [{"value": "y"}]}}, {}, {}
    )
    assert both.option_of("x") == "b"
