"""Indexes on disk."""

from pathlib import Path

import pytest

from prover.retrieval.index_cache import cached, default_cache


class Words:
    """An index that is a list of words, and counts how often it is made and read."""

    def __init__(self) -> None:
        self.made = 0
        self.read = 0

    def open(self, cache: Path | None) -> list[str]:
        return cached("words-1", cache, make=self.make, read=self.load)

    def make(self, folder: Path | None) -> list[str]:
        self.made += 1
        if folder is not None:
            (folder / "first.txt").write_text("salt")
            (folder / "second.txt").write_text("sea")
        return ["salt", "sea"]

    def load(self, folder: Path) -> list[str]:
        self.read += 1
        return [(folder / "first.txt").read_text(), (folder / "second.txt").read_text()]


def test_made_once(tmp_path: Path) -> None:
    """The second time it is read."""
    words = Words()
    assert words.open(tmp_path) == words.open(tmp_path) == ["salt", "sea"]
    assert (words.made, words.read) == (1, 2)
    assert [path.name for path in (tmp_path / "retrieval").iterdir()] == ["words-1"]


@pytest.mark.parametrize("name", ["first.txt", "second.txt", "complete.json"])
@pytest.mark.parametrize("damage", ["cut", "missing", "changed"])
def test_damaged_is_made_anew(tmp_path: Path, name: str, damage: str) -> None:
    """A file that is cut, missing or changed costs nothing but time, and is mended."""
    words = Words()
    words.open(tmp_path)
    file = tmp_path / "retrieval" / "words-1" / name
    whole = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(whole[:-1] if damage == "cut" else whole[:-1] + b"?")
    assert words.open(tmp_path) == ["salt", "sea"]
    assert words.made == 2
    assert file.read_bytes() == whole


@pytest.mark.parametrize("mark", ["[]", "{}", '{"digests": {}}', '{"digests": 3}', '{"digests": {"first.txt": 3}}'])
def test_nonsense_is_made_anew(tmp_path: Path, mark: str) -> None:
    """A mark that is JSON but no mark counts as none."""
    words = Words()
    words.open(tmp_path)
    (tmp_path / "retrieval" / "words-1" / "complete.json").write_text(mark)
    words.open(tmp_path)
    assert words.made == 2


def test_no_place_for_it(tmp_path: Path) -> None:
    """A cache that cannot be written is done without."""
    words = Words()
    (tmp_path / "retrieval").write_text("in the way")
    assert words.open(tmp_path) == words.open(None) == ["salt", "sea"]
    assert (words.made, words.read) == (2, 0)


def test_another_process_was_faster(tmp_path: Path) -> None:
    """A whole index that appears meanwhile is taken, and nothing is left behind."""
    words, faster = Words(), Words()

    def make(folder: Path | None) -> list[str]:
        faster.open(tmp_path)
        return words.make(folder)

    assert cached("words-1", tmp_path, make=make, read=words.load) == ["salt", "sea"]
    assert (words.made, words.read, faster.made) == (1, 1, 1)
    assert [path.name for path in (tmp_path / "retrieval").iterdir()] == ["words-1"]


def test_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``XDG_CACHE_HOME`` names it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "prover"


def test_a_full_disk(tmp_path: Path) -> None:
    """An index that cannot be written to the end is kept in memory, and nothing is left behind."""
    words = Words()

    def make(folder: Path | None) -> list[str]:
        if folder is not None:
            (folder / "first.txt").write_text("sa")
            raise OSError("no space left on device")
        return words.make(None)

    assert cached("words-1", tmp_path, make=make, read=words.load) == ["salt", "sea"]
    assert list((tmp_path / "retrieval").iterdir()) == []
