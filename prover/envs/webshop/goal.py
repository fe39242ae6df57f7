"""Goals: what a shopper is asked to buy, with ids and price limits that never change.

WebShop draws price limits from an unseeded generator, so that its goals differ from one start to the next. Here the
limit follows from the goal's own id, with the probabilities of the original.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product as combinations
from typing import Any

from prover.envs.webshop.product import Product

NO_LIMIT = 1_000_000.0
"""Price limit of goals whose text names none: their product costs more than the dearest limit but one."""

_LIMITS = tuple(10.0 * step for step in range(1, 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One task."""

    id: str
    """Stable: the product's asin and a hash of what else was asked for."""
    asin: str
    """The product that it was made from."""
    text: str
    """What the shopper is told."""
    attributes: tuple[str, ...]
    """Attributes to look for; hidden."""
    options: tuple[tuple[str, str], ...]
    """(name, value) to choose; hidden. Human goals have values only, with empty names."""
    price_upper: float
    """Highest price in dollars."""


def synthetic_goals(products: Iterable[Product], instructions: Mapping[str, Any]) -> tuple[Goal, ...]:
    """A goal for every combination of options of every product that has an instruction, in WebShop's order.

    Args:
        products: in the order of their file.
        instructions: asin -> entry of ``items_ins_v2.json`` with ``instruction`` and ``instruction_attributes``.
    """
    return _numbered(_synthetic(products, instructions))


def human_goals(
    products: Iterable[Product], instructions: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[Goal, ...]:
    """The goals that people wrote; those without attributes are left out, as WebShop does.

    Args:
        products: in the order of their file.
        instructions: asin -> entries of ``items_human_ins.json``.
    """
    return _numbered(_human(products, instructions))


def price_limit(price: float, key: str) -> tuple[float, str]:
    """The highest price and how the goal's text says it: the larger of two of the next four multiples of 10.

    Args:
        price: what the product costs.
        key: decides which.

    >>> price_limit(877.8, "B06Y3VLDFB")[1].startswith(", and price lower than 9")
    True
    """
    limits = [limit for limit in _LIMITS if limit > price][:4]
    if len(limits) < 2:
        return NO_LIMIT, ""
    # The larger of two different ones is the j-th (from 0) in j of all pairs.
    ways = [limit for place, limit in enumerate(limits) for _ in range(place)]
    limit = ways[int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") % len(ways)]
    return limit, f", and price lower than {limit:.2f} dollars"


def _synthetic(products: Iterable[Product], instructions: Mapping[str, Any]) -> Iterator[Goal]:
    for product in products:
        entry = instructions.get(product.asin, {})
        if not entry.get("instruction") or not entry.get("instruction_attributes"):
            continue
        limit, limit_text = price_limit(product.price, product.asin)
        named = sorted(product.options)
        for values in combinations(*(values for _, values in named)):
            options = tuple((name, value) for (name, _), value in zip(named, values, strict=True))
            listed = ", and ".join(f"{name}: {value}" for name, value in options)
            yield Goal(
                id=_name(product.asin, options),
                asin=product.asin,
                text=f"{entry['instruction']}{' with ' if listed else ''}{listed}{limit_text}",
                attributes=tuple(entry["instruction_attributes"]),
                options=options,
                price_upper=limit,
            )


def _human(products: Iterable[Product], instructions: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Goal]:
    for product in products:
        for entry in instructions.get(product.asin, ()):
            if not entry["instruction_attributes"]:
                continue
            name = _name(product.asin, [entry["instruction"], *entry["instruction_options"]])
            limit, limit_text = price_limit(product.price, name)
            yield Goal(
                id=name,
                asin=product.asin,
                text=entry["instruction"].strip(".") + limit_text,
                attributes=tuple(entry["instruction_attributes"]),
                options=tuple(("", value) for value in entry["instruction_options"]),
                price_upper=limit,
            )


def _name(asin: str, what: Any) -> str:
    return f"{asin}-{blake2b(json.dumps(what).encode(), digest_size=5).hexdigest()}"


def _numbered(goals: Iterable[Goal]) -> tuple[Goal, ...]:
    """The goals with distinct ids: a product that lists a value twice has the same goal twice."""
    met: Counter[str] = Counter()
    found = []
    for goal in goals:
        met[goal.id] += 1
        times = met[goal.id]
        found.append(goal if times == 1 else replace(goal, id=f"{goal.id}-{times}"))
    return tuple(found)
