"""Folders of questions: what is read, what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from prover.envs.searchqa.library import open_library, refuse_overlap
from prover.envs.searchqa.question import Question
from prover.errors import DataError, UnknownNameError


def test_a_folder_of_ones_own(folder: Path) -> None:
    """A split a file, the usual ones first; fields as they are documented."""
    library = open_library(str(folder))
    assert library.splits == {"train": ("q1", "q2"), "test": ("q3", "q4"), "bamboo": ("q5",)}
    one, two, three, four, five = (library.questions[f"q{number}"] for number in range(1, 6))
    assert one == Question(
        id="q1",
        text="Where was Ada Quist born",
        answers=("Marrow Bay", "the Bay of Marrow"),
        dataset="one",
        supports=("Ada Quist",),
    )
    assert two.supports == ("Ada Quist", "Ben Lund")
    assert (three.supports, three.covered) == ((), True)
    assert (four.answers, four.supports, four.dataset) == (("a bridge",), (), "questions")
    assert five.covered is False
    assert [passage.title for passage in library.passages()] == ["Ada Quist", "Ben Lund", "Tall Bridge", "Trap"]
    assert library.manifest()["label"] == "SearchQA-mini"
    assert open_library(str(folder)) is library


def test_zipped_files(folder: Path) -> None:
    """Both kinds of files may be gzipped."""
    plain = open_library(str(folder))
    other = folder / "zipped"
    other.mkdir()
    for file in folder.glob("*.jsonl"):
        (other / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    library = open_library(str(other))
    assert library.manifest() == plain.manifest()
    assert library.corpus() == plain.corpus()


def test_the_environment_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder, $SEARCHQA_DATA names it; without that, the message says what to do."""
    monkeypatch.setenv("SEARCHQA_DATA", str(folder))
    assert open_library(None) is open_library(str(folder))
    monkeypatch.delenv("SEARCHQA_DATA")
    with pytest.raises(DataError, match=r"\$SEARCHQA_DATA is not set; set SEARCHQA_DATA or the option data"):
        open_library("")


def test_datasets(folder: Path) -> None:
    """Only the questions of the named ones are kept; an unknown one is refused."""
    library = open_library(str(folder), ["one"])
    assert library.splits == {"train": ("q1",), "test": ("q3",), "bamboo": ()}
    assert set(library.questions) == {"q1", "q3"}
    with pytest.raises(UnknownNameError, match="expected datasets among one, questions, two, got 'nine'"):
        open_library(str(folder), ["one", "nine"])


def test_hashes(folder: Path) -> None:
    """The hash of a split changes with its questions, that of the corpus with its passages and not with their order."""
    before = open_library(str(folder))
    other = folder / "other"
    other.mkdir()
    for file in folder.glob("*.jsonl"):
        lines = file.read_text().splitlines(keepends=True)
        (other / file.name).write_text("".join(reversed(lines)))
    after = open_library(str(other))
    assert before.corpus() == after.corpus()
    assert before.corpus()["passages"] == 4
    assert before.digest("train") != after.digest("train")
    assert before.digest("bamboo") == after.digest("bamboo")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "got in line 2 the line: Invalid JSON"),
        ("[]", "got in line 2 the line: "),
        ('{"question": "?", "answers": ["a"]}', "got in line 2 id: Field required"),
        ('{"id": "x", "question": "", "answers": ["a"]}', "got in line 2 question: "),
        ('{"id": "x", "question": "?", "answers": []}', "got in line 2 answers: "),
        ('{"id": "x", "question": "?", "answers": "a"}', "got in line 2 answers: "),
        ('{"id": 7, "question": "?", "answers": ["a"]}', "got in line 2 id: "),
        ('{"id": "q1", "question": "?", "answers": ["a"]}', "the id 'q1' is there twice"),
    ],
)
def test_damaged_lines(folder: Path, line: str, message: str) -> None:
    """The message names file, line and field."""
    file = folder / "train.jsonl"
    file.write_text(file.read_text().splitlines()[0] + "\n" + line + "\n")
    with pytest.raises(DataError, match=r"in every line of .*train\.jsonl") as found:
        open_library(str(folder))
    assert message in str(found.value)


def test_damaged_archive(folder: Path) -> None:
    """A file that only pretends to be gzipped is named."""
    (folder / "more.jsonl.gz").write_text("no archive")
    with pytest.raises(DataError, match=r"more\.jsonl\.gz, got in line 0 BadGzipFile"):
        open_library(str(folder))


@pytest.mark.parametrize(("name", "got"), [("nowhere", "got no such folder"), ("bare", r"got corpus\.jsonl")])
def test_no_questions(folder: Path, name: str, got: str) -> None:
    """A folder that is not there, or holds passages only."""
    (folder / "bare").mkdir()
    (folder / "bare" / "corpus.jsonl").write_text("")
    with pytest.raises(DataError, match=got):
        open_library(str(folder / name))


def questions(*texts: str) -> list[Question]:
    """Questions whose ids are the words before the colon."""
    return [
        Question(id=text.partition(":")[0], text=text.partition(":")[2], answers=("a",), dataset="d") for text in texts
    ]


def test_overlap_is_refused() -> None:
    """Ids 5 to 9 in two splits, and one text that differs by case and a sign only, are counted."""
    test = questions(*(f"t{number}: Who is {number}?" for number in range(5)))
    dev = questions(*(f"t{number}: Who is {number}?" for number in range(5, 10)))
    train = questions(*(f"t{number}: Who is {number}?" for number in range(10, 20)))
    refuse_overlap({"train": train, "dev": dev, "test": test})
    with pytest.raises(DataError, match="'train' and 'dev' 5 ids and 5 texts"):
        refuse_overlap({"train": [*dev, *train], "dev": dev, "test": test})
    with pytest.raises(DataError, match="'train' and 'test' 0 ids and 1 texts"):
        refuse_overlap({"train": [*train, *questions("t99: who is  3")], "dev": dev, "test": test})


def test_overlap_in_a_folder(folder: Path) -> None:
    """It is refused when the folder is opened."""
    row: dict[str, Any] = {"id": "q9", "question": "where was ada quist BORN?", "answers": ["x"]}
    (folder / "dev.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="shared by 'train' and 'dev' 0 ids and 1 texts"):
        open_library(str(folder))


def test_real_questions(real: Path) -> None:
    """The published splits load whole, with their passages, and share no question."""
    library = open_library(str(real))
    sizes = {split: len(ids) for split, ids in library.splits.items()}
    assert sizes == {"train": 700, "dev": 709, "test": 2699, "bamboogle_nopassages": 125}
    assert sum(bool(question.supports) for question in library.questions.values()) == 3284
    assert sum(not question.covered for question in library.questions.values()) == 125
    assert library.corpus()["passages"] == 37877
    titles = {passage.title for passage in library.passages()}
    assert all(title in titles for question in library.questions.values() for title in question.supports)
