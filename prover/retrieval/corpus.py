"""Passages from files, and what identifies a set of them.

A corpus is JSONL, one passage a line: ``{"id": ..., "title": ..., "text": ...}``, or ``{"id": ..., "contents": ...}``
where the first line of ``contents`` is the title in double quotes (the layout of Search-R1). ``.gz`` is unpacked.
"""

import gzip
import json
import zlib
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from prover.errors import DataError
from prover.retrieval.retriever import Passage

_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")


def read_corpus(path: Path) -> tuple[Passage, ...]:
    """The passages of a file, or of ``corpus.jsonl`` or ``corpus.jsonl.gz`` in a folder, in their order.

    Raises:
        DataError: there is no such file, or a line is no passage; the message names the line.
    """
    file = (
        next((path / name for name in _NAMES if (path / name).is_file()), path / _NAMES[0]) if path.is_dir() else path
    )
    try:
        content = file.read_bytes()
        if file.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"Expected a corpus (JSONL, or JSONL in gzip) at {file}, got {type(error).__name__}: {error}. Give the "
            "path of a file with one passage a line, or of a folder with corpus.jsonl."
        ) from error
    return tuple(_passage(line, file, number) for number, line in enumerate(content.split(b"\n"), start=1) if line)


def _passage(line: bytes, file: Path, number: int) -> Passage:
    try:
        row: Any = json.loads(line)
        title, text = (row.get("title", ""), row["text"]) if "text" in row else split_contents(row["contents"])
        if not all(isinstance(part, str) for part in (row["id"], title, text)):
            raise TypeError("id, title and text must be text")
        return Passage(id=row["id"], title=title, text=text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f'Expected {{"id": ..., "title": ..., "text": ...}} in line {number} of {file}, got '
            f"{type(error).__name__}: {error}. Correct the line."
        ) from error


def split_contents(contents: str) -> tuple[str, str]:
    r"""Title and text of a passage that is kept as one string: the title is the first line, in quotes or not.

    >>> split_contents('"Ada Lovelace"\nShe wrote the first program.')
    ('Ada Lovelace', 'She wrote the first program.')
    >>> split_contents("A line alone is the text.")
    ('', 'A line alone is the text.')
    """
    first, newline, rest = contents.partition("\n")
    if not newline:
        return "", contents
    quoted = len(first) > 1 and first[0] == first[-1] == '"'
    return (first[1:-1] if quoted else first), rest


def join_contents(passage: Passage) -> str:
    """A passage as one string; ``split_contents`` reads it back where the title is one line."""
    return f'"{passage.title}"\n{passage.text}'


def in_order(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages in the order of their ids, by which ties are broken.

    Raises:
        DataError: there are none, or an id is there twice.
    """
    ordered = tuple(sorted(passages, key=lambda passage: passage.id))
    if not ordered:
        raise DataError("Expected a corpus of at least one passage, got none. Check the file of the corpus.")
    for one, other in pairwise(ordered):
        if one.id == other.id:
            raise DataError(f"Expected passages with ids of their own, got {one.id!r} twice. Give each its own id.")
    return ordered


def digest(passages: Sequence[Passage]) -> str:
    """Hash of passages in the order of their ids: 64 hex digits, equal for equal sets."""
    whole = sha256()
    for passage in passages:
        # JSON, so that no text can pass for the end of another.
        whole.update(json.dumps((passage.id, passage.title, passage.text)).encode())
    return whole.hexdigest()
