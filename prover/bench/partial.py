"""Partial: the episodes of a measurement that goes on, one line each, so that an interruption loses none that ended."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from prover.errors import ConfigError, DataError
from prover.evaluate import Episode
from prover.folder import make_writable
from prover.records import Failure

_COMPARED = ("suite", "env", "tasks", "rules", "policy", "grader", "episodes", "seed", "temperature", "leak")
"""What must be equal for a measurement to go on."""


class Partial:
    """A file beside the result to come, open until the end of a ``with`` block.

    Its first line says what is measured; each other one is an episode.

    Args:
        path: where it lies.
        head: what is measured.
        resume: go on with what lies there.

    Raises:
        ConfigError: a measurement was begun there and is not to be resumed, or was one of something else; or nothing
            can be written there.
        DataError: what lies there is no such file.
    """

    def __init__(self, path: Path, head: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self.done: dict[int, Episode] = {}
        """Episodes that finished, by their place in the plan."""
        self.seconds = 0.0
        """Wall-clock seconds up to the last of them."""
        self.cost: dict[str, Any] = {}
        """What had been spent by then."""
        lines = [json.dumps({"head": dict(head)})]
        if path.exists():
            if not resume:
                raise ConfigError(
                    f"expected a new place for results, got {path}, a measurement that was interrupted; add --resume, "
                    "or choose another place with --out"
                )
            lines += self._read(head)
        make_writable(path.parent, "--out DIR")
        # Rewritten, since its last line may have been cut in the middle.
        aside = path.with_suffix(".aside")
        aside.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        aside.replace(path)
        self._empty = not self.done
        self._file = path.open("a", encoding="utf-8")

    def add(self, index: int, found: Episode | Failure, seconds: float, cost: Mapping[str, Any]) -> None:
        """Write down how an episode ended, ``seconds`` after the start and at what cost so far."""
        kind = "episode" if isinstance(found, Episode) else "failure"
        record = {"index": index, "seconds": round(seconds, 3), kind: asdict(found)} | dict(cost)
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        self._empty = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        if self._empty:  # What could not even begin leaves nothing behind to go on with.
            self.path.unlink()

    def _read(self, head: Mapping[str, Any]) -> list[str]:
        """Take in the episodes that finished; returns their lines. Failed ones are played again."""
        kept: list[str] = []
        stored = None
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except ValueError:  # The line that was being written when the measurement was stopped.
                continue
            if stored is None:
                stored = record.get("head", {})
                refuse_other(stored, head, self.path)
                continue
            self.seconds = max(self.seconds, record["seconds"])
            self.cost = {key: record[key] for key in record.keys() - {"index", "seconds", "episode", "failure"}}
            if "episode" in record:
                self.done[record["index"]] = Episode(**record["episode"])
                kept.append(line)
        if stored is None:
            raise DataError(f"expected a measurement that was interrupted, got {self.path} without a first line")
        return kept


def refuse_other(stored: Mapping[str, Any], head: Mapping[str, Any], path: Path) -> None:
    """Check that what was begun is what is asked for now.

    Raises:
        ConfigError: it is not.
    """
    odd = [key for key in _COMPARED if json.dumps(stored.get(key)) != json.dumps(head.get(key))]
    if odd:
        shown = "; ".join(f"{key} {stored.get(key)!r} then and {head.get(key)!r} now" for key in odd)
        raise ConfigError(
            f"expected to go on with what was begun in {path}, got another measurement: {shown}; choose another place "
            "with --out"
        )
