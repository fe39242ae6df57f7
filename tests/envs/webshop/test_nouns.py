"""Tagging titles, with a stand-in for spaCy."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prover.envs.webshop import nouns
from prover.envs.webshop.data import NOUNS, ShopFolder
from prover.envs.webshop.nouns import main, pipeline, tag
from prover.errors import ConfigError, DataError

TITLES = {"B000000001": "Red Straw Hat", "B000000002": "", "B000000003": "a Hat of Straw \u2605", "B000000004": "Mug"}
EXPECTED = {"B000000001": ["straw", "hat"], "B000000002": [], "B000000003": ["hat", "straw"], "B000000004": ["mug"]}


@dataclass
class Word:
    """A word and its part of speech."""

    text: str
    pos_: str


class Tagger:
    """Knows four words."""

    known = {"Hat": "NOUN", "Straw": "PROPN", "Mug": "NOUN", "Red": "ADJ"}  # noqa: RUF012  # never changed

    def __init__(self, stops_after: int = 99) -> None:
        self.seen: list[str] = []
        self._left = stops_after

    def pipe(self, texts: Iterable[str]) -> Iterator[list[Word]]:
        for text in texts:
            if not self._left:
                raise KeyboardInterrupt
            self._left -= 1
            self.seen.append(text)
            yield [Word(word, self.known.get(word, "X")) for word in text.split()]


@pytest.fixture
def shop_folder(tmp_path: Path) -> ShopFolder:
    """Four products in WebShop's own layout, two rows that are none, and no nouns."""
    rows = [{"asin": asin, "name": title or None} for asin, title in TITLES.items()]
    rows[2:2] = [{"asin": "nan", "name": "Hat"}, {"asin": "B000000001", "name": "Mug"}]
    (tmp_path / "items_shuffle.json").write_text(json.dumps(rows))
    return ShopFolder(tmp_path)


def test_tagging(shop_folder: ShopFolder) -> None:
    """Nouns and proper nouns in lower case and in order; nothing else is left behind."""
    file = tag(shop_folder, Tagger())
    assert json.loads(file.read_text()) == EXPECTED
    assert sorted(found.name for found in shop_folder.path.iterdir()) == ["items_shuffle.json", NOUNS]


def test_another_place(shop_folder: ShopFolder, tmp_path: Path) -> None:
    """The folder with the products may be one that cannot be written."""
    place = tmp_path / "other"
    place.mkdir()
    assert tag(shop_folder, Tagger(), place) == place / NOUNS


@pytest.mark.parametrize("cut", ["", '["B000000', '["B000000003", ["hat"'])
def test_going_on(shop_folder: ShopFolder, monkeypatch: pytest.MonkeyPatch, cut: str) -> None:
    """What was tagged before a stop is kept, but for a line that was cut; no file appears before all titles are."""
    monkeypatch.setattr(nouns, "_BATCH", 2)
    with pytest.raises(KeyboardInterrupt):
        tag(shop_folder, Tagger(stops_after=3))
    assert list(shop_folder.path.glob("title_nouns*")) == []
    with (shop_folder.path / f".{NOUNS}.partial").open("a") as partial:
        partial.write(cut)
    second = Tagger()
    assert json.loads(tag(shop_folder, second).read_text()) == EXPECTED
    assert second.seen == ["Mug"]


def test_then_the_shop_opens(shop_folder: ShopFolder) -> None:
    """The loader reads what was written."""
    path = shop_folder.path
    row = {"full_description": "", "small_description": [], "category": "c", "query": "q", "product_category": "p"}
    rows = [{"asin": asin, "name": title, **row} for asin, title in TITLES.items()]
    (path / "items_shuffle.json").write_text(json.dumps(rows))
    (path / "items_ins_v2.json").write_text("{}")
    with pytest.raises(DataError, match=rf"title_nouns\*\.json.*python -m prover\.envs\.webshop\.nouns {path} once"):
        shop_folder.products()
    tag(shop_folder, Tagger())
    assert {product.asin: list(product.nouns) for product in shop_folder.products()} == EXPECTED


def test_command(shop_folder: ShopFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the file; a folder without products is a message and 2."""
    monkeypatch.setattr(nouns, "pipeline", Tagger)
    assert main([str(shop_folder.path)]) == 0
    assert capsys.readouterr().out == f"{shop_folder.path / NOUNS}\n"
    assert main([str(shop_folder.path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_without_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the extra."""
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigError, match=r"pip install 'prover\[webshop-nouns\]'"):
        pipeline()


def test_without_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """SpaCy alone is not enough."""

    class Spacy:
        @staticmethod
        def load(name: str, **options: Any) -> None:
            raise OSError(f"[E050] Can't find model '{name}'")

    monkeypatch.setitem(sys.modules, "spacy", Spacy)  # type: ignore[arg-type]  # as far as it is used
    with pytest.raises(ConfigError, match=r"E050.*prover\[webshop-nouns\]"):
        pipeline()
