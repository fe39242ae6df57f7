"""The index on disk."""

import json
from pathlib import Path

import pytest

from prover.envs.webshop import index_cache
from prover.envs.webshop.index_cache import default_cache, load_index
from prover.envs.webshop.product import Product


def only(path: Path) -> Path:
    """The one folder below the cache."""
    (found,) = (path / "webshop").iterdir()
    return found


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let making an index fail."""

    def fail(products: object) -> None:
        raise AssertionError("an index was made")

    monkeypatch.setattr(index_cache, "_made", fail)


def test_made_once(tmp_path: Path, hat: Product, cap: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is read, and finds the same."""
    first = load_index([hat, cap], tmp_path)
    forbid(monkeypatch)
    second = load_index([hat, cap], tmp_path)
    for query in (["straw"], ["hat", "wool"], ["cap", "red"], ["nothing"]):
        assert second.search(query) == first.search(query)
    assert not second.divisors.flags.writeable


def test_other_products_have_another_index(tmp_path: Path, hat: Product, cap: Product) -> None:
    """Each set of products has its own folder."""
    load_index([hat, cap], tmp_path)
    assert [asin for asin, _ in load_index([cap], tmp_path).search(["straw", "cap"])] == [cap.asin]
    assert len(list((tmp_path / "webshop").iterdir())) == 2


@pytest.mark.parametrize(
    "name", ["starts.npy", "documents.npy", "divisors.npy", "terms.txt", "ids.txt", "complete.json"]
)
@pytest.mark.parametrize("cut", [True, False])
def test_half_written_is_made_anew(tmp_path: Path, hat: Product, cap: Product, name: str, cut: bool) -> None:
    """A file that is cut or missing costs nothing but time, and is mended."""
    expected = load_index([hat, cap], tmp_path).search(["straw"])
    file = only(tmp_path) / name
    whole = file.read_bytes()
    if cut:
        file.write_bytes(whole[: len(whole) // 2])
    else:
        file.unlink()
    assert load_index([hat, cap], tmp_path).search(["straw"]) == expected
    assert (only(tmp_path) / name).read_bytes() == whole


@pytest.mark.parametrize("mark", ["[]", "{}", '{"sizes": 3, "size": 1}', "null"])
def test_nonsense_is_made_anew(tmp_path: Path, hat: Product, mark: str) -> None:
    """A mark that is JSON but no mark counts as none."""
    load_index([hat], tmp_path)
    (only(tmp_path) / "complete.json").write_text(mark)
    assert load_index([hat], tmp_path).search(["straw"])
    assert json.loads((only(tmp_path) / "complete.json").read_text())["size"] == 1


def test_no_place_for_it(tmp_path: Path, hat: Product) -> None:
    """A cache that cannot be written is done without."""
    (tmp_path / "webshop").write_text("in the way")
    assert load_index([hat], tmp_path).search(["straw"])
    assert load_index([hat], None).search(["straw"])


def test_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``XDG_CACHE_HOME`` names it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "prover"
