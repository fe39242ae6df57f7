"""WebShop's own data: a folder of the user's, in the layout that WebShop's ``setup.sh`` leaves or a compact one.

* products: ``items_shuffle.json`` or ``items_shuffle_1000.json``; compact: ``products_1k.jsonl``
* attributes and instructions: ``items_ins_v2.json`` or ``items_ins_v2_1000.json``
* human instructions: ``items_human_ins.json``; compact: ``human_instructions_1k.json``
* nouns of the titles: ``title_nouns*.json``, asin -> list of nouns

Every file may also be gzipped. WebShop finds the nouns with spaCy while it runs; here they come from a file, which
spaCy makes once. Without it all words of a title count as nouns, and a warning says so.
"""

import gzip
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from prover.envs.webshop.analysis import STOP_WORDS
from prover.envs.webshop.goal import Goal, human_goals, synthetic_goals
from prover.envs.webshop.product import Product, from_processed, from_raw
from prover.envs.webshop.wordbreak import words
from prover.errors import ConfigError, DataError

VARIABLE = "WEBSHOP_DATA"
"""The environment variable that names the folder."""

_SMALL = 1000
_RAW = ("items_shuffle.json", "items_shuffle_1000.json")
_PROCESSED = "products_1k.jsonl"
_INSTRUCTIONS = ("items_ins_v2.json", "items_ins_v2_1000.json")
_HUMAN = ("items_human_ins.json", "human_instructions_1k.json")
_NOUNS = "title_nouns"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ShopFolder:
    """The files in one folder. Nothing is read before it is asked for."""

    path: Path

    @classmethod
    def find(cls, path: str | None = None) -> "ShopFolder":
        """The files in ``path``, or in ``$WEBSHOP_DATA`` when it is empty.

        Raises:
            DataError: neither is given, or it is no folder with products.
        """
        named = path or os.environ.get(VARIABLE, "")
        if not named:
            raise DataError(f"expected a folder with WebShop's data, got none: ${VARIABLE} is not set; {_how_to_get()}")
        folder = cls(Path(named).expanduser())
        if folder._first(*_RAW, _PROCESSED) is None:
            source = "data" if path else f"${VARIABLE}"
            raise DataError(
                f"expected WebShop's products ({', '.join((*_RAW, _PROCESSED))}) in {folder.path} ({source} = "
                f"{named!r}), got {folder._listing()}; {_how_to_get()}"
            )
        return folder

    def products(self, n: int | None = None) -> tuple[Product, ...]:
        """The products in the order of their file; those without a proper or with a repeated asin are dropped.

        Args:
            n: read the first ``n`` rows only.

        Raises:
            DataError: a file is missing or damaged.
        """
        nouns = self._nouns()
        # With few products asked for, the small file is read where there is one; its rows are the first of the large.
        order = _RAW[::-1] if n is not None and n <= _SMALL else _RAW
        found: dict[str, Product] = {}
        raw = self._first(*order)
        try:
            if raw is not None:
                attributes = self._instructions()
                for row in islice(_rows(raw), n):
                    if row["asin"] != "nan" and len(row["asin"]) <= 10 and row["asin"] not in found:
                        found[row["asin"]] = from_raw(row, attributes, nouns or {})
            else:
                source = self._need("products", _PROCESSED)
                with _open(source) as lines:
                    for row in map(json.loads, islice(lines, n)):
                        found[row["asin"]] = from_processed(row, nouns or {})
        except (KeyError, TypeError, ValueError, EOFError, OSError) as error:
            raise DataError(
                f"expected WebShop's products in {self.path}, got a file that cannot be read "
                f"({type(error).__name__}: {error}); {_how_to_get()}"
            ) from error
        if nouns is None:
            return tuple(_with_words(product) for product in found.values())
        return tuple(found.values())

    def goals(self, products: tuple[Product, ...], kind: str) -> tuple[Goal, ...]:
        """The goals of products.

        Args:
            products: as :meth:`products` gave them.
            kind: ``synthetic`` or ``human``.

        Raises:
            DataError: the file with the instructions is missing, or has none for these products.
        """
        if kind == "synthetic":
            found = synthetic_goals(products, self._instructions())
        elif kind == "human":
            found = human_goals(products, self._human())
        else:
            raise ConfigError(f"expected goals 'synthetic' or 'human', got {kind!r}; name one of these")
        if not found:
            raise DataError(
                f"expected {kind} goals for the {len(products)} products in {self.path}, got none; read more products "
                "(num_products), or take the other kind of goals"
            )
        return found

    def _instructions(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self._read("attributes and instructions", *_INSTRUCTIONS))

    def _human(self) -> Mapping[str, list[Any]]:
        """Asin -> entries. The compact file is a plain list of entries."""
        raw = self._read("human instructions", *_HUMAN)
        if isinstance(raw, dict):
            return raw
        found: dict[str, list[Any]] = {}
        for entry in raw:
            found.setdefault(entry["asin"], []).append(entry)
        return found

    def _nouns(self) -> Mapping[str, list[str]] | None:
        """Asin -> nouns; None where no file has them."""
        files = sorted(self.path.glob(f"{_NOUNS}*.json*"))
        if files:
            return cast("Mapping[str, list[str]]", self._load(files[0]))
        warnings.warn(
            f"expected the nouns of WebShop's titles in {self.path / _NOUNS}*.json, got no such file: all words of a "
            "title count as nouns, and about one reward in thirteen for other products than the wanted one differs "
            "from WebShop's; make it once with spaCy's en_core_web_sm, as {asin: [token.text.lower() for token in "
            "nlp(title) if token.pos_ in ('NOUN', 'PROPN')]}",
            stacklevel=2,
        )
        return None

    def _first(self, *names: str) -> Path | None:
        """The first of some files that is there, plain or gzipped."""
        candidates = (self.path / f"{name}{end}" for name in names for end in ("", ".gz"))
        return next((file for file in candidates if file.is_file()), None)

    def _need(self, what: str, *names: str) -> Path:
        file = self._first(*names)
        if file is None:
            raise DataError(
                f"expected WebShop's {what} ({' or '.join(names)}) in {self.path}, got {self._listing()}; "
                f"{_how_to_get()}"
            )
        return file

    def _read(self, what: str, *names: str) -> Any:
        return self._load(self._need(what, *names))

    def _load(self, file: Path) -> Any:
        try:
            with _open(file) as stream:
                return json.load(stream)
        except (ValueError, EOFError, OSError) as error:
            raise DataError(
                f"expected JSON in {file}, got what cannot be read ({type(error).__name__}: {error}); {_how_to_get()}"
            ) from error

    def _listing(self) -> str:
        if not self.path.is_dir():
            return "no such folder"
        names = sorted(file.name for file in self.path.iterdir())
        return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") or "an empty folder"


