"""The folder of a diagnosis."""

from pathlib import Path

import numpy as np
import pytest
from surveyed import batch

from prover.diagnosis.book import Book
from prover.errors import ConfigError, DataError

CONFIG = "seed: 0\noptim: {lr: 0.1}\n"
GRADIENTS = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """One with two batches."""
    found = Book(tmp_path / "out")
    found.begin(CONFIG)
    for number in range(2):
        found.append(batch(number), GRADIENTS + number)
    return found


def test_batches_come_back(book: Book) -> None:
    """Records and gradients are read as they were written."""
    assert book.read() == {0: batch(0), 1: batch(1)}
    assert [found.tolist() for found in book.gradients([1, 0])] == [[[2, 3], [4, 5]], [[1, 2], [3, 4]]]


def test_a_line_that_was_being_written_is_dropped(book: Book) -> None:
    """What an interruption left behind is made anew."""
    file = book.path / "batches.jsonl"
    file.write_text(file.read_text()[:-20])
    assert [*book.read()] == [0]
    book.append(batch(1), GRADIENTS)
    assert [*book.read()] == [0, 1]


def test_another_config_is_refused(book: Book) -> None:
    """The message names the sections that differ; the same config goes on."""
    book.begin(CONFIG)
    with pytest.raises(ConfigError, match=r"got another one in optim; choose another folder with --out"):
        book.begin(CONFIG.replace("0.1", "0.2"))


def test_damage_is_named(book: Book) -> None:
    """A line that is no batch, and gradients that are gone."""
    (book.path / "gradients" / "000001.npy").unlink()
    with pytest.raises(DataError, match=r"expected gradients in .*000001.npy, got FileNotFoundError"):
        book.gradients([0, 1])
    with (book.path / "batches.jsonl").open("a") as lines:
        lines.write('{"batch": 7}\n')
    with pytest.raises(DataError, match="expected a batch in line 3 of"):
        book.read()


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    """A diagnosis begins without batches."""
    assert Book(tmp_path).read() == {}
