"""What a study keeps of a run: a curve and the figures measured before and after, small enough to be published."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from prover.errors import DataError
from prover.evaluate import Evaluation
from prover.json_lines import read_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One finished run. Curves have one value per update, shape (U,)."""

    start: str
    method: str
    seed: int
    success_U: tuple[float, ...]  # noqa: N815 - shape suffix
    """Share of the update's episodes that succeeded, sampled by the policy before the update."""
    turns_U: tuple[int, ...]  # noqa: N815 - shape suffix
    """Environment turns of rollouts and continuations; those of null probes are no part of a method."""
    tokens_U: tuple[int, ...]  # noqa: N815 - shape suffix
    """Tokens that the policy sampled in them."""
    cpu_U: tuple[float, ...]  # noqa: N815 - shape suffix
    """CPU-seconds of the update."""
    measured: int
    """Segments whose worth was measured."""
    credited: int
    """Segments that earned credit."""
    mean_delta: float | None
    """Mean worth of the measured segments."""
    before: Mapping[str, float]
    """Success on held-out tasks before training by temperature; empty where another run of the start measured it."""
    after: Mapping[str, float]
    """The same after it."""
    episodes: int
    """Episodes of each of these."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Which run of the plan it is: start, method and seed."""
        return (self.start, self.method, self.seed)

    @classmethod
    def of_run(cls, start: str, method: str, seed: int, folder: Path, results: Sequence[Sequence[Evaluation]]) -> Self:
        """What the folder of a run tells.

        Args:
            start: Name of the policy that it started from.
            method: Name of the method.
            seed: Its seed.
            folder: The run folder.
            results: Evaluations before and after, by temperature each.
        """
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        before, after = ({f"{result.temperature:g}": result.rate for result in side} for side in results)
        measured = sum(line["measured"] for line in lines)
        deltas = sum(line["mean_delta"] * line["measured"] for line in lines if line["measured"])
        return cls(
            start=start,
            method=method,
            seed=seed,
            success_U=tuple(line["success"] for line in lines),
            turns_U=tuple(line["turns"] + line["verifier_turns"] for line in lines),
            tokens_U=tuple(line["tokens"] + line["verifier_tokens"] for line in lines),
            cpu_U=tuple(round(sum(line["cpu_seconds"].values()), 3) for line in lines),
            measured=measured,
            credited=sum(line["outcomes"].get(name, 0) for line in lines for name in ("credited", "trusted")),
            mean_delta=deltas / measured if measured else None,
            before=before,
            after=after,
            episodes=results[1][0].n,
        )

    @classmethod
    def of_json(cls, record: Mapping[str, Any]) -> Self:
        """Back from what ``json`` made of it."""
        curves: dict[str, Any] = {name: tuple(record[name]) for name in ("success_U", "turns_U", "tokens_U", "cpu_U")}
        return cls(**{**record, **curves})

    def json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))


def read(path: Path) -> list[Record]:
    """Records of a file of lines.

    Raises:
        DataError: it is not there, or a line is no record.
    """
    if not path.is_file():
        raise DataError(f"expected records of a study in {path}, found no such file; name a records.jsonl")
    return read_records(path, Record.of_json, "the record of a run")
