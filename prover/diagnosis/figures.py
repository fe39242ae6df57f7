"""What the batches of a diagnosis say, in figures: records in, a summary out.

Groups of one task are one piece of evidence, so intervals are over tasks; those of gains are over batches.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from prover.diagnosis.book import Batch, Named
from prover.diagnosis.gains import LEAST, Gain, Products, jackknife, relative_gain
from prover.diagnosis.rules import GRPO, Rules
from prover.diagnosis.survey import FIRST, SECOND, Course
from prover.estimates import MeanInterval, clustered_mean, wilson
from prover.records import Segment

_SHORT = 4
"""Turns of the median success up to which values are told by turn, not by quarter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """Success rate of continuations from one place along chosen successes."""

    place: str
    """Share of the turns behind it, as ``0.25``, or ``turn 1``."""
    rate: MeanInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivotality:
    """What the best turn of a success is worth beyond a random one, both measured afresh."""

    best: MeanInterval
    """Of the turn that the first pass chose, by the second."""
    random: MeanInterval
    """Of a random turn of the same success, by the second."""
    difference: MeanInterval
    claimed: float
    """Of the best turn by the pass that chose it: too large, since luck was chosen as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """How one selector did."""

    name: str
    asked: int
    """Eligible groups."""
    fired: int
    """Groups in which it named a segment that could be measured."""
    failed: int
    """Groups in which it raised or got no answer."""
    measured: int
    """Segments."""
    positive: int
    """Of these, with a positive difference in the first pass, as a run with K continuations would see it."""
    positive_share95: tuple[float, float] | None
    delta: MeanInterval | None
    """Mean difference by both passes."""
    over_random: MeanInterval | None
    """The same less that of a random segment of the same length in the same success."""
    turn_share: float
    """Turns of its continuations in all turns, those of the rollouts included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All figures of a diagnosis."""

    batches: int
    groups: int
    group_size: int
    continuations: int
    """K."""
    judge: str | None
    """The selector that the config names."""
    judged: bool
    """Whether the method of the config asks it."""
    success: MeanInterval
    invalid_share: float
    """Turns without a valid action."""
    by_successes: dict[int, float]
    """Share of groups by their number of successes."""
    eligible: int
    """Groups."""
    surveyed: int
    """Chosen successes of these."""
    unmeasured: tuple[str, ...]
    """Why the others could not be."""
    values: tuple[Value, ...]
    pivotality: Pivotality | None
    """None where no success has a turn that a judge may name."""
    selectors: tuple[Selector, ...]
    grpo: MeanInterval | None
    """First-order gain of GRPO itself, for judging whether there are batches enough; None for fewer than three."""
    gains: tuple[Gain, ...]
    cpu_seconds: float

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, allow_nan=False), encoding="utf-8")

    def selector(self, name: str | None) -> Selector | None:
        """The selector of that name, if there is one."""
        return next((one for one in self.selectors if one.name == name), None)


def summary(
    batches: Sequence[Batch],
    gradients: Sequence[NDArray[np.float32]],
    rules: Rules,
    *,
    judged: bool,
    group_size: int,
) -> Summary:
    """Everything that can be said of the batches.

    Args:
        batches: Their records, at least one.
        gradients: Of each batch, shape (I, P), by ``rules.parts()``.
        rules: What is compared.
        judged: Whether the config's method asks its judge.
        group_size: Members of a group.
    """
    sizes = Counter(successes for batch in batches for successes in batch.successes)
    n_groups, turns = sizes.total(), sum(batch.turns for batch in batches)
    chosen = [course for batch in batches for course in batch.courses[: batch.chosen]]
    grpo, gains = _gains(batches, gradients, rules)
    rates = [
        (task, successes / size)
        for batch in batches
        for task, successes, size in zip(batch.tasks, batch.successes, batch.sizes, strict=True)
        if size
    ]
    success = _mean(rates)
    assert success is not None, "a batch in which every episode failed stops the diagnosis"
    return Summary(
        batches=len(batches),
        groups=n_groups,
        group_size=group_size,
        continuations=rules.continuations,
        judge=rules.judge,
        judged=judged,
        success=success,
        invalid_share=sum(batch.invalid for batch in batches) / max(turns, 1),
        by_successes={number: sizes[number] / n_groups for number in sorted(sizes)},
        eligible=sum(len(batch.eligible) for batch in batches),
        surveyed=len(chosen),
        unmeasured=tuple(reason for batch in batches for reason in batch.unmeasured),
        values=_values(chosen),
        pivotality=_pivotality(chosen),
        selectors=tuple(_selector(name, batches, turns) for name in rules.selectors),
        grpo=grpo,
        gains=gains,
        cpu_seconds=sum(batch.cpu_seconds for batch in batches),
    )


def _values(courses: Sequence[Course]) -> tuple[Value, ...]:
    if not courses:
        return ()
    if (short := median(course.n_turns for course in courses)) <= _SHORT:
        places = [(f"turn {turn}", [(c, turn) for c in courses if turn < c.n_turns]) for turn in range(int(short))]
    else:
        quarters = [number / 4 for number in range(4)]
        places = [(f"{share:g}", [(c, int(share * c.n_turns)) for c in courses]) for share in quarters]
    means = [(place, _mean((course.task, course.value(turn)) for course, turn in found)) for place, found in places]
    return tuple(Value(place=place, rate=rate) for place, rate in means if rate is not None)


def _pivotality(courses: Sequence[Course]) -> Pivotality | None:
    best, random, claimed = list[tuple[str, float]](), list[tuple[str, float]](), list[float]()
    for course in courses:
        segment, average = course.best(), course.random_delta(1, (SECOND,))
        if segment is not None and average is not None:
            best.append((course.task, course.delta(segment, (SECOND,))))
            random.append((course.task, average))
            claimed.append(course.delta(segment, (FIRST,)))
    differences = [(task, mine - other) for (task, mine), (_, other) in zip(best, random, strict=True)]
    means = [_mean(values) for values in (best, random, differences)]
    if means[0] is None or means[1] is None or means[2] is None:
        return None
    return Pivotality(best=means[0], random=means[1], difference=means[2], claimed=fmean(claimed))


def _selector(name: str, batches: Sequence[Batch], turns: int) -> Selector:
    named = [(batch.batch, one) for batch in batches for one in batch.named if one.selector == name]
    courses = {(b.batch, course.group, course.trajectory): course for b in batches for course in b.courses}
    measured = [
        (courses[batch, one.group, one.segment.trajectory], one.segment)
        for batch, one in named
        if one.segment is not None
    ]
    positive = sum(course.delta(segment, (FIRST,)) > 0 for course, segment in measured)
    cost = sum(batch.costs[name] for batch in batches)
    return Selector(
        name=name,
        asked=sum(len(batch.eligible) for batch in batches),
        fired=len({(batch, one.group) for batch, one in named if one.segment is not None}),
        failed=len({(batch, one.group) for batch, one in named if _failed(one)}),
        measured=len(measured),
        positive=positive,
        positive_share95=wilson(positive, len(measured)),
        delta=_mean((course.task, course.delta(segment)) for course, segment in measured),
        over_random=_mean(_over_random(measured)),
        turn_share=cost / max(cost + turns, 1),
    )


def _failed(named: Named) -> bool:
    return named.outcome == "judge_failed" or named.outcome.startswith("no_proposal:judge_")


def _over_random(measured: Iterable[tuple[Course, Segment]]) -> list[tuple[str, float]]:
    found = []
    for course, segment in measured:
        random = course.random_delta(segment.length)
        if random is not None:
            found.append((course.task, course.delta(segment) - random))
    return found


def _gains(
    batches: Sequence[Batch], gradients: Sequence[NDArray[np.float32]], rules: Rules
) -> tuple[MeanInterval | None, tuple[Gain, ...]]:
    if len(batches) < LEAST:
        return None, ()
    names = rules.parts()
    products = Products.of(gradients)
    unit = dict(zip(names, np.eye(len(names)), strict=True))
    grpo, turns = products.direction(unit[GRPO]), sum(batch.turns for batch in batches)
    gains = []
    for one in rules.compared():
        weights = unit[GRPO] + (1.0 if one.weight is None else one.weight) * unit[one.part]
        direction = products.direction(weights if one.plus is None else weights + unit[one.plus])
        extra = sum(batch.costs[one.part] for batch in batches) / max(turns, 1)
        gains.append(
            Gain(
                rule=one.name,
                weight=one.weight,
                relative=relative_gain(direction, grpo),
                same_turns=relative_gain(direction, grpo, times=1 + extra),
                extra_turns=extra,
            )
        )
    return jackknife(grpo.gain, len(batches)), tuple(gains)


def _mean(values: Iterable[tuple[str, float]]) -> MeanInterval | None:
    """Mean of values by task; None without any."""
    by_task: dict[str, list[float]] = {}
    for task, value in values:
        by_task.setdefault(task, []).append(value)
    return clustered_mean(by_task) if by_task else None
