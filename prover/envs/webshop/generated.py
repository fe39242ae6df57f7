"""A small shop of our own making: it needs no files, and is the same everywhere.

Made-up makers sell everyday things in colours and sizes. For half of the products there are instructions, from which
goals are made as WebShop makes its synthetic ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from prover.envs.webshop.product import STEP, Product
from prover.seeds import generator

PRODUCTS_PER_KIND = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of thing."""

    name: str
    category: str
    path: str
    traits: tuple[str, ...]
    materials: tuple[str, ...]
    sizes: tuple[str, ...]
    prices: tuple[int, int]
    """Range in dollars."""


def _kind(name: str, path: str, traits: str, materials: str, sizes: str, prices: tuple[int, int]) -> _Kind:
    parts = path.split(" > ")
    return _Kind(
        name=name,
        category=parts[0].lower(),
        path=f" {STEP} ".join(parts),
        traits=tuple(traits.split(", ")),
        materials=tuple(materials.split(", ")),
        sizes=tuple(sizes.split(", ")) if sizes else (),
        prices=prices,
    )


_KINDS = (
    _kind(
        "mug",
        "Kitchen > Drinkware > Mugs",
        "dishwasher safe, microwave safe, hand painted, double walled, stackable",
        "stoneware, porcelain, enamel",
        "8 ounce, 12 ounce, 16 ounce",
        (6, 30),
    ),
    _kind(
        "water bottle",
        "Kitchen > Drinkware > Bottles",
        "leak proof, bpa free, wide mouth, insulated, easy clean",
        "steel, glass, tritan",
        "500 ml, 750 ml, 1 liter",
        (9, 45),
    ),
    _kind(
        "frying pan",
        "Kitchen > Cookware > Pans",
        "oven safe, non stick, induction ready, riveted handle, even heating",
        "cast iron, aluminum, carbon steel",
        "8 inch, 10 inch, 12 inch",
        (18, 95),
    ),
    _kind(
        "cutting board",
        "Kitchen > Tools > Boards",
        "juice groove, non slip, knife friendly, reversible, easy clean",
        "bamboo, walnut, maple",
        "small, medium, large",
        (11, 60),
    ),
    _kind(
        "desk lamp",
        "Office > Lighting > Lamps",
        "dimmable, usb port, glare free, foldable arm, touch control",
        "aluminum, brass, beech",
        "",
        (19, 120),
    ),
    _kind(
        "notebook",
        "Office > Paper > Notebooks",
        "dotted pages, lay flat, bleed proof, numbered pages, pocket inside",
        "linen, kraft, cork",
        "a4, a5, a6",
        (5, 28),
    ),
    _kind(
        "office chair",
        "Office > Furniture > Chairs",
        "lumbar support, tilt lock, height adjustable, quiet casters, breathable back",
        "mesh, felt, oak",
        "",
        (79, 480),
    ),
    _kind(
        "pencil case",
        "Office > Storage > Cases",
        "water resistant, stands upright, inner mesh, smooth zipper, machine washable",
        "canvas, felt, nylon",
        "slim, wide",
        (7, 26),
    ),
    _kind(
        "garden gloves",
        "Garden > Clothing > Gloves",
        "thorn proof, breathable, machine washable, long cuff, touchscreen tips",
        "leather, nitrile, cotton",
        "small, medium, large, x-large",
        (8, 36),
    ),
    _kind(
        "watering can",
        "Garden > Watering > Cans",
        "drip free, removable rose, long spout, rust proof, balanced handle",
        "zinc, copper, plastic",
        "1 liter, 5 liter, 9 liter",
        (12, 64),
    ),
    _kind(
        "plant pot",
        "Garden > Pots > Planters",
        "drainage hole, frost proof, with saucer, uv resistant, hand glazed",
        "terracotta, ceramic, concrete",
        "4 inch, 6 inch, 9 inch",
        (7, 58),
    ),
    _kind(
        "hammock",
        "Garden > Furniture > Hammocks",
        "quick drying, tree friendly, carry bag included, double stitched, fade resistant",
        "cotton, nylon, polyester",
        "single, double",
        (24, 130),
    ),
    _kind(
        "backpack",
        "Travel > Bags > Backpacks",
        "laptop sleeve, rain cover, padded straps, lockable zipper, lightweight",
        "canvas, nylon, waxed cotton",
        "20 liter, 30 liter, 45 liter",
        (29, 190),
    ),
    _kind(
        "packing cubes",
        "Travel > Bags > Organizers",
        "see through, machine washable, two way zipper, compressible, lightweight",
        "nylon, mesh, polyester",
        "set of 3, set of 5",
        (14, 48),
    ),
    _kind(
        "travel pillow",
        "Travel > Comfort > Pillows",
        "memory foam, washable cover, packs small, neck support, cooling gel",
        "bamboo, velvet, cotton",
        "",
        (13, 54),
    ),
    _kind(
        "umbrella",
        "Travel > Rain > Umbrellas",
        "wind proof, automatic open, quick drying, reflective edge, pocket sized",
        "fiberglass, steel, bamboo",
        "compact, full size",
        (11, 62),
    ),
    _kind(
        "bath towel",
        "Bath > Linen > Towels",
        "quick drying, highly absorbent, lint free, hanging loop, machine washable",
        "cotton, bamboo, linen",
        "hand, bath, sheet",
        (9, 52),
    ),
    _kind(
        "shower curtain",
        "Bath > Fixtures > Curtains",
        "mildew resistant, weighted hem, machine washable, rust proof grommets, opaque",
        "polyester, cotton, hemp",
        "stall, standard, extra long",
        (15, 57),
    ),
    _kind(
        "soap dispenser",
        "Bath > Accessories > Dispensers",
        "no drip, refillable, touch free, wide opening, non slip base",
        "glass, ceramic, steel",
        "",
        (10, 42),
    ),
    _kind(
        "bath mat",
        "Bath > Linen > Mats",
        "non slip, quick drying, machine washable, memory foam, soft pile",
        "cotton, bamboo, chenille",
        "small, medium, runner",
        (13, 49),
    ),
)
_COLOURS = (
    *("black", "white", "sage", "rust", "navy", "ochre", "teal", "charcoal", "blush", "olive", "sky blue", "deep red"),
    *("warm gray", "sand", "plum", "mint", "cream", "forest green"),
)
_MAKERS = (
    *("Alder & Ash", "Brinmoor", "Calloway", "Dunelight", "Elmstead", "Fairholt", "Glenwick", "Harrow", "Inglenook"),
    *("Juniper Row", "Kestrel", "Lowland", "Marlstone", "Northfold", "Oakhaven", "Pennard"),
)


