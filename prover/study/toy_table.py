"""The table of the toy study: every method against plain GRPO, and against GRPO with as many turns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from prover.estimates import MeanInterval, mean_interval
from prover.study.toy import Method, Outcome, simulate

_PROVER = Method(selector="judge", continuations=2, weight=8.0)
_BIASED = replace(_PROVER, accuracy=0.3, error="biased", continuations=4)

METHODS: dict[str, Method] = {
    "GRPO, G 8": Method(),
    "GRPO, G 9": Method(group_size=9),
    "GRPO, G 10": Method(group_size=10),
    "GRPO, G 12": Method(group_size=12),
    "random turn, K 2, λ 8": replace(_PROVER, selector="random"),
    "judge .7, K 8, λ 1 (paper)": Method(selector="judge"),
    "judge .7, K 8, λ 8": replace(_PROVER, continuations=8),
    "judge .7, K 2 to 8, λ 8": replace(_PROVER, continuations=8, sequential=True),
    "judge .7, K 2, λ 4": replace(_PROVER, weight=4.0),
    "judge .7, K 2, λ 8": _PROVER,
    "judge .3, K 2, λ 8": replace(_PROVER, accuracy=0.3),
    "judge 1, K 2, λ 8": replace(_PROVER, accuracy=1.0),
    "judge .7, exact, λ 8": replace(_PROVER, continuations=None),
    "judge .7, K 2, λ 8, signed": replace(_PROVER, signed=True),
    "judge .7, K 2, λ 8, 1 to 7": replace(_PROVER, eligible_max=7),
    "judge .7, λ 8, trusted": replace(_PROVER, trusted=0.25),
    "biased .3, K 4, λ 8": _BIASED,
    "biased .3, K 4, λ 8, signed": replace(_BIASED, signed=True),
    "biased .3, K 4, λ 8, z > 1": replace(_BIASED, min_z=1.0),
    "biased .3, λ 8, trusted": replace(_BIASED, trusted=0.25),
    "every turn, K 1 (VinePPO)": Method(selector="every_turn", continuations=1),
    "every turn, K 8 (VinePPO)": Method(selector="every_turn", continuations=8),
}
"""What is compared, by its name in the table: the judge's accuracy, what else it names (any turn, or when biased the
worst one), continuations K (2 to 8: stopped early), the weight λ; trusted credit takes .25 for granted."""

_BASE, *_LARGER = list(METHODS)[:4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method; differences in % of GRPO's mean, paired by seed."""

    name: str
    area: float
    final: float
    turns: float
    against_grpo: MeanInterval | None
    against_budget: MeanInterval | None
    """Against the smallest of the larger groups that plays at least as many turns; None where none does."""
    budget: str
    """Name of that group size."""


def rows(seeds: Sequence[int], rate: float) -> Iterator[Row]:
    """Train all methods and yield their rows one by one, GRPO first."""
    done: dict[str, Outcome] = {}
    for name in (_BASE, *_LARGER, *(other for other in METHODS if other not in (_BASE, *_LARGER))):
        done[name] = outcome = simulate(replace(METHODS[name], rate=rate), seeds)
        larger = [other for other in _LARGER if other in done and done[other].turns.mean() >= outcome.turns.mean()]
        budget = "" if name in (_BASE, *_LARGER) or not larger else larger[0]
        yield Row(
            name=name,
            area=float(outcome.area.mean()),
            final=float(outcome.final.mean()),
            turns=float(outcome.turns.mean()),
            against_grpo=None if name == _BASE else difference(outcome, done[_BASE]),
            against_budget=difference(outcome, done[budget]) if budget else None,
            budget=budget,
        )


def difference(method: Outcome, base: Outcome) -> MeanInterval:
    """Difference of the areas in % of the base's mean, over seeds."""
    gains = 100 * (method.area - base.area) / np.mean(base.area)
    return mean_interval([float(gain) for gain in gains])


def show(found: Sequence[Row], n_seeds: int, rate: float, console: Console) -> None:
    """Print the table."""
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
        title=f"exact success rate while training, {n_seeds} seeds, rate {rate:g}",
    )
    for column in ("method", "area", "final", "k turns", "to GRPO %", "equal turns %"):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for row in found:
        rival = "" if row.against_budget is None else _shown(row.against_budget)
        base = "" if row.against_grpo is None else _shown(row.against_grpo)
        table.add_row(row.name, f"{row.area:.3f}", f"{row.final:.3f}", f"{row.turns / 1000:.0f}", base, rival)
    console.print(table)
    console.print(
        "Area: mean over the updates. Its difference to GRPO with groups of 8, and to GRPO with the smallest of the "
        "larger groups that plays no fewer turns; 95% intervals, paired by seed.",
        highlight=False,
    )


def _shown(mean: MeanInterval) -> str:
    half = "" if mean.high is None else f" ±{mean.high - mean.mean:.1f}"
    return f"{mean.mean:+.1f}{half}"
