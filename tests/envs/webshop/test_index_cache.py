"""The index on disk."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prover.envs.webshop import bm25, generated, index_cache
from prover.envs.webshop.index_cache import KINDS, Kind, load_index
from prover.envs.webshop.product import Product
from prover.errors import ConfigError


def only(path: Path) -> Path:
    """The one folder below the cache."""
    (found,) = (path / "webshop").iterdir()
    return found


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let making an index fail."""

    def fail(*products: object) -> None:
        raise AssertionError("an index was made")

    monkeypatch.setattr(index_cache, "_made", fail)


@pytest.mark.parametrize("kind", KINDS)
def test_made_once(tmp_path: Path, hat: Product, cap: Product, monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    """The second time it is read, and finds the same as one that is not on disk."""
    first = load_index([hat, cap], tmp_path, kind)
    inside = load_index([hat, cap], None, kind)
    forbid(monkeypatch)
    second = load_index([hat, cap], tmp_path, kind)
    for query in (["straw"], ["hat", "wool"], ["cap", "red"], ["nothing"]):
        assert second.search(query) == first.search(query) == inside.search(query)
    assert second.search(["straw"])[0][0] == hat.asin


def test_arrays_are_mapped(tmp_path: Path, hat: Product) -> None:
    """Nobody can change what all processes share."""
    index = load_index([hat], tmp_path)
    assert isinstance(index, bm25.Index)
    assert not index.divisors.flags.writeable


def test_kinds_lie_side_by_side(tmp_path: Path, hat: Product) -> None:
    """Each kind has its own folder, and says how it ranks."""
    assert [load_index([hat], tmp_path, kind).ranking for kind in KINDS] == [
        "Lucene-exact",
        "tantivy, not Lucene-exact",
    ]
    assert len(list((tmp_path / "webshop").iterdir())) == 2


def test_other_products_have_another_index(tmp_path: Path, hat: Product, cap: Product) -> None:
    """Each set of products has its own folder."""
    load_index([hat, cap], tmp_path)
    assert [asin for asin, _ in load_index([cap], tmp_path).search(["straw", "cap"])] == [cap.asin]
    assert len(list((tmp_path / "webshop").iterdir())) == 2


@pytest.mark.parametrize(
    "name", ["starts.npy", "documents.npy", "divisors.npy", "terms.txt", "ids.txt", "size.json", "complete.json"]
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


@pytest.mark.parametrize("cut", [True, False])
def test_half_written_by_tantivy_is_made_anew(tmp_path: Path, hat: Product, cap: Product, cut: bool) -> None:
    """The same for every file that tantivy wrote."""
    expected = load_index([hat, cap], tmp_path, "tantivy").search(["straw"])
    for name in json.loads((only(tmp_path) / "complete.json").read_text())["sizes"]:
        file = only(tmp_path) / name
        if not file.exists() or not (whole := file.read_bytes()):
            continue  # a lock, or a segment of the index before, whose name is drawn anew
        if cut:
            file.write_bytes(whole[: len(whole) // 2])
        else:
            file.unlink()
        assert load_index([hat, cap], tmp_path, "tantivy").search(["straw"]) == expected
        sizes = json.loads((only(tmp_path) / "complete.json").read_text())["sizes"]
        assert all((only(tmp_path) / name).stat().st_size == size for name, size in sizes.items())


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_do_not_fit_are_made_anew(tmp_path: Path, hat: Product, cap: Product, kind: Kind) -> None:
    """Files of the right sizes that are of another index."""
    expected = load_index([hat, cap], tmp_path, kind).search(["straw"])
    ids = only(tmp_path) / "ids.txt"
    terms = only(tmp_path) / ("terms.txt" if kind == "exact" else "ids.txt")
    terms.write_bytes(terms.read_bytes().replace(b"\n", b" "))
    assert load_index([hat, cap], tmp_path, kind).search(["straw"]) == expected
    assert ids.read_text() == f"{hat.asin}\n{cap.asin}"


@pytest.mark.parametrize("kind", KINDS)
def test_same_ranking_in_every_process(tmp_path: Path, kind: Kind) -> None:
    """Another process that opens the index, or makes its own, ranks the generated products alike."""
    products = generated.catalogue()[0]
    query = ["steel", "mug", "blue", "larg"]
    expected = load_index(products, tmp_path / "one", kind).search(query)
    assert len(expected) == 50
    code = (
        "import sys; from pathlib import Path; from prover.envs.webshop import generated\n"
        "from prover.envs.webshop.index_cache import load_index\n"
        f"print(load_index(generated.catalogue()[0], Path(sys.argv[1]), {kind!r}).search({query!r}))"
    )
    for cache in ("one", "two"):
        run = [sys.executable, "-c", code, str(tmp_path / cache)]
        path = ":".join(path for path in sys.path if path)
        done = subprocess.run(run, env={"PYTHONPATH": path}, capture_output=True, check=True, text=True)
        assert done.stdout.strip() == repr(expected)


def test_without_tantivy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hat: Product) -> None:
    """The message names the extra, before anything is written."""
    monkeypatch.setitem(sys.modules, "tantivy", None)
    monkeypatch.delitem(sys.modules, "prover.envs.webshop.tantivy_index", raising=False)
    with pytest.raises(ConfigError, match=r"index 'tantivy', got none .*pip install 'prover\[tantivy\]'"):
        load_index([hat], tmp_path, "tantivy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mark", ["[]", "{}", '{"sizes": 3}', "null"])
def test_nonsense_is_made_anew(tmp_path: Path, hat: Product, mark: str) -> None:
    """A mark that is JSON but no mark counts as none."""
    load_index([hat], tmp_path)
    (only(tmp_path) / "complete.json").write_text(mark)
    assert load_index([hat], tmp_path).search(["straw"])
    assert "ids.txt" in json.loads((only(tmp_path) / "complete.json").read_text())["sizes"]


def test_no_place_for_it(tmp_path: Path, hat: Product) -> None:
    """A cache that cannot be written is done without."""
    (tmp_path / "webshop").write_text("in the way")
    assert load_index([hat], tmp_path).search(["straw"])
    assert load_index([hat], None).search(["straw"])
