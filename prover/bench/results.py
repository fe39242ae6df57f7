"""Result files: where they lie, how they are read and put side by side."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prover.bench.contender import Contender
from prover.errors import DataError
from prover.evaluate import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Key:
    """What a result is of; results with equal keys are of one policy with several seeds, or old and new."""

    suite: str
    """Name of the suite; empty without one."""
    split: str
    policy: str
    temperature: float
    """0 for what has none."""


def file_name(suite: str, contender: Contender, temperature: float, seed: int) -> str:
    """Name of a result file, e.g. ``toy-random-s0.json``."""
    heat = f"-T{temperature:g}" if contender.sampled else ""
    return f"{suite}-{contender.name}{heat}-s{seed}.json"


def key_of(result: Evaluation) -> Key:
    """What a result is of."""
    policy = result.setting.get("policy", {})
    return Key(
        suite=result.setting.get("suite", {}).get("name", ""),
        split=result.split,
        policy=policy.get("name", ""),
        temperature=0.0 if policy.get("kind") in ("random", "expert") else result.temperature,
    )


def gathered(results: Iterable[Evaluation]) -> dict[Key, Evaluation]:
    """Results by what they are of: other seeds are joined, of equal seeds the last one counts.

    Raises:
        DataError: results with other seeds differ in more than that, such as in the version of their suite.
    """
    by_seed: dict[Key, dict[object, Evaluation]] = {}
    for result in results:
        by_seed.setdefault(key_of(result), {})[result.setting.get("seed")] = result
    found = {}
    for key, seeds in by_seed.items():
        first, *others = seeds.values()
        for other in others:
            if odd := _apart(first, other):
                raise DataError(
                    f"expected results of {key.suite or key.split} that differ in their seed alone, got {odd}; keep "
                    "them in folders of their own, or name the files"
                )
            first = first.joined(other)
        found[key] = first
    return found


def read(path: Path) -> dict[Key, Evaluation]:
    """Results of a run folder, of a folder of results or of one file, by what they are of.

    Raises:
        DataError: there are none, or a file holds none.
    """
    if path.is_dir():
        folder = path / "evaluations" if (path / "evaluations").is_dir() else path
        # Names of a run's results begin with the number of updates: the last one in order is the last one measured.
        files = sorted(folder.glob("*.json"))
    else:
        files = [path]
    found = gathered(Evaluation.load(file) for file in files)
    if not found:
        raise DataError(
            f"Expected result files (*.json) in {path}, got none. Evaluate first, with `prover eval`, or go on with an "
            "interrupted measurement with --resume."
        )
    return found


def _apart(first: Evaluation, other: Evaluation) -> str:
    """In what, besides seeds, two results differ that are to be one, in words; empty if in nothing."""
    sides = []
    for setting in (first.setting, other.setting):
        suite = setting.get("suite", {})
        own = {name: setting.get(name) for name in ("env", "tasks", "rules", "policy", "grader", "leak")}
        # Not the digest: the seeds of a manifest enter it.
        sides.append({"version": suite.get("version")} | own)
    one, two = sides
    # What was just measured has tuples where a file has lists.
    return "; ".join(
        f"{name} {one[name]} and {two[name]}" for name in one if json.dumps(one[name]) != json.dumps(two[name])
    )


def pairs(before: dict[Key, Evaluation], after: dict[Key, Evaluation]) -> list[tuple[Evaluation, Evaluation]]:
    """Results to compare: those of the same suite, split and temperature, where there is one.

    Raises:
        DataError: a side has several policies for one of them, or nothing fits together.
    """
    for side in (before, after):
        cells = [(key.suite, key.split, key.temperature) for key in side]
        if twice := next((cell for cell in cells if cells.count(cell) > 1), None):
            names = sorted(key.policy for key in side if (key.suite, key.split, key.temperature) == twice)
            raise DataError(
                f"Expected one policy a side, got {', '.join(names)} for {twice[0] or twice[1]}. Name the result files."
            )
    found = [
        (one, other)
        for key, one in before.items()
        for match, other in after.items()
        if (key.suite, key.split) == (match.suite, match.split)
        and (key.temperature == match.temperature or 0.0 in (key.temperature, match.temperature))
    ]
    if not found:
        if len(before) == len(after) == 1 and {key.temperature for key in before} == {key.temperature for key in after}:
            # Two single results are compared, or refused, for what they are.
            (one,), (other,) = before.values(), after.values()
            return [(one, other)]
        raise DataError(
            f"Expected results of the same suite, split and temperature, got {_words(before)} and {_words(after)}. "
            "Evaluate both alike."
        )
    return found


def _words(side: Iterable[Key]) -> str:
    return ", ".join(
        f"{key.suite or 'no suite'}, split {key.split}" + (f" at {key.temperature:g}" if key.temperature else "")
        for key in side
    )