def _how_to_get() -> str:
    return (
        "run './setup.sh -d small' (or all) of https://github.com/princeton-nlp/WebShop, which downloads its data "
        f"folder, and set {VARIABLE} or the option data to that folder, or use data='generated', which needs no files"
    )


def _open(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return cast("TextIO", gzip.open(file, "rt", encoding="utf-8"))
    return file.open(encoding="utf-8")


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON array, one after the other, without reading gigabytes for the first ones."""
    decoder, gap = json.JSONDecoder(), re.compile(r"[\s,]*")
    with _open(file) as stream:
        text = stream.read(_CHUNK).lstrip()
        if not text.startswith("["):
            raise ValueError(f"no JSON array begins at the start of {file.name}")
        at = 1
        while True:
            at = cast("re.Match[str]", gap.match(text, at)).end()
            if text.startswith("]", at):
                return
            try:
                row, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                # Cut by the end of what was read, or damaged: read on, as much again as there is.
                more = stream.read(max(_CHUNK, len(text) - at))
                if not more:
                    raise
                text, at = text[at:] + more, 0
            else:
                yield row


def _with_words(product: Product) -> Product:
    nouns = (word.lower() for word in words(product.title))
    return replace(product, nouns=tuple(word for word in nouns if word not in STOP_WORDS))
