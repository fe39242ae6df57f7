"""The folder of a diagnosis.

::

    config.yaml      the config, every default spelt out; a folder holds one diagnosis
    batches.jsonl    one line per batch: what was sampled, named and measured
    gradients/       one file per batch: the gradients of all parts (sketches, for models above 65,536 parameters)
    summary.json     the figures
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prover import yaml_text
from prover.diagnosis.survey import Course
from prover.errors import ConfigError, DataError
from prover.json_lines import read_records
from prover.records import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What one selector said of one eligible group; one for each segment where it named several."""

    selector: str
    group: int
    outcome: str
    """As of a ``Verdict``."""
    segment: Segment | None = None
    """Where it was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What a batch tells."""

    batch: int
    """Number, from 0."""
    tasks: tuple[str, ...]
    """Of each group."""
    successes: tuple[int, ...]
    """Of each group."""
    sizes: tuple[int, ...]
    """Members of each group that finished."""
    eligible: tuple[int, ...]
    """Indices of the groups that are judged."""
    turns: int
    """Of all members."""
    invalid: int
    """Of these, turns without a valid action."""
    courses: tuple[Course, ...]
    """Surveyed runs; those of chosen successes first."""
    chosen: int
    """How many of the courses are of chosen successes."""
    named: tuple[Named, ...]
    costs: Mapping[str, int]
    """Turns of continuations that each part takes."""
    unmeasured: tuple[str, ...]
    """Why chosen successes could not be surveyed."""
    cpu_seconds: float

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "Batch":
        """Back from what ``asdict`` made of it, by way of JSON."""
        named = [
            Named(**{**one, "segment": None if one["segment"] is None else Segment(**one["segment"])})
            for one in record["named"]
        ]
        lists = {name: tuple(record[name]) for name in ("tasks", "successes", "sizes", "eligible", "unmeasured")}
        courses = tuple(Course.of_record(course) for course in record["courses"])
        return cls(**{**record, **lists, "courses": courses, "named": tuple(named)})


@dataclass(frozen=True, slots=True)
class Book:
    """Reads and writes the folder."""

    path: Path

    def begin(self, config: str) -> None:
        """Start, or go on with what is there.

        Raises:
            ConfigError: the folder holds a diagnosis of another config.
        """
        file = self.path / "config.yaml"
        if file.exists():
            held, wanted = (yaml_text.parse(text, str(file)) for text in (file.read_text(encoding="utf-8"), config))
            changed = sorted(key for key in held.keys() | wanted.keys() if held.get(key) != wanted.get(key))
            if changed:
                raise ConfigError(
                    f"expected the config of the diagnosis in {self.path}, got another one in {', '.join(changed)}; "
                    "choose another folder with --out"
                )
        (self.path / "gradients").mkdir(parents=True, exist_ok=True)
        file.write_text(config, encoding="utf-8")

    def append(self, batch: Batch, gradients: NDArray[np.float32]) -> None:
        """Add a batch: its gradients, shape (I, P), then the line that says it is complete."""
        np.save(self._gradients(batch.batch), gradients)
        with (self.path / "batches.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(batch), allow_nan=False) + "\n")

    def read(self) -> dict[int, Batch]:
        """All complete batches by number. A line that was being written is left out.

        Raises:
            DataError: a line is no batch.
        """
        read = read_records(self.path / "batches.jsonl", Batch.of_record, "a batch")
        return {batch.batch: batch for batch in read}

    def gradients(self, batches: Sequence[int]) -> list[NDArray[np.float32]]:
        """Gradients of batches, each of shape (I, P), read when they are looked at.

        Raises:
            DataError: a file is missing or damaged.
        """
        found = []
        for number in batches:
            file = self._gradients(number)
            try:
                found.append(np.load(file, mmap_mode="r", allow_pickle=False))
            except (OSError, ValueError, EOFError) as error:
                raise DataError(
                    f"expected gradients in {file}, got {type(error).__name__}: {error}; choose another folder with "
                    "--out"
                ) from error
        return found

    def _gradients(self, batch: int) -> Path:
        return self.path / "gradients" / f"{batch:06d}.npy"
