"""The search index on disk: made once for a set of products, then memory-mapped and shared by all processes.

``CACHE/webshop/<hash of the products' search texts>/`` holds the files of an index (plain ``.npy`` arrays and the terms
as text, or what tantivy writes), and last of all ``complete.json`` with their sizes. A folder without it, or with files
of other sizes, is made anew.
"""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from prover.envs.webshop import bm25
from prover.envs.webshop.analysis import terms
from prover.envs.webshop.bm25 import Index
from prover.envs.webshop.product import Product
from prover.errors import ConfigError

if TYPE_CHECKING:
    from prover.envs.webshop.tantivy_index import TantivyIndex

Kind = Literal["exact", "tantivy"]
"""``exact`` ranks as WebShop's Lucene does; ``tantivy`` only nearly so, but millions of products."""

KINDS: tuple[Kind, ...] = ("exact", "tantivy")

VERSION = 2
"""Counts changes of the analysis or of the files."""

_ARRAYS = ("starts", "documents", "divisors")
_MARK = "complete.json"


class SearchIndex(Protocol):
    """What searches products."""

    @property
    def ranking(self) -> str:
        """How it ranks, for manifests."""

    def search(self, terms: Iterable[str], n: int = 50) -> list[tuple[str, float]]:
        """The ``n`` best documents that have any of the terms, with their scores; equal scores in the order of ids."""


def load_index(products: Sequence[Product], cache: Path | None, kind: Kind = "exact") -> SearchIndex:
    """The index of products, from the cache or else made now and left there.

    Args:
        products: what can be found.
        cache: folder of caches; None keeps nothing on disk. One that cannot be written is left alone.
        kind: how it ranks.

    Raises:
        ConfigError: tantivy is asked for and not installed.
    """
    if kind == "tantivy":
        _tantivy()
    if cache is None:
        return _made(products, kind)
    folder = cache / "webshop" / _fingerprint(products, kind)
    return _read(folder, kind) or _kept(products, kind, folder) or _made(products, kind)


def _tantivy() -> "type[TantivyIndex]":
    try:
        from prover.envs.webshop.tantivy_index import TantivyIndex
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"expected the package tantivy for index 'tantivy', got none ({error}); run pip install 'prover[tantivy]', "
            "or take index 'exact'"
        ) from error
    return TantivyIndex


def _documents(products: Sequence[Product]) -> Iterator[tuple[str, list[str]]]:
    for product in sorted(products, key=lambda product: product.asin):
        yield product.asin, terms(product.search_text)


def _made(products: Sequence[Product], kind: Kind, folder: Path | None = None) -> SearchIndex:
    """A new index, its files left in a folder if there is one."""
    if kind == "tantivy":
        return _tantivy().build(_documents(products), folder)
    index = bm25.build(_documents(products))
    if folder:
        _save(index, folder)
    return index


def _fingerprint(products: Sequence[Product], kind: Kind) -> str:
    digest = blake2b(str(VERSION).encode(), digest_size=16)
    for product in products:
        digest.update(f"\0{product.asin}\0{product.search_text}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest() if kind == "exact" else f"{kind}-{digest.hexdigest()}"


def _read(folder: Path, kind: Kind) -> SearchIndex | None:
    """The index in a folder; None if it is missing, incomplete or damaged."""
    try:
        mark = json.loads((folder / _MARK).read_text(encoding="utf-8"))
        if any((folder / name).stat().st_size != size for name, size in mark["sizes"].items()):
            return None
        return _load(folder) if kind == "exact" else _tantivy().load(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None


def _kept(products: Sequence[Product], kind: Kind, folder: Path) -> SearchIndex | None:
    """A new index, written into a folder beside that is renamed, so that no process sees half of it.

    None where nothing can be written; without a cache everything works, only slower.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    except OSError:
        return None
    try:
        _made(products, kind, beside)
        sizes = {file.name: file.stat().st_size for file in sorted(beside.iterdir())}
        (beside / _MARK).write_text(json.dumps({"sizes": sizes}), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        beside.rename(folder)
    except (OSError, ValueError):  # The disk is full, which is a ValueError of tantivy, or another process was faster.
        shutil.rmtree(beside, ignore_errors=True)
    return _read(folder, kind)


def _save(index: Index, folder: Path) -> None:
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(index, name), allow_pickle=False)
    (folder / "terms.txt").write_text("\n".join(index.numbers), encoding="utf-8", newline="\n")
    (folder / "ids.txt").write_text("\n".join(index.ids), encoding="utf-8", newline="\n")
    (folder / "size.json").write_text(json.dumps(index.size), encoding="utf-8")


def _load(folder: Path) -> Index:
    """The index that was saved in a folder, its arrays mapped."""
    # asarray: a plain view of the mapped file, without the cost of numpy's memmap class in every slice.
    starts, documents, divisors = (
        np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)) for name in _ARRAYS
    )
    names = (folder / "terms.txt").read_text(encoding="utf-8").split("\n")
    ids = tuple((folder / "ids.txt").read_text(encoding="utf-8").split("\n"))
    if len(starts) != len(names) + 1 or not int(starts[-1]) == len(documents) == len(divisors):
        raise ValueError(f"expected files of one index in {folder}, got files that do not fit each other")
    size = int(json.loads((folder / "size.json").read_text(encoding="utf-8")))
    numbers = {name: number for number, name in enumerate(names)}
    return Index(ids=ids, numbers=numbers, starts=starts, documents=documents, divisors=divisors, size=size)