def catalogue(seed: int = 0) -> tuple[tuple[Product, ...], dict[str, Any]]:
    """Products, and instructions as in ``items_ins_v2.json`` for every other one of them.

    >>> products, instructions = catalogue()
    >>> len(products), instructions[products[0].asin]["instruction"].startswith("Find me ")
    (160, True)
    """
    products: list[Product] = []
    instructions: dict[str, Any] = {}
    for number, kind in enumerate(_KINDS):
        for version in range(PRODUCTS_PER_KIND):
            rng = generator(seed, number, version)
            product = _product(kind, f"GEN{number:03d}{version:04d}", rng)
            products.append(product)
            if version % 2 == 0:
                told = _some(rng, product.attributes[:-1], 2)
                instruction = f"Find me {', '.join(told)} {kind.name} made of {product.attributes[-1]}"
                wanted = [*told, product.attributes[-1]]
                instructions[product.asin] = {"instruction": instruction, "instruction_attributes": wanted}
    order = generator(seed).permutation(len(products))
    # The first product stays in front, so that every prefix has a goal.
    return (products[0], *(products[place] for place in order if place)), instructions


def _product(kind: _Kind, asin: str, rng: np.random.Generator) -> Product:
    maker, material = _some(rng, _MAKERS, 1)[0], _some(rng, kind.materials, 1)[0]
    traits = _some(rng, kind.traits, 3)
    colours = tuple(_some(rng, _COLOURS, int(rng.integers(2, 6))))
    cents = int(rng.integers(kind.prices[0] * 100, kind.prices[1] * 100))
    price = round(cents / 100, 2)
    title = f"{maker} {kind.name.title()}, {material.title()}, {traits[0].title()}"
    return Product(
        asin=asin,
        category=kind.category,
        query=kind.name,
        product_category=kind.path,
        title=title,
        description=f"A {kind.name} of {material}, made by {maker}. It is {traits[0]} and {traits[1]}.",
        bullets=(f"{traits[1].capitalize()} and {traits[2]}", f"Made of {material}", f"Made by {maker}"),
        price=price,
        price_text=f"${price}",
        options=(("color", colours), *((("size", kind.sizes),) if kind.sizes else ())),
        attributes=(*traits, material),
        nouns=tuple(f"{maker} {kind.name} {material}".lower().split()),
    )


def _some(rng: np.random.Generator, among: tuple[str, ...], n: int) -> list[str]:
    return [among[int(place)] for place in rng.permutation(len(among))[:n]]
