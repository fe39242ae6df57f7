"""What a purchase is worth, by WebShop's formula.

``reward = r_type * (attributes found + options matched + price fits) / (attributes + options + 1)`` of the goal.
Strings match from a ``token_set_ratio`` of 86 on (``thefuzz``, here with ``rapidfuzz``).

WebShop reads a chosen value that contains a colour word as that word, but compares it with the (name, value) pair of a
synthetic goal as it stands. So a goal with a colour word inside another word ("rectangular" holds "tan") is never fully
matched, whatever is bought. ``value_match`` compares values with values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product as combinations
from typing import Any, Literal

from rapidfuzz import fuzz, utils

from prover.envs.webshop.goal import Goal
from prover.envs.webshop.product import STEP, Product

Variant = Literal["original", "value_match"]
"""How options are compared."""

VARIANTS: tuple[Variant, ...] = ("original", "value_match")

_THRESHOLD = 85
_LATIN_1 = dict.fromkeys(range(128, 256))  # thefuzz drops these characters, and these only

COLOURS = (
    *("alabaster", "apricot", "aqua", "ash", "asphalt", "azure", "banana", "beige", "black", "blue", "blush"),
    *("bordeaux", "bronze", "brown", "burgundy", "camel", "camo", "caramel", "champagne", "charcoal", "cheetah"),
    *("chestnut", "chocolate", "christmas", "coffee", "cognac", "copper", "coral", "cranberry", "cream", "crystal"),
    *("dark", "denim", "eggplant", "elephant", "espresso", "fuchsia", "gold", "granite", "grape", "graphite"),
    *("grass", "gray", "green", "grey", "heather", "indigo", "ivory", "ivy", "khaki", "lavender", "lemon", "leopard"),
    *("light", "lilac", "lime", "magenta", "maroon", "mauve", "merlot", "midnight", "mint", "mocha", "multicolor"),
    *("mushroom", "mustard", "natural", "navy", "nude", "olive", "orange", "peach", "pewter", "pink", "plum"),
    *("purple", "rainbow", "red", "rose", "royal", "rust", "sand", "sapphire", "seashell", "silver", "skull"),
    *("slate", "steel", "stone", "stonewash", "sunflower", "tan", "taupe", "teal", "tiger", "turquoise", "violet"),
    *("walnut", "wheat", "white", "wine", "yellow"),
)
"""Words that stand for a whole option that contains them; the first one wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """The reward of a purchase and its parts."""

    total: float
    """0 to 1."""
    r_type: float
    """Whether it is the right kind of thing: 1, 0.5, 0.1 or 0."""
    query_match: bool
    category_match: bool
    title_score: float
    """Share of the nouns of the goal's title that are in the title of what was bought."""
    r_att: float
    """Share of the goal's attributes that were found."""
    r_option: float | None
    """Share of the goal's options that were matched; None if it has none."""
    r_price: bool
    """Whether the price is low enough."""
    weights: tuple[float, float, float]
    """Weights of attributes, options and price in the total."""

    def parts(self) -> dict[str, Any]:
        """The parts under the names that WebShop gives them; ``r_option`` is left out where there are no options."""
        found: dict[str, Any] = {
            **{"r_type": self.r_type, "r_att": self.r_att, "w_att": self.weights[0]},
            **{"query_match": self.query_match, "category_match": self.category_match},
            "title_score": self.title_score,
        }
        if self.r_option is not None:
            found |= {"r_option": self.r_option, "w_option": self.weights[1]}
        return found | {"r_price": self.r_price, "w_price": self.weights[2]}


def reward(
    goal: Goal, wanted: Product, bought: Product, options: Mapping[str, str], variant: Variant = "original"
) -> Reward:
    """The reward for buying a product.

    Args:
        goal: what was asked for.
        wanted: the product of the goal.
        bought: what was bought.
        options: name -> value as chosen.
        variant: how options are compared.
    """
    r_type, query_match, category_match, title_score = type_reward(wanted, bought)
    attributes = sum(attribute_found(attribute, bought) for attribute in goal.attributes)
    matched = sum(
        any(option_matches(name, value, chosen, variant) for chosen in options.values()) for name, value in goal.options
    )
    r_price = bought.price <= goal.price_upper
    n = len(goal.attributes) + len(goal.options) + 1
    return Reward(
        total=(attributes + matched + r_price) / n * r_type,
        r_type=r_type,
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
        r_att=attributes / len(goal.attributes),
        r_option=matched / len(goal.options) if goal.options else None,
        r_price=r_price,
        weights=(len(goal.attributes) / n, len(goal.options) / n, 1 / n),
    )


