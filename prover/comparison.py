"""Two results side by side: paired by task, with intervals and p values, and a plain word on what they show.

A difference is shown when its p value is below 0.05: by McNemar's exact test where every task was played once on both
sides, by the paired permutation test over tasks otherwise. Overlapping intervals decide nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from prover.errors import DataError
from prover.estimates import MeanInterval, mcnemar, paired_difference, sign_flip
from prover.evaluate import Evaluation

LEVEL = 0.05
"""Differences with a p value below this are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two evaluations on the tasks that both played; every task counts the same."""

    before: float
    """Mean of the tasks' means."""
    after: float
    difference: MeanInterval
    """After minus before, paired by task, with its 95% interval."""
    p: float | None
    """Chance of a difference at least as large if there were none; None for fewer than two tasks."""
    test: str
    """``McNemar`` or ``permutation``."""

    @property
    def verdict(self) -> str:
        """What the difference shows, in words."""
        if self.p is None or self.p >= LEVEL:
            return "no difference shown"
        return "higher" if self.difference.mean > 0 else "lower"


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """Compare the success of two evaluations task by task.

    Raises:
        DataError: they share no task, or were measured on what must not be mistaken for each other.
    """
    refuse_unlike(before, after)
    return _paired(before.by_task(), after.by_task())


def compare_means(before: Evaluation, after: Evaluation) -> dict[str, Comparison]:
    """The same for the reward and the environment's metrics, of those that both sides have and measured alike."""
    refuse_unlike(before, after)
    first, second = before.values(), after.values()
    apart = _graded_apart(before, after)
    shared = [name for name in first if name not in apart and first[name].keys() & second.get(name, {}).keys()]
    return {name: _paired(first[name], second[name]) for name in shared}


def refuse_unlike(before: Evaluation, after: Evaluation) -> None:
    """Check that two evaluations may stand side by side.

    Raises:
        DataError: they are of other environments, suites, versions of a suite or data, or under other turn caps.
    """
    for what, one, other in (
        ("environment", *_both(before, after, "env")),
        ("suite", *_both(before, after, "suite", "name")),
        (
            f"version of suite {before.setting.get('suite', {}).get('name')!r}",
            *_both(before, after, "suite", "version"),
        ),
        ("turn cap", *_both(before, after, "rules", "max_turns")),
    ):
        # What an older or a bare result does not tell cannot be held against it.
        if one is not None and other is not None and one != other:
            raise DataError(
                f"expected two results of the same {what}, got {one} and {other}; their figures do not belong side by "
                "side: measure both alike"
            )
    labels = [evaluation.provenance.manifest.get("label") for evaluation in (before, after)]
    if labels[0] != labels[1]:
        raise DataError(
            f"expected two evaluations on the same data, got one on {labels[0] or 'data without a label'} and one on "
            f"{labels[1] or 'data without a label'}; their figures do not belong side by side"
        )


def differing_rules(before: Evaluation, after: Evaluation) -> list[str]:
    """How the two sides played differently, e.g. ``decoding: admissible, free``; to be shown beside the figures.

    What their environments say of the data is compared as well, where both say something.
    """
    first, second = (dict(side.setting.get("rules", {})) for side in (before, after))
    found = [f"{name}: {first[name]}, {second[name]}" for name in first if first[name] != second.get(name, first[name])]
    digests = _both(before, after, "suite", "digest")
    if None not in digests and digests[0] != digests[1]:
        found.append("settings of the suite: the manifest was changed or overridden on one side")
    if apart := _graded_apart(before, after):
        found.append(f"grader: other models or words, so that {', '.join(apart)} cannot be compared")
    one, other = (side.provenance.manifest for side in (before, after))
    return found + [f"data: other {name}" for name in one if one[name] != other.get(name, one[name])]


def _graded_apart(before: Evaluation, after: Evaluation) -> list[str]:
    """Figures that a grader gave on one side, and another on the other."""
    one, other = (side.setting.get("grader", {}) for side in (before, after))
    if not one or not other or one == other:
        return []
    return sorted({*one.get("figures", ()), *other.get("figures", ())})


def _both(before: Evaluation, after: Evaluation, *path: str) -> Sequence[Any]:
    def look(setting: Any) -> Any:
        for key in path:
            setting = setting.get(key) if isinstance(setting, Mapping) else None
        return setting

    return [look(before.setting), look(after.setting)]


def _paired(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]) -> Comparison:
    shared = sorted(before.keys() & after.keys())
    if not shared:
        raise DataError(
            f"expected evaluations that share tasks, got {len(before)} and {len(after)} tasks none in common; "
            "compare results of the same split"
        )
    first, second = ([fmean(side[task]) for task in shared] for side in (before, after))
    changes = [b - a for a, b in zip(first, second, strict=True)]
    once = all(len(side[task]) == 1 for side in (before, after) for task in shared)
    binary = once and set(first) | set(second) <= {0.0, 1.0}
    if len(shared) < 2:
        p = None
    elif binary:
        p = mcnemar(changes.count(-1.0), changes.count(1.0))
    else:
        p = sign_flip(changes)
    return Comparison(
        before=fmean(first),
        after=fmean(second),
        difference=paired_difference(first, second),
        p=p,
        test="McNemar" if binary else "permutation",
    )
