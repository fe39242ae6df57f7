"""Passages from files."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.errors import DataError
from prover.retrieval import Passage
from prover.retrieval.corpus import digest, in_order, join_contents, read_corpus, split_contents

ROWS = '{"id": "1", "title": "Tesk", "text": "A town."}\n{"id": "2", "contents": "\\"Vint\\"\\nBy the sea."}\n'
READ = (Passage(id="1", title="Tesk", text="A town."), Passage(id="2", title="Vint", text="By the sea."))


def plain(folder: Path) -> Path:
    """A file."""
    (folder / "p.jsonl").write_text(ROWS)
    return folder / "p.jsonl"


def packed(folder: Path) -> Path:
    """A file in gzip."""
    (folder / "p.jsonl.gz").write_bytes(gzip.compress(ROWS.encode()))
    return folder / "p.jsonl.gz"


def folder_of_plain(folder: Path) -> Path:
    """A folder with a file."""
    (folder / "corpus.jsonl").write_text(ROWS)
    return folder


def folder_of_packed(folder: Path) -> Path:
    """A folder with a file in gzip."""
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(ROWS.encode()))
    return folder


@pytest.mark.parametrize("place", [plain, packed, folder_of_plain, folder_of_packed])
def test_files_and_folders(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    """A corpus is a file or stands in a folder, packed or not; a title is a field or the first line."""
    assert read_corpus(place(tmp_path)) == READ


def test_a_title_may_be_left_out(tmp_path: Path) -> None:
    """A passage without a title has an empty one."""
    (tmp_path / "p.jsonl").write_text('{"id": "1", "text": "A town."}')
    assert read_corpus(tmp_path / "p.jsonl") == (Passage(id="1", title="", text="A town."),)


@pytest.mark.parametrize(
    "line", ["{", "[]", "null", '{"title": "t", "text": "x"}', '{"id": 3, "text": "x"}', '{"id": "3", "contents": 1}']
)
def test_a_line_that_is_no_passage_is_named(tmp_path: Path, line: str) -> None:
    """The message says which line of which file."""
    (tmp_path / "p.jsonl").write_text(ROWS + line)
    with pytest.raises(DataError, match=r"in line 3 of .*p\.jsonl"):
        read_corpus(tmp_path / "p.jsonl")


def test_missing_and_cut_files(tmp_path: Path) -> None:
    """A file that is not there, or is cut, is a fault of the data."""
    with pytest.raises(DataError, match=r"corpus\.jsonl"):
        read_corpus(tmp_path)
    cut = packed(tmp_path)
    cut.write_bytes(cut.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"p\.jsonl\.gz"):
        read_corpus(cut)


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"A "quoted" word"\nText', 'A "quoted" word', "Text"),
        ("Bare title\nText\nmore", "Bare title", "Text\nmore"),
        ('"\nText', '"', "Text"),
        ('""\nText', "", "Text"),
        ("", "", ""),
    ],
)
def test_titles_of_contents(contents: str, title: str, text: str) -> None:
    """One pair of quotes around the first line goes; everything else stays."""
    assert split_contents(contents) == (title, text)


@given(title=st.text().filter(lambda text: "\n" not in text), text=st.text())
def test_contents_read_back(title: str, text: str) -> None:
    """Joining and splitting is the identity."""
    assert split_contents(join_contents(Passage(id="", title=title, text=text))) == (title, text)


def test_order_and_hash_depend_on_the_set_alone() -> None:
    """The order of a file does not matter; every field does."""
    ordered = in_order(READ[::-1])
    assert ordered == READ
    assert digest(ordered) == digest(in_order(READ))
    others = [
        (READ[0], Passage(id="3", title="Vint", text="By the sea.")),
        (READ[0], Passage(id="2", title="VintB", text="y the sea.")),
        (READ[0], Passage(id="2", title="Vint", text="By the seA.")),
        READ[:1],
    ]
    assert len({digest(in_order(other)) for other in [READ, *others]}) == 5


def test_ids_are_their_own() -> None:
    """An id that is there twice, or no passage at all, is refused."""
    with pytest.raises(DataError, match="'1' twice"):
        in_order([READ[0], Passage(id="1", title="", text="x")])
    with pytest.raises(DataError, match="at least one passage"):
        in_order([])
