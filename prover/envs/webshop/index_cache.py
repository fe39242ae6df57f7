"""The search index on disk: made once for a set of products, then memory-mapped and shared by all processes.

``CACHE/webshop/<hash of the products' search texts>/`` holds plain ``.npy`` arrays, the terms as text, and last of all
``complete.json`` with the sizes of the files. A folder without it, or whose files have other sizes, is made anew.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from prover.envs.webshop import bm25
from prover.envs.webshop.analysis import terms
from prover.envs.webshop.bm25 import Index
from prover.envs.webshop.product import Product

VERSION = 1
"""Counts changes of the analysis or of the files."""

_ARRAYS = ("starts", "documents", "divisors")
_MARK = "complete.json"


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/prover``, or ``~/.cache/prover``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prover"


def load_index(products: Sequence[Product], cache: Path | None) -> Index:
    """The index of products, from the cache or else made now and left there.

    Args:
        products: what can be found.
        cache: folder of caches; None keeps nothing on disk. One that cannot be written is left alone.
    """
    if cache is None:
        return _made(products)
    folder = cache / "webshop" / _fingerprint(products)
    found = _read(folder)
    if found is None:
        found = _made(products)
        _write(found, folder)
    return found


def _made(products: Sequence[Product]) -> Index:
    ordered = sorted(products, key=lambda product: product.asin)
    return bm25.build((product.asin, terms(product.search_text)) for product in ordered)


def _fingerprint(products: Sequence[Product]) -> str:
    digest = blake2b(str(VERSION).encode(), digest_size=16)
    for product in products:
        digest.update(f"\0{product.asin}\0{product.search_text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _read(folder: Path) -> Index | None:
    """The index in a folder; None if it is missing, incomplete or damaged."""
    try:
        mark = json.loads((folder / _MARK).read_text(encoding="utf-8"))
        if any((folder / name).stat().st_size != size for name, size in mark["sizes"].items()):
            return None
        # asarray: a plain view of the mapped file, without the cost of numpy's memmap class in every slice.
        starts, documents, divisors = (
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)) for name in _ARRAYS
        )
        names = (folder / "terms.txt").read_text(encoding="utf-8").split("\n")
        ids = tuple((folder / "ids.txt").read_text(encoding="utf-8").split("\n"))
        whole = len(starts) == len(names) + 1 and int(starts[-1]) == len(documents) == len(divisors)
        size = int(mark["size"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None
    if not whole:
        return None
    numbers = {name: number for number, name in enumerate(names)}
    return Index(ids=ids, numbers=numbers, starts=starts, documents=documents, divisors=divisors, size=size)


def _write(index: Index, folder: Path) -> None:
    """Write into a folder beside and rename it, so that no other process sees half of it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    except OSError:
        return  # Without a cache everything works, only slower.
    try:
        for name in _ARRAYS:
            np.save(beside / f"{name}.npy", getattr(index, name), allow_pickle=False)
        (beside / "terms.txt").write_text("\n".join(index.numbers), encoding="utf-8", newline="\n")
        (beside / "ids.txt").write_text("\n".join(index.ids), encoding="utf-8", newline="\n")
        sizes = {file.name: file.stat().st_size for file in sorted(beside.iterdir())}
        (beside / _MARK).write_text(json.dumps({"size": index.size, "sizes": sizes}), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        beside.rename(folder)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)  # The disk is full, or another process was faster.
