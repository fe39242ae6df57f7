"""Product: what the shop sells, as WebShop derives it from its raw rows."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

MISSING_PRICE = 100.0
"""Price of a product that has none."""
STEP = "\u203a"
"""Between the parts of a path of categories."""
UNKNOWN_ATTRIBUTE = "DUMMY_ATTR"
"""What WebShop puts where the attributes of a product are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product. Nothing of it ever changes."""

    asin: str
    """Its id, 10 capital letters and digits."""
    category: str
    """One of few, e.g. ``beauty``."""
    query: str
    """The search by which it was found, e.g. ``console tables``; lower case."""
    product_category: str
    """Path of categories, parted by ``STEP``."""
    title: str
    description: str
    bullets: tuple[str, ...]
    """The features, one each."""
    price: float
    """What it costs: the lower end where there is a range."""
    price_text: str
    """As it is shown, e.g. ``$16.99 to $26.99``."""
    options: tuple[tuple[str, tuple[str, ...]], ...]
    """(name, values), all in lower case."""
    attributes: tuple[str, ...]
    """What is known about it, hidden from the shopper, e.g. ``machine wash``."""
    nouns: tuple[str, ...] = ()
    """Nouns of the title in lower case, repeated as in the title."""

    def option_of(self, value: str) -> str:
        """Name of the option that a click on a value sets: the last one that has it."""
        return [name for name, values in self.options if value in values][-1]

    @property
    def search_text(self) -> str:
        """What the search engine knows of it: title, description, first feature and options, in lower case."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options)
        return " ".join((self.title, self.description, self.bullets[0] if self.bullets else "", options)).lower()

    @property
    def lower_texts(self) -> tuple[str, str, str]:
        """Title, features and description in lower case, where attributes are looked for."""
        return self.title.lower(), " ".join(self.bullets).lower(), self.description.lower()


def from_raw(row: Mapping[str, Any], attributes: Mapping[str, Any], nouns: Mapping[str, list[str]]) -> Product:
    """A product from a row of ``items_shuffle.json``.

    Args:
        row: the raw row.
        attributes: asin -> entry of ``items_ins_v2.json``.
        nouns: asin -> nouns of the title.
    """
    asin, bullets = row["asin"], row["small_description"]
    price, price_text = _prices(row.get("pricing"))
    return Product(
        asin=asin,
        category=intern(row["category"]),
        query=intern(row["query"].lower().strip()),
        product_category=intern(row["product_category"]),
        title=row["name"] or "",
        description=row["full_description"] or "",
        bullets=tuple(bullets) if isinstance(bullets, list) else (bullets or "",),
        price=price,
        price_text=price_text,
        options=_options(row.get("customization_options") or {}),
        attributes=_interned(attributes.get(asin, {}).get("attributes", (UNKNOWN_ATTRIBUTE,))),
        nouns=_interned(nouns.get(asin, ())),
    )


def from_processed(row: Mapping[str, Any], nouns: Mapping[str, list[str]]) -> Product:
    """A product from a row of ``products_1k.jsonl``, whose fields are derived already."""
    return Product(
        asin=row["asin"],
        category=intern(row["category"]),
        query=intern(row["query"]),
        product_category=intern(row["product_category"]),
        title=row["title"],
        description=row["description"],
        bullets=tuple(row["bullet_points"]),
        price=row["pricing"][0],
        price_text=row["price_text"],
        options=tuple((intern(name), _interned(values)) for name, values in row["options"].items()),
        attributes=_interned(row["attributes"]),
        nouns=_interned(nouns.get(row["asin"], ())),
    )


def _interned(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts, each kept once in memory: a million products share their sizes, attributes and nouns."""
    return tuple(map(intern, texts))


def _prices(pricing: str | None) -> tuple[float, str]:
    """Price and its text of ``$16.99 - $26.99``, ``$5`` or nothing."""
    found = [float(re.sub(r"[^\d.]", "", part)) for part in (pricing or "").split("$")[1:]]
    if not found:
        return MISSING_PRICE, f"${MISSING_PRICE}"
    return found[0], f"${found[0]}" if len(found) == 1 else f"${found[0]} to ${found[1]}"


def _options(raw: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Options in lower case; a later name that differs in its capitals only takes the place of the earlier one."""
    found: dict[str, tuple[str, ...]] = {}
    for name, contents in raw.items():
        if contents is not None:
            values = (one["value"].strip().replace("/", " | ").lower() for one in contents)
            found[intern(name.lower())] = _interned(values)
    return tuple(found.items())
