"""Library: questions in splits, and the passages to find their answers in; opened once per process.

A folder of your own holds, as JSONL, plain or gzipped,

* one file of questions a split, named for it (``train.jsonl``, ``dev.jsonl.gz``, ...), a question a line:
  ``{"id": ..., "question": ..., "answers": [...]}``; ``golden_answers`` is read as well. Optional: ``dataset``, by
  which results are reported; ``supporting_titles``, in the order in which they are needed; ``support``, where
  ``answer-match`` says that these titles are guesses, which are not scored, and ``none`` that the corpus has nothing on
  the question;
* ``corpus.jsonl``, a passage a line: ``{"id": ..., "title": ..., "text": ...}`` (see ``prover.retrieval.corpus``). It
  can be missing where the retriever is a server.
"""

import gzip
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from prover.envs.searchqa import generated
from prover.envs.searchqa.question import Question
from prover.errors import DataError, UnknownNameError
from prover.retrieval.corpus import digest, in_order, read_corpus
from prover.retrieval.retriever import Passage

VARIABLE = "SEARCHQA_DATA"
"""The environment variable that names the folder."""
_CORPUS = "corpus"
_ENDINGS = (".jsonl", ".jsonl.gz")


class _Row(BaseModel):
    """A line of a file of questions."""

    model_config = ConfigDict(strict=True, frozen=True)

    id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    answers: list[str] = Field(min_length=1, validation_alias=AliasChoices("answers", "golden_answers"))
    dataset: str = "questions"
    supporting_titles: list[str] = []
    support: Literal["gold", "answer-match", "none"] = "gold"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Library:
    """Questions and where their passages come from."""

    label: str
    """Says with every result what it was measured on."""
    questions: Mapping[str, Question]
    """By id."""
    splits: Mapping[str, tuple[str, ...]]
    """Split -> ids of its questions, always in the same order."""
    source: str
    """``generated``, or the folder."""

    def passages(self) -> tuple[Passage, ...]:
        """The corpus, read once per process when it is first asked for.

        Raises:
            DataError: there is none, or it is damaged.
        """
        return _passages(self.source)

    def digest(self, split: str) -> str:
        """Hash of a split's questions and their order: two runs with equal hashes asked the same."""
        whole = blake2b(digest_size=8)
        for question in map(self.questions.__getitem__, self.splits[split]):
            whole.update("\0".join((question.id, question.text, *question.answers, "\n")).encode("utf-8", "replace"))
        return whole.hexdigest()

    def manifest(self) -> dict[str, Any]:
        """What identifies the questions: their numbers and hashes by split."""
        sizes = {split: {"questions": len(ids), "hash": self.digest(split)} for split, ids in self.splits.items()}
        return {"label": self.label, "splits": sizes}

    def corpus(self) -> dict[str, Any]:
        """What identifies the corpus: its number of passages and their hash, whatever their order; as ``passages``."""
        passages = self.passages()
        return {"passages": len(passages), "sha256": digest(in_order(passages))}


def open_library(data: str | None, datasets: Sequence[str] | None = None) -> Library:
    """A library. The same arguments give the same object again, shared and read-only.

    Args:
        data: ``generated``, a folder, or empty for the folder in ``$SEARCHQA_DATA``.
        datasets: keep the questions of these only.

    Raises:
        DataError: data are missing or damaged, or splits share questions.
        UnknownNameError: no question is of one of the datasets.
    """
    if not data:
        data = os.environ.get(VARIABLE, "")
        if not data:
            raise DataError(f"expected a folder with questions, got none: ${VARIABLE} is not set; {_how_to_get()}")
    return _open(data, None if datasets is None else tuple(sorted(datasets)))


def refuse_overlap(splits: Mapping[str, Sequence[Question]]) -> None:
    """Check that no two splits share a question.

    Raises:
        DataError: some share an id or a text, as it is compared; the message counts them.
    """
    found = []
    for one, two in combinations(splits, 2):
        ids = {question.id for question in splits[one]} & {question.id for question in splits[two]}
        texts = {question.plain for question in splits[one]} & {question.plain for question in splits[two]}
        if ids or texts:
            example = sorted(ids or texts)[0]
            found.append(f"{one!r} and {two!r} {len(ids)} ids and {len(texts)} texts, e.g. {example!r}")
    if found:
        raise DataError(
            f"expected splits to share no question, got shared by {'; by '.join(found)}: leave these out of one of them"
        )


@lru_cache(maxsize=8)
def _open(data: str, datasets: tuple[str, ...] | None) -> Library:
    if data == "generated":
        label, splits = "SearchQA-generated", {**generated.encyclopedia().splits}
    else:
        label, splits = "SearchQA-mini", _splits(Path(data).expanduser())
    refuse_overlap(splits)
    if datasets is not None:
        known = {question.dataset for questions in splits.values() for question in questions}
        for name in datasets:
            if name not in known:
                raise UnknownNameError(f"expected datasets among {', '.join(sorted(known))}, got {name!r}; name these")
        splits = {split: tuple(q for q in questions if q.dataset in datasets) for split, questions in splits.items()}
    return Library(
        label=label,
        questions={question.id: question for questions in splits.values() for question in questions},
        splits={split: tuple(question.id for question in questions) for split, questions in splits.items()},
        source=data,
    )


@lru_cache(maxsize=2)
def _passages(data: str) -> tuple[Passage, ...]:
    return generated.encyclopedia().passages if data == "generated" else read_corpus(Path(data).expanduser())


def _splits(folder: Path) -> dict[str, tuple[Question, ...]]:
    """The questions of a folder, by split; train, dev and test come first."""
    files: dict[str, Path] = {}
    for file in sorted(folder.glob("*.jsonl*")):
        name, dot, ending = file.name.partition(".")
        if name != _CORPUS and dot + ending in _ENDINGS:
            files.setdefault(name, file)
    if not files:
        found = ", ".join(sorted(file.name for file in folder.iterdir())[:10]) if folder.is_dir() else "no such folder"
        raise DataError(
            f"expected files of questions (train.jsonl, test.jsonl, ...) in {folder}, got {found or 'nothing'}; "
            f"{_how_to_get()}"
        )
    usual = ("train", "dev", "test")
    order = sorted(files, key=lambda name: (usual.index(name) if name in usual else len(usual), name))
    return {name: _read(files[name]) for name in order}


def _read(file: Path) -> tuple[Question, ...]:
    questions: dict[str, Question] = {}
    number = 0
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):  # noqa: B007 - the message says how far it got
                if not line.strip():
                    continue
                question = _question(_Row.model_validate_json(line))
                if question.id in questions:
                    raise ValueError(f"the id {question.id!r} is there twice")
                questions[question.id] = question
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}"
        raise DataError(_bad_line(file, number, problem)) from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(_bad_line(file, number, f"{type(error).__name__}: {error}")) from error
    return tuple(questions.values())


def _question(row: _Row) -> Question:
    return Question(
        id=row.id,
        text=" ".join(row.question.split()),
        answers=tuple(row.answers),
        dataset=row.dataset,
        supports=tuple(dict.fromkeys(row.supporting_titles)) if row.support == "gold" else (),
        covered=row.support != "none",
    )


def _bad_line(file: Path, number: int, problem: str) -> str:
    return (
        f'expected {{"id": ..., "question": ..., "answers": [...]}} in every line of {file}, got in line {number} '
        f"{problem}; correct it"
    )


def _how_to_get() -> str:
    return (
        f"set {VARIABLE} or the option data to a folder with train.jsonl, test.jsonl and corpus.jsonl, or use "
        "data='generated', which needs no files"
    )
