"""The made-up shop."""

from prover.envs.webshop.generated import catalogue
from prover.envs.webshop.goal import synthetic_goals
from prover.envs.webshop.reward import reward


def test_same_everywhere() -> None:
    """The same seed makes the same shop, another makes another."""
    assert catalogue() == catalogue()
    assert catalogue(1) != catalogue()


def test_products() -> None:
    """Asins are distinct capitals; nothing breaks an action; there is something to choose for most."""
    products, _ = catalogue()
    assert len({product.asin for product in products}) == len(products) == 160
    for product in products:
        assert product.asin == product.asin.upper()
        assert len(product.asin) == 10
        values = [value for _, values in product.options for value in values]
        assert len(set(values)) == len(values) > 1
        assert not any(sign in value for value in values for sign in "[]\n")
        assert values == [value.lower() for value in values]
        assert set(product.nouns) <= set(f"{product.title} {product.query}".lower().replace(",", "").split())


def test_goals_can_be_reached_by_value() -> None:
    """Buying the wanted product with the wanted options is worth 1 where values are compared."""
    products, instructions = catalogue()
    by_asin = {product.asin: product for product in products}
    goals = synthetic_goals(products, instructions)
    assert len({goal.asin for goal in goals}) == 80
    assert {
        reward(goal, by_asin[goal.asin], by_asin[goal.asin], dict(goal.options), "value_match").total for goal in goals
    } == {1.0}
