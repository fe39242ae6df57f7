"""Opening a shop: from a folder or made, once per process, with its splits."""

import warnings
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from prover.envs.webshop import generated
from prover.envs.webshop.data import ShopFolder
from prover.envs.webshop.goal import synthetic_goals
from prover.envs.webshop.index_cache import Kind, load_index
from prover.envs.webshop.shop import Shop
from prover.envs.webshop.split import Scheme, Splits, divide
from prover.errors import ConfigError
from prover.retrieval.index_cache import default_cache

PUBLIC_GOALS = (1000, 6910, "afeed3ba769f0706")
"""WebShop's 1000 products: their number, the number of their synthetic goals, and the hash of these."""


def open_shop(
    data: str | None,
    *,
    goals: str = "synthetic",
    splits: Scheme = "by_product",
    num_products: int | None = None,
    index: Kind = "exact",
) -> tuple[Shop, Splits]:
    """A shop and the division of its goals. The same arguments give the same objects again, shared and read-only.

    Args:
        data: ``generated``, a folder, or empty for the folder in ``$WEBSHOP_DATA``.
        goals: ``synthetic`` or ``human``.
        splits: how goals are divided.
        num_products: take the first so many products only.
        index: how searches rank.

    Raises:
        ConfigError: generated products have no human goals, or tantivy is not installed.
        DataError: data are missing, damaged or too few.
    """
    if data == "generated":
        if goals != "synthetic":
            raise ConfigError(f"expected goals 'synthetic' with data 'generated', got {goals!r}; take these")
        shop = _generated(num_products, index)
    else:
        shop = _from_folder(str(ShopFolder.find(data).path), goals, num_products, index)
    return shop, _divided(shop, splits)


def manifest(shop: Shop, splits: Splits) -> dict[str, Any]:
    """What identifies a set of tasks, to be kept with results: how searches rank, and numbers and hashes of goals."""
    sizes = {split: {"goals": len(ids), "hash": splits.digest(split)} for split, ids in splits.goals.items()}
    return {
        **{"products": len(shop.products), "goals": len(shop.goals), "hash": goals_digest(shop)},
        **{"scheme": splits.scheme, "splits": sizes, "left_out": list(splits.left_out), "index": shop.ranking},
    }


def goals_digest(shop: Shop) -> str:
    """Hash of all goals in their order: ids, texts and price limits."""
    digest = blake2b(digest_size=8)
    for goal in shop.goals.values():
        digest.update(f"{goal.id}\0{goal.text}\0{goal.price_upper}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@lru_cache(maxsize=4)
def _from_folder(path: str, kind: str, num_products: int | None, index: Kind) -> Shop:
    folder = ShopFolder(Path(path))
    products = folder.products(num_products)
    shop = Shop(products, load_index(products, default_cache(), index), folder.goals(products, kind))
    n_products, n_goals, digest = PUBLIC_GOALS
    if kind == "synthetic" and len(products) == n_products and goals_digest(shop) != digest:
        warnings.warn(
            f"expected the {n_goals} synthetic goals of WebShop's {n_products} products, got {len(shop.goals)} others "
            f"from {path}; results are not comparable with those on WebShop's own",
            stacklevel=2,
        )
    return shop


@lru_cache(maxsize=4)
def _generated(num_products: int | None, index: Kind) -> Shop:
    products, instructions = generated.catalogue()
    kept = products[:num_products]
    return Shop(kept, load_index(kept, None, index), synthetic_goals(kept, instructions))


@lru_cache(maxsize=8)
def _divided(shop: Shop, scheme: Scheme) -> Splits:
    return divide(list(shop.goals.values()), scheme)
