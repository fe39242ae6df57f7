"""Products of a hand-made shop, and WebShop's own where they are."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prover.envs.webshop.bm25 import build
from prover.envs.webshop.data import ShopFolder
from prover.envs.webshop.goal import Goal
from prover.envs.webshop.product import Product
from prover.envs.webshop.shop import Shop


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def folder(shared: Path) -> Path:
    """Folder of WebShop's 1000 products; the test is skipped where there is none."""
    path = shared / "data" / "webshop"
    if not path.is_dir():
        pytest.skip(f"needs shared data: no folder {path}")
    return path


@pytest.fixture(scope="session")
def public(folder: Path) -> dict[str, Product]:
    """WebShop's 1000 products by asin, in the order of their file."""
    return {product.asin: product for product in ShopFolder(folder).products()}


@pytest.fixture(scope="session")
def recorded(folder: Path) -> Callable[[str], list[Any]]:
    """Reads a file of ground truth, one JSON value a line."""

    def read(name: str) -> list[Any]:
        with gzip.open(folder / name, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return read


def make(asin: str, title: str, **changes: Any) -> Product:
    """A product with little to it."""
    fields: dict[str, Any] = {
        **{"category": "garden", "query": "hats", "product_category": "Garden \u203a Clothing", "description": ""},
        **{"bullets": (), "price": 15.0, "price_text": "$15.0", "options": (), "attributes": ("sun proof",)},
        "nouns": tuple(title.lower().split()),
    }
    return Product(asin=asin, title=title, **{**fields, **changes})


HAT = make(
    "A000000001",
    "Straw Hat",
    description="A hat of straw.",
    bullets=("wide brim ", " keeps off rain"),
    options=(("color", ("rusty", "red")), ("size", ("small", "large"))),
    attributes=("sun proof", "wide brim"),
)
CAP = make(
    "A000000002", "Wool Cap", product_category="Winter \u203a Heads", query="caps", attributes=("machine washable",)
)
GOAL = Goal(
    id="A000000001-1",
    asin="A000000001",
    text="Find me sun proof hats with color: red, and size: large, and price lower than 20.00 dollars",
    attributes=("sun proof",),
    options=(("color", "red"), ("size", "large")),
    price_upper=20.0,
)


@pytest.fixture
def hat() -> Product:
    """A straw hat in two colours and two sizes."""
    return HAT


@pytest.fixture
def cap() -> Product:
    """A wool cap without options."""
    return CAP


@pytest.fixture
def goal() -> Goal:
    """To buy the hat in red and large for less than 20 dollars: one attribute, two options."""
    return GOAL


@pytest.fixture
def small_shop() -> Shop:
    """The hat, the cap and twelve more hats."""
    more = [make(f"B{number:09d}", f"Felt Hat {number}") for number in range(12)]
    products = [HAT, CAP, *more]
    documents = sorted((product.asin, product.search_text.split()) for product in products)
    return Shop(products, build(documents), [GOAL])
