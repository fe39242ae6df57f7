"""What the records of a study say: means over seeds, and differences paired by start and seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from prover.estimates import MeanInterval, mean_interval
from prover.study.record import Record

ALL_STARTS = "*"
"""Stands for the runs of all start policies together; no start can have that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method from one start policy."""

    start: str
    method: str
    seeds: int
    after: Mapping[str, MeanInterval]
    """Success on held-out tasks after training, by temperature."""
    area: MeanInterval
    """Mean success of the training episodes over the updates."""
    turns: float
    tokens: float
    cpu: float
    """Means per run: environment turns, sampled tokens and CPU-seconds, continuations included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A method minus another one with the same starts and seeds.

    Runs of one seed have their tasks in common, whatever they start from. So seeds are what is independent: of all
    starts together each seed counts once, with its mean over the starts, if it is done from all of them.
    """

    start: str
    method: str
    against: str
    after: Mapping[str, MeanInterval]
    """Difference of the success on held-out tasks by temperature."""
    area: MeanInterval
    """Difference of the areas at equal updates."""
    area_at_equal_turns: MeanInterval
    """The same up to the number of turns that both runs took."""
    turns: float
    """Turns of the method's runs over those of the other's."""


def rows(records: Sequence[Record]) -> list[Row]:
    """Every method from every start, in the order of the records."""
    pairs = dict.fromkeys((record.start, record.method) for record in records)
    return [_row(start, method, _of(records, start, method)) for start, method in pairs]


def contrasts(records: Sequence[Record], against: Sequence[str]) -> list[Contrast]:
    """Every method against some, from every start and, where there are several, from all together.

    Only pairs of which both runs are done count; a method without any is left out.
    """
    starts = list(dict.fromkeys(record.start for record in records))
    methods = dict.fromkeys(record.method for record in records)
    found = []
    for start in [*starts, ALL_STARTS] if len(starts) > 1 else starts:
        for other in against:
            for method in methods:
                pairs = _pairs(_of(records, start, other), _of(records, start, method))
                shown = method in against[: against.index(other)]  # the other way round
                if method != other and pairs and not shown:
                    found.append(_contrast(start, method, other, pairs))
    return found


def area(success_U: ArrayLike, turns_U: ArrayLike, limit: float) -> float:  # noqa: N803 - shape suffix
    """Mean success over the first ``limit`` turns: each update counts with its turns, the last one with what is left.

    >>> area([0.2, 0.4, 0.9], [10, 10, 10], limit=15)
    0.26666666666666666
    """
    success, turns = np.asarray(success_U, dtype=float), np.asarray(turns_U, dtype=float)
    ahead = np.array([0.0, *accumulate(turns)][:-1])
    weights = np.clip(limit - ahead, 0.0, turns)
    return float((success * weights).sum() / weights.sum())


def _row(start: str, method: str, runs: Sequence[Record]) -> Row:
    return Row(
        start=start,
        method=method,
        seeds=len(runs),
        after={t: mean_interval([run.after[t] for run in runs]) for t in runs[0].after},
        area=mean_interval([_mean_success(run) for run in runs]),
        turns=float(np.mean([sum(run.turns_U) for run in runs])),
        tokens=float(np.mean([sum(run.tokens_U) for run in runs])),
        cpu=float(np.mean([sum(run.cpu_U) for run in runs])),
    )


def _contrast(start: str, method: str, other: str, pairs: Sequence[tuple[Record, Record]]) -> Contrast:
    return Contrast(
        start=start,
        method=method,
        against=other,
        after={t: _over_seeds(pairs, partial(_gain_after, t)) for t in pairs[0][0].after},
        area=_over_seeds(pairs, lambda other, run: _mean_success(run) - _mean_success(other)),
        area_at_equal_turns=_over_seeds(pairs, _gain_at_equal_turns),
        turns=sum(sum(run.turns_U) for _, run in pairs) / sum(sum(run.turns_U) for run, _ in pairs),
    )


def _over_seeds(pairs: Sequence[tuple[Record, Record]], gain: Callable[[Record, Record], float]) -> MeanInterval:
    of_seed: dict[int, list[float]] = {}
    for other, run in pairs:
        of_seed.setdefault(run.seed, []).append(gain(other, run))
    starts = max(map(len, of_seed.values()))
    return mean_interval([fmean(gains) for gains in of_seed.values() if len(gains) == starts])


def _gain_after(temperature: str, other: Record, run: Record) -> float:
    return run.after[temperature] - other.after[temperature]


def _gain_at_equal_turns(other: Record, run: Record) -> float:
    limit = min(sum(other.turns_U), sum(run.turns_U))
    return area(run.success_U, run.turns_U, limit) - area(other.success_U, other.turns_U, limit)


def _mean_success(run: Record) -> float:
    return float(np.mean(run.success_U))


def _of(records: Sequence[Record], start: str, method: str) -> list[Record]:
    return [run for run in records if run.method == method and start in (run.start, ALL_STARTS)]


def _pairs(others: Sequence[Record], runs: Sequence[Record]) -> list[tuple[Record, Record]]:
    of = {(other.start, other.seed): other for other in others}
    return [(of[run.start, run.seed], run) for run in runs if (run.start, run.seed) in of]