def type_reward(wanted: Product, bought: Product) -> tuple[float, bool, bool, float]:
    """Whether two products are of one kind: (r_type, query_match, category_match, title_score).

    A title without nouns scores 0.2. The denominator counts repeated nouns, so that even the wanted product may score
    below 1.
    """
    query_match = bought.query == wanted.query
    category_match = len(_categories(bought) & _categories(wanted)) >= 2
    shared = len(set(bought.nouns) & set(wanted.nouns))
    title_score = shared / len(wanted.nouns) if wanted.nouns else 0.2
    if title_score == 0:
        r_type = 0.0
    elif title_score < 0.1:
        r_type = 0.1
    else:
        r_type = 1.0 if query_match or category_match or title_score > 0.2 else 0.5
    return r_type, query_match, category_match, title_score


def attribute_found(attribute: str, bought: Product) -> bool:
    """Whether a product has an attribute: among its own, or in its texts."""
    return any(_alike(own, attribute) for own in bought.attributes) or any(
        attribute in text for text in bought.lower_texts
    )


@lru_cache(maxsize=1 << 16)
def option_matches(name: str, value: str, chosen: str, variant: Variant = "original") -> bool:
    """Whether a chosen value is what the goal's option asks for.

    Args:
        name: the option of the goal; empty where the goal names a value only, as human goals do.
        value: the value of the goal.
        chosen: the value that was chosen.
        variant: how options are compared.

    >>> [option_matches("shape", "rectangular", "rectangular", variant) for variant in VARIANTS]
    [False, True]
    """
    if variant == "value_match" or not name:
        asked = colour_of(value)
    else:
        asked = next((colour for colour in COLOURS if colour in (name, value)), str((name, value)))
    return _alike(colour_of(chosen), asked)


def colour_of(value: str) -> str:
    """The first colour word that occurs in a value, or else the value itself.

    >>> colour_of("rose gold"), colour_of("standard"), colour_of("medium")
    ('gold', 'tan', 'medium')
    """
    return next((colour for colour in COLOURS if colour in value), value)


def best_options(goal: Goal, bought: Product, variant: Variant = "original") -> dict[str, str]:
    """Options of a product that match as many of the goal's options as can be: name -> value.

    Among equals those win that are the goal's own, word by word. Options that match nothing are left out.
    """
    asked = dict(goal.options)
    choices = []
    for name, values in bought.options:
        ways: dict[frozenset[int], str] = {frozenset(): ""}
        clickable = [value for value in values if bought.option_of(value) == name]
        for value in sorted(clickable, key=lambda value: asked.get(name) != value):
            hits = frozenset(
                place for place, (key, wish) in enumerate(goal.options) if option_matches(key, wish, value, variant)
            )
            if asked.get(name) == value and frozenset() in ways:
                del ways[frozenset()]  # the goal's own value is chosen even where nothing is gained by it
            ways.setdefault(hits, value)
        choices.append([(name, value, hits) for hits, value in ways.items()])
    best = max(combinations(*choices), key=lambda chosen: len(frozenset().union(*(hits for _, _, hits in chosen))))
    return {name: value for name, value, _ in best if value}


@lru_cache(maxsize=1 << 16)
def _alike(one: str, other: str) -> bool:
    return round(fuzz.token_set_ratio(_plain(one), _plain(other))) > _THRESHOLD


def _plain(text: str) -> str:
    return utils.default_process(text.translate(_LATIN_1))


@lru_cache(maxsize=1 << 12)
def _path(product_category: str) -> frozenset[str]:
    return frozenset(part.strip() for part in product_category.split(STEP))


def _categories(product: Product) -> frozenset[str]:
    return _path(product.product_category)
