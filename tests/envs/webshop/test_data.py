"""Folders with WebShop's data."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from prover.envs.webshop import data
from prover.envs.webshop.data import VARIABLE, ShopFolder
from prover.envs.webshop.product import Product
from prover.errors import ConfigError, DataError


def row(asin: str, **changes: Any) -> dict[str, Any]:
    """A raw row of ``items_shuffle.json``."""
    return {
        **{"asin": asin, "name": f"Mug {asin}", "full_description": "", "small_description": [], "pricing": "$5"},
        **{"category": "garden", "query": "mugs", "product_category": "Home", "images": ["x"]},
        "customization_options": {"Size": [{"value": "Big"}, {"value": "Small"}]},
        **changes,
    }


INSTRUCTIONS = {
    "B000000001": {"attributes": ["red"], "instruction": "Find me red mugs", "instruction_attributes": ["red"]},
    "B000000002": {"attributes": []},
}
HUMAN = {"instruction": "a mug", "instruction_attributes": ["red"], "instruction_options": ["big"]}


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A folder in WebShop's own layout: two good products, one without an asin, one too long, one repeated."""
    rows = [row("B000000001"), row("nan"), row("B0000000011"), row("B000000001", name="Again"), row("B000000002")]
    (tmp_path / "items_shuffle.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "items_ins_v2.json").write_text(json.dumps(INSTRUCTIONS))
    (tmp_path / "items_human_ins.json").write_text(json.dumps({"B000000002": [HUMAN]}))
    (tmp_path / "title_nouns.json").write_text(json.dumps({"B000000001": ["mug"], "B000000002": []}))
    return tmp_path


def test_original_layout(original: Path) -> None:
    """Products, both kinds of goals and nouns are read; what WebShop drops is dropped."""
    folder = ShopFolder.find(str(original))
    products = folder.products()
    assert [(product.asin, product.title, product.nouns) for product in products] == [
        ("B000000001", "Mug B000000001", ("mug",)),
        ("B000000002", "Mug B000000002", ()),
    ]
    assert [goal.options for goal in folder.goals(products, "synthetic")] == [(("size", "big"),), (("size", "small"),)]
    assert [goal.asin for goal in folder.goals(products, "human")] == ["B000000002"]


def test_first_products_only(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are counted before any is dropped, and what comes later is not even read."""
    monkeypatch.setattr(data, "_CHUNK", 64)
    whole = (original / "items_shuffle.json").read_text()
    (original / "items_shuffle.json").write_text(whole[: whole.rindex("{")] + "damaged")
    folder = ShopFolder(original)
    assert [product.asin for product in folder.products(1)] == ["B000000001"]
    assert [product.asin for product in folder.products(3)] == ["B000000001"]
    with pytest.raises(DataError, match="got a file that cannot be read"):
        folder.products()


def test_small_file_is_enough_for_few(original: Path) -> None:
    """With at most 1000 products asked for, ``items_shuffle_1000.json`` is read where there is one."""
    (original / "items_shuffle_1000.json").write_text(json.dumps([row("B000000002")]))
    folder = ShopFolder(original)
    assert [product.asin for product in folder.products(1000)] == ["B000000002"]
    assert len(folder.products()) == 2


def test_gzipped_files(original: Path) -> None:
    """Every file may be gzipped."""
    for file in list(original.iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    folder = ShopFolder.find(str(original))
    assert len(folder.goals(folder.products(), "synthetic")) == 2


def test_without_nouns(original: Path) -> None:
    """Rewards need them, so that the message names the command that makes them."""
    (original / "title_nouns.json").write_text(json.dumps({"B000000001": ["mug"]}))
    with pytest.raises(
        DataError, match=r"all 2 products in .*got none for 1, e\.g\. B000000002; run python -m prover\.envs\.webshop"
    ):
        ShopFolder(original).products()
    (original / "title_nouns.json").unlink()
    with pytest.raises(
        DataError,
        match=rf"got items_human.*run python -m prover\.envs\.webshop\.nouns {original} .*prover\[webshop-nouns\]",
    ):
        ShopFolder(original).products()


def test_titles(original: Path) -> None:
    """They need no other file than the products."""
    for file in ("items_ins_v2.json", "title_nouns.json"):
        (original / file).unlink()
    found = [("B000000001", "Mug B000000001"), ("B000000002", "Mug B000000002")]
    assert list(ShopFolder(original).titles()) == found
    assert list(ShopFolder(original).titles(4)) == found[:1]
    (original / "items_shuffle.json").write_text('[{"asin": "B1"}]')
    with pytest.raises(DataError, match=r"cannot be read \(KeyError: 'name'\)"):
        list(ShopFolder(original).titles())


def test_everything_a_raw_row_may_hold(original: Path) -> None:
    """Fields that are missing, null, a string for a list, odd in their case or of another script."""
    odd = row(
        "B000000002",
        **{"name": None, "full_description": None, "small_description": "one", "pricing": "$1,234.50 - $2,000 - $3"},
        **{"query": " MUGS ", "customization_options": {"SIZE": [{"value": " A/B "}, {"value": "A / b"}], "X": None}},
        **{"brand": "x", "total_reviews": None, "product_information": {"a": "b"}},
    )
    plain = row("B000000001", name="\u6771\u4eac <b>&amp;", pricing=None, small_description=None)
    del plain["customization_options"], plain["pricing"]
    (original / "items_shuffle.json").write_text(json.dumps([plain, odd]))
    first, second = ShopFolder(original).products()
    assert (first.title, first.price_text, first.bullets, first.options) == (
        "\u6771\u4eac <b>&amp;",
        "$100.0",
        ("",),
        (),
    )
    assert (second.title, second.description, second.bullets, second.query) == ("", "", ("one",), "mugs")
    assert (second.price, second.price_text) == (1234.5, "$1234.5 to $2000.0")
    assert second.options == (("size", ("a | b", "a  |  b")),)


def test_damage_is_found_early(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row without an end is given up on, long before the end of the file."""
    monkeypatch.setattr(data, "_CHUNK", 64)
    monkeypatch.setattr(data, "_LONGEST", 200)
    text = '[{"asin": "B000000001", "name": "' + "x" * 100_000
    (original / "items_shuffle.json").write_text(text)
    read = []
    real = json.JSONDecoder.raw_decode

    def watched(self: json.JSONDecoder, s: str, idx: int = 0) -> Any:
        read.append(len(s))
        return real(self, s, idx)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", watched)
    with pytest.raises(DataError, match="Unterminated string"):
        list(ShopFolder(original).titles())
    assert max(read) < 1000


@pytest.mark.parametrize(
    ("content", "reason"),
    [("{}", "no JSON array"), ("[{]", "JSONDecodeError"), ("[1, 2]", "TypeError"), ('[{"asin": "B1"}]', "KeyError")],
)
def test_damaged_products(original: Path, content: str, reason: str) -> None:
    """The message names the folder and what is wrong."""
    (original / "items_shuffle.json").write_text(content)
    with pytest.raises(DataError, match=f"{original}.*cannot be read.*{reason}.*setup.sh"):
        ShopFolder(original).products()


def test_damaged_instructions(original: Path) -> None:
    """The message names the file."""
    (original / "items_ins_v2.json").write_text("{")
    with pytest.raises(DataError, match=r"expected JSON in .*items_ins_v2\.json"):
        ShopFolder(original).products()


def test_missing_instructions(original: Path) -> None:
    """The message names what was expected and what is there."""
    products = ShopFolder(original).products()
    (original / "items_human_ins.json").unlink()
    with pytest.raises(
        DataError, match=r"human instructions \(items_human_ins\.json or .*got items_ins_v2\.json, items"
    ):
        ShopFolder(original).goals(products, "human")


def test_no_goals(original: Path, hat: Product) -> None:
    """Products without instructions have none; another kind of goals is a mistake of the caller."""
    with pytest.raises(DataError, match="expected synthetic goals for the 1 products"):
        ShopFolder(original).goals((hat,), "synthetic")
    with pytest.raises(ConfigError, match="'synthetic' or 'human', got 'other'"):
        ShopFolder(original).goals((hat,), "other")


def test_no_folder_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable and how to get the data."""
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(DataError, match=r"\$WEBSHOP_DATA is not set; run './setup\.sh -d small'.*data='generated'"):
        ShopFolder.find(None)


def test_wrong_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message names the option or the variable, the folder and what is in it."""
    with pytest.raises(DataError, match=rf"in {tmp_path} \(data = .*got an empty folder"):
        ShopFolder.find(str(tmp_path))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(DataError, match=r"\(\$WEBSHOP_DATA = .*none'\), got no such folder"):
        ShopFolder.find("")
    for number in range(12):
        (tmp_path / f"file{number:02d}").touch()
    with pytest.raises(DataError, match=r"got file00, file01, .*file09 and 2 more"):
        ShopFolder.find(str(tmp_path))


def test_raw_and_compact_agree(tmp_path: Path, folder: Path) -> None:
    """Rows in the original layout give the goals of the compact layout."""
    compact = ShopFolder(folder)
    products = compact.products(200)
    raw = [
        row(
            product.asin,
            pricing=f"${product.price}",
            customization_options={name: [{"value": one} for one in values] for name, values in product.options},
        )
        for product in products
    ]
    (tmp_path / "items_shuffle.json").write_text(json.dumps(raw))
    (tmp_path / "items_ins_v2.json").write_bytes((folder / "items_ins_v2_1000.json").read_bytes())
    (tmp_path / "title_nouns.json").write_text(json.dumps({product.asin: [] for product in products}))
    other = ShopFolder(tmp_path)
    assert other.goals(other.products(), "synthetic") == compact.goals(products, "synthetic")
