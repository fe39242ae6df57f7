"""Opening a shop."""

import json
from pathlib import Path

import pytest

from prover.envs.webshop.catalogue import PUBLIC_GOALS, goals_digest, manifest, open_shop
from prover.envs.webshop.index_cache import KINDS
from prover.envs.webshop.split import SCHEMES, Scheme
from prover.errors import ConfigError


def test_opened_once() -> None:
    """The same arguments give the same objects; another division shares the shop."""
    shop, splits = open_shop("generated")
    assert open_shop("generated")[0] is shop
    assert open_shop("generated")[1] is splits
    assert len(open_shop("generated", num_products=40)[0].products) == 40


def test_no_human_goals_in_the_generated_shop() -> None:
    """Nobody wrote any."""
    with pytest.raises(ConfigError, match="expected goals 'synthetic' with data 'generated', got 'human'"):
        open_shop("generated", goals="human")


def test_manifest() -> None:
    """It can be written as JSON and never changes for the generated shop."""
    shop, splits = open_shop("generated")
    found = manifest(shop, splits)
    assert json.loads(json.dumps(found)) == found
    assert found["hash"] == "38746496b14ca3d7"
    assert found["splits"] == {
        "test": {"goals": 99, "hash": "5052dba3539faeaa"},
        "dev": {"goals": 68, "hash": "3ca418270f822f6b"},
        "train": {"goals": 533, "hash": "c24385f9fa1c1991"},
    }
    assert found["left_out"] == []
    assert found["index"] == "Lucene-exact"


def test_tantivy_shows_in_the_manifest() -> None:
    """Its goals are the same, its rankings are not, and whoever reads results is told."""
    exact, tantivy = (open_shop("generated", index=kind) for kind in KINDS)
    found = [manifest(*one) for one in (exact, tantivy)]
    assert [one.pop("index") for one in found] == ["Lucene-exact", "tantivy, not Lucene-exact"]
    assert found[0] == found[1]
    query = "steel water bottle"
    assert tantivy[0].search(query)[0] in exact[0].search(query)


FROZEN = {
    "by_product": {
        "test": (1055, "94fbd85e9991aecd"),
        "dev": (1074, "b27ca5655475e292"),
        "train": (4781, "3a2b84bc1fa48e3f"),
    },
    "paper": {
        "test": (500, "c373a18d4927a368"),
        "dev": (1000, "cdb82dcf6e6fea80"),
        "train": (5406, "321a9546fb9924c7"),
    },
    "verl": {"test": (500, "c373a18d4927a368"), "train": (6408, "f95dddd35c8b19f6")},
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_public_goals_are_frozen(folder: Path, scheme: Scheme) -> None:
    """The goals of WebShop's 1000 products, their price limits and their splits are the same for ever."""
    shop, splits = open_shop(str(folder), splits=scheme)
    assert (len(shop.products), len(shop.goals), goals_digest(shop)) == PUBLIC_GOALS
    found = manifest(shop, splits)["splits"]
    assert {split: (one["goals"], one["hash"]) for split, one in found.items()} == FROZEN[scheme]


def test_ceilings_of_the_public_goals(folder: Path) -> None:
    """458 of 6910 goals are out of reach by the original reward, none where values are compared."""
    shop, _ = open_shop(str(folder))
    ids = list(shop.goals)
    assert shop.ceiling(ids) == 6452 / 6910
    assert shop.ceiling(ids, "value_match") == 1.0


def test_other_goals_are_pointed_out(tmp_path: Path) -> None:
    """A thousand other products are no reason to compare."""
    row = {
        **{
            "category": "c",
            "query": "q",
            "product_category": "p",
            "title": "Mug",
            "description": "",
            "bullet_points": [],
        },
        **{"pricing": [5.0], "price_text": "$5.0", "options": {}, "attributes": ["red"]},
    }
    rows = [json.dumps({**row, "asin": f"B{number:09d}"}) for number in range(1000)]
    (tmp_path / "products_1k.jsonl").write_text("\n".join(rows))
    told = {f"B{n:09d}": {"instruction": f"Find me {n}", "instruction_attributes": ["red"]} for n in range(20)}
    (tmp_path / "items_ins_v2_1000.json").write_text(json.dumps(told))
    (tmp_path / "title_nouns.json").write_text(json.dumps({f"B{number:09d}": ["mug"] for number in range(1000)}))
    with pytest.warns(UserWarning, match="expected the 6910 synthetic goals of WebShop's 1000 products, got 20 others"):
        open_shop(str(tmp_path))
