"""WebShop's own data: a folder of the user's, in the layout that WebShop's ``setup.sh`` leaves or a compact one.

* products: ``items_shuffle.json`` or ``items_shuffle_1000.json``; compact: ``products_1k.jsonl``
* attributes and instructions: ``items_ins_v2.json`` or ``items_ins_v2_1000.json``
* human instructions: ``items_human_ins.json``; compact: ``human_instructions_1k.json``
* nouns of the titles: ``title_nouns*.json``, asin -> list of nouns

Every file may also be gzipped. WebShop finds the nouns with spaCy while it runs; here they come from a file that
``python -m prover.envs.webshop.nouns FOLDER`` makes once.

Measured on two busy cores with 200,000 made-up rows (607 MB): products take 32 s and 0.7 GB, 1.1 GB at most; their 1.4
million synthetic goals a minute and 1 GB more. Both grow with the number of rows, so that with WebShop's full set human
goals, or fewer products (``num_products``), are the ones to take.
"""

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

from prover.envs.webshop.goal import Goal, human_goals, synthetic_goals
from prover.envs.webshop.product import Product, from_processed, from_raw
from prover.errors import ConfigError, DataError

VARIABLE = "WEBSHOP_DATA"
"""The environment variable that names the folder."""

_SMALL = 1000
_RAW = ("items_shuffle.json", "items_shuffle_1000.json")
_PROCESSED = "products_1k.jsonl"
_INSTRUCTIONS = ("items_ins_v2.json", "items_ins_v2_1000.json")
_HUMAN = ("items_human_ins.json", "human_instructions_1k.json")
NOUNS = "title_nouns.json"
"""Where the nouns are written; any ``title_nouns*.json`` is read."""
_CHUNK = 1 << 20  # characters read at a time
_LONGEST = 1 << 26  # of a row; what has no end by then is damaged, and is not read to the end of gigabytes


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
        raw, rows = self._rows(n)
        attributes = self._instructions() if raw else {}
        found: dict[str, Product] = {}
        with self._readable():
            for row in rows:
                found[row["asin"]] = from_raw(row, attributes, nouns) if raw else from_processed(row, nouns)
        lacking = [asin for asin in found if asin not in nouns]
        if lacking:
            raise DataError(
                f"expected the nouns of the titles of all {len(found)} products in {self.path}, got none for "
                f"{len(lacking)}, e.g. {lacking[0]}; {_how_to_tag(self.path)}"
            )
        return tuple(found.values())

    def titles(self, n: int | None = None) -> Iterator[tuple[str, str]]:
        """(asin, title) of the products, in the order of their file, one at a time.

        Args:
            n: read the first ``n`` rows only.

        Raises:
            DataError: the file is missing or damaged.
        """
        raw, rows = self._rows(n)
        with self._readable():
            for row in rows:
                yield row["asin"], row["name" if raw else "title"] or ""

    def _rows(self, n: int | None) -> tuple[bool, Iterator[dict[str, Any]]]:
        """Whether rows are raw ones, and the rows that are products: each asin once, only proper ones."""
        # With few products asked for, the small file is read where there is one; its rows are the first of the large.
        raw = self._first(*(_RAW[::-1] if n is not None and n <= _SMALL else _RAW))
        file = raw or self._need("products", _PROCESSED)
        return raw is not None, _proper(islice(_array(file) if raw else _lines(file), n))

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError, EOFError, OSError) as error:
            raise DataError(
                f"expected WebShop's products in {self.path}, got a file that cannot be read "
                f"({type(error).__name__}: {error}); {_how_to_get()}"
            ) from error

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

    def _nouns(self) -> Mapping[str, list[str]]:
        stem, _, end = NOUNS.rpartition(".")
        files = sorted(self.path.glob(f"{stem}*.{end}*"))
        if not files:
            raise DataError(
                f"expected the nouns of WebShop's titles ({stem}*.{end}) in {self.path}, got {self._listing()}; "
                f"{_how_to_tag(self.path)}"
            )
        return cast("Mapping[str, list[str]]", self._load(files[0]))

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


def _how_to_tag(folder: Path) -> str:
    return f"run python -m prover.envs.webshop.nouns {folder} once (needs pip install 'prover[webshop-nouns]')"


def _open(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return cast("TextIO", gzip.open(file, "rt", encoding="utf-8"))
    return file.open(encoding="utf-8")


def _proper(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What WebShop keeps of its rows."""
    met = set()
    for row in rows:
        asin = row["asin"]
        if asin != "nan" and len(asin) <= 10 and asin not in met:
            met.add(asin)
            yield row


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with _open(file) as lines:
        yield from map(json.loads, lines)


def _array(file: Path) -> Iterator[dict[str, Any]]:
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
                more = stream.read(max(_CHUNK, len(text) - at)) if len(text) - at < _LONGEST else ""
                if not more:
                    raise
                text, at = text[at:] + more, 0
            else:
                yield row
