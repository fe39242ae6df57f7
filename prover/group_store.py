"""Groups on disk: what an update sampled, so that it can be judged again later.

Two files per update: ``update-000012.safetensors`` has the arrays of all token rows, ``update-000012.json`` the rest.
The latter is written last: an update without it was interrupted and is no stored one. What comes back equals what was
stored, bit for bit, but for the snapshots of environments. Those may be any picklable values, and nothing is unpickled
here: ``prover.retrace`` brings them back by acting again.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from prover.errors import DataError
from prover.records import EndReason, Failure, FailureCause, Group, Task, TokenRow, Trajectory, Turn

_FORMAT = 1
_NO_SUPPORT = -1
"""Length that stands for a token that was drawn from the whole vocabulary."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class StoredUpdate:
    """The groups of one update, on disk."""

    path: Path
    """The JSON file; the arrays lie beside it."""
    update: int
    """0-based number of the update: its groups were sampled after so many updates."""

    def load(self) -> list[Group]:
        """The groups, without snapshots.

        Raises:
            DataError: a file is missing, damaged or of another version.
        """
        try:
            record = json.loads(self.path.read_text(encoding="utf-8"))
            if record["format"] != _FORMAT:
                raise ValueError(f"format {record['format']} instead of {_FORMAT}")
            rows = _rows(load_file(self.path.with_suffix(".safetensors")))
            return [_group(group, rows) for group in record["groups"]]
        except Exception as error:
            raise DataError(
                f"expected the groups of update {self.update} in {self.path}, got {type(error).__name__}: {error}; "
                "remove the two files of this update"
            ) from error


def save(folder: Path, update: int, groups: Sequence[Group]) -> None:
    """Write the groups of an update; they are there whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"update-{update:06d}.json"
    arrays, aside = final.with_suffix(".safetensors"), final.with_suffix(".partial")
    final.unlink(missing_ok=True)
    save_file(_arrays([row for group in groups for run in group.trajectories for row in run.rows]), aside)
    aside.replace(arrays)
    record = {"format": _FORMAT, "update": update, "groups": [_group_record(group) for group in groups]}
    aside.write_text(json.dumps(record, allow_nan=False), encoding="utf-8")
    aside.replace(final)


def stored(folder: Path) -> list[StoredUpdate]:
    """The stored updates of a run, oldest first."""
    return [StoredUpdate(path, int(path.stem.removeprefix("update-"))) for path in sorted(folder.glob("update-*.json"))]


def prune(folder: Path, checkpoints: Collection[int], span: int) -> None:
    """Remove the updates that are not among the first ``span`` after the start or after one of the ``checkpoints``."""
    for found in stored(folder):
        nearest = max(number for number in (0, *checkpoints) if number <= found.update)
        if found.update - nearest >= span:
            found.path.unlink()
            found.path.with_suffix(".safetensors").unlink(missing_ok=True)


def _arrays(rows: Sequence[TokenRow]) -> Arrays:
    """All rows in few arrays. Log-probability, mask and support are those of sampled tokens: others have none."""
    supports = [
        support for row in rows for support, turn in zip(row.support, row.turn_of_token, strict=True) if turn >= 0
    ]
    sampled = [row.turn_of_token >= 0 for row in rows]
    return {
        "length": np.array([len(row) for row in rows], dtype=np.int64),
        "temperature": np.array([row.temperature for row in rows], dtype=np.float64),
        "ids": _joined([row.ids for row in rows], np.int32),
        "turn": _joined([row.turn_of_token for row in rows], np.int16),
        "loss_mask": _joined([row.loss_mask[mine] for row, mine in zip(rows, sampled, strict=True)], np.bool_),
        "logprob": _joined([row.logprobs[mine] for row, mine in zip(rows, sampled, strict=True)], np.float64),
        "support_length": np.array([_NO_SUPPORT if s is None else len(s) for s in supports], dtype=np.int32),
        "support": np.array([token for s in supports if s is not None for token in s], dtype=np.int32),
    }


def _joined(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([*parts, np.empty(0, dtype)]).astype(dtype)


def _rows(arrays: Mapping[str, NDArray[Any]]) -> Iterator[TokenRow]:
    """The rows again, in order."""
    ends = list(accumulate(arrays["length"].tolist(), initial=0))
    support_ends = list(accumulate(np.maximum(arrays["support_length"], 0).tolist(), initial=0))
    flat = arrays["support"].tolist()
    first = 0
    for start, end, temperature in zip(ends, ends[1:], arrays["temperature"].tolist(), strict=False):
        turns = arrays["turn"][start:end].astype(np.int64)
        places = np.flatnonzero(turns >= 0)
        mine = slice(first, first + len(places))
        mask, logprobs = np.zeros(end - start, np.bool_), np.zeros(end - start)
        mask[places], logprobs[places] = arrays["loss_mask"][mine], arrays["logprob"][mine]
        support: list[tuple[int, ...] | None] = [None] * (end - start)
        for number, place in enumerate(places.tolist(), first):
            if arrays["support_length"][number] != _NO_SUPPORT:
                support[place] = tuple(flat[support_ends[number] : support_ends[number + 1]])
        first = mine.stop
        yield TokenRow(
            ids=arrays["ids"][start:end].astype(np.int64),
            turn_of_token=turns,
            loss_mask=mask,
            logprobs=logprobs,
            support=tuple(support),
            temperature=temperature,
        )


def _group_record(group: Group) -> dict[str, Any]:
    return {
        "index": group.index,
        "env_seed": group.env_seed,
        "task": asdict(group.task),
        "trajectories": [_trajectory_record(trajectory) for trajectory in group.trajectories],
        "failures": [asdict(failure) for failure in group.failures],
    }


def _trajectory_record(trajectory: Trajectory) -> dict[str, Any]:
    # Snapshots may be anything and rows are in the other file: both are taken out before asdict copies them.
    bare = replace(trajectory, rows=(), turns=tuple(replace(turn, snapshot=None) for turn in trajectory.turns))
    record = asdict(bare) | {"rows": len(trajectory.rows)}
    for turn in record["turns"]:
        del turn["snapshot"]
    return record


def _group(record: Mapping[str, Any], rows: Iterator[TokenRow]) -> Group:
    return Group(
        index=record["index"],
        env_seed=record["env_seed"],
        task=Task(**record["task"]),
        trajectories=tuple(_trajectory(trajectory, rows) for trajectory in record["trajectories"]),
        failures=tuple(
            Failure(**failure | {"cause": FailureCause(failure["cause"])}) for failure in record["failures"]
        ),
    )


def _trajectory(record: Mapping[str, Any], rows: Iterator[TokenRow]) -> Trajectory:
    own = {
        "task": Task(**record["task"]),
        "turns": tuple(Turn(**turn) for turn in record["turns"]),
        "rows": tuple(next(rows) for _ in range(record["rows"])),
        "end": EndReason(record["end"]),
    }
    return Trajectory(**{**record, **own})
