"""The tables of a study, in Markdown: printed as they are, and kept as a file."""

from collections.abc import Iterator, Sequence

from prover.estimates import MeanInterval
from prover.study.record import Record
from prover.study.summary import ALL_STARTS, contrasts, rows

_FEWEST = 5
"""Seeds below which no difference is called certain: two or three agree by luck."""


def report(records: Sequence[Record], against: Sequence[str], *, about: str = "") -> str:
    """All tables, below a sentence on what is asked."""
    temperatures = list(records[0].after)
    parts = [_results(records, temperatures), _measured(records), _differences(records, against, temperatures)]
    return "\n\n".join([about, *parts] if about else parts) + "\n"


def _results(records: Sequence[Record], temperatures: Sequence[str]) -> str:
    """One line a start and method."""
    head = ["start", "method", "seeds", *(f"T={t}" for t in temperatures), "area", "k turns", "k tokens", "CPU s"]
    lines: list[Sequence[str]] = []
    for start in dict.fromkeys(record.start for record in records):
        lines += _before(records, start, temperatures)
        for row in rows([record for record in records if record.start == start]):
            rates = [_percent(row.after[t]) for t in temperatures]
            costs = [f"{row.turns / 1000:.1f}", f"{row.tokens / 1000:.0f}", f"{row.cpu:.0f}"]
            lines.append([start, row.method, str(row.seeds), *rates, _percent(row.area), *costs])
    n = min(record.episodes for record in records)
    updates = sorted({len(record.success_U) for record in records})
    title = (
        f"Success in %, mean over seeds ± half of the 95% interval: on {n} held-out episodes after "
        f"{' or '.join(map(str, updates))} updates, by temperature, and of the training episodes (area). "
        "Costs are those of a run, continuations included, evaluations not."
    )
    return title + "\n\n" + markdown(head, lines)


def _before(records: Sequence[Record], start: str, temperatures: Sequence[str]) -> Iterator[Sequence[str]]:
    for record in records:
        if record.start == start and record.before:
            rates = [f"{100 * record.before[t]:.1f}" for t in temperatures]
            yield [start, "before training", "", *rates, "", "", "", ""]
            return


def _measured(records: Sequence[Record]) -> str:
    """What the verifier measured, of the methods that measure."""
    lines = []
    for start, method in dict.fromkeys((record.start, record.method) for record in records):
        runs = [record for record in records if (record.start, record.method) == (start, method)]
        measured, credited = (sum(getattr(run, name) for run in runs) for name in ("measured", "credited"))
        if measured:
            delta = sum((run.mean_delta or 0.0) * run.measured for run in runs) / measured
            each = len(runs)
            lines.append([start, method, f"{measured / each:.0f}", f"{credited / each:.0f}", f"{delta:+.2f}"])
    title = "Segments of a run that were measured and that earned credit, and what the measured ones were worth."
    return title + "\n\n" + markdown(["start", "method", "measured", "credited", "mean delta"], lines)


def _differences(records: Sequence[Record], against: Sequence[str], temperatures: Sequence[str]) -> str:
    head = [
        "start",
        "method",
        "minus",
        "seeds",
        *(f"T={t}" for t in temperatures),
        "area",
        "area, equal turns",
        "turns",
    ]
    lines = [
        [
            "all starts" if found.start == ALL_STARTS else found.start,
            found.method,
            found.against,
            str(found.area.n),
            *(_points(found.after[t]) for t in temperatures),
            _points(found.area),
            _points(found.area_at_equal_turns),
            f"{100 * found.turns:.0f}%",
        ]
        for found in contrasts(records, against)
    ]
    title = (
        "Differences in points, paired by start and seed, ± half of the 95% interval over seeds; bold where it holds "
        f"no 0, from {_FEWEST} seeds on. Nothing is corrected for the number of comparisons; all runs are measured on "
        "the same tasks. The last column is the cost in turns relative to the other method."
    )
    return title + "\n\n" + markdown(head, lines)


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table with columns of equal width, so that it reads as plain text too."""
    widths = [max(len(line[column]) for line in (head, *lines)) for column in range(len(head))]
    rule = ["-" * width for width in widths]
    shown = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *lines)]
    return "\n".join(f"| {line} |" for line in (shown[0], " | ".join(rule), *shown[1:]))


def _percent(mean: MeanInterval) -> str:
    return f"{100 * mean.mean:.1f}" + _half(mean)


def _points(mean: MeanInterval) -> str:
    shown = f"{100 * mean.mean:+.1f}" + _half(mean)
    certain = mean.n >= _FEWEST and mean.low is not None and mean.high is not None and (mean.low > 0 or mean.high < 0)
    return f"**{shown}**" if certain else shown


def _half(mean: MeanInterval) -> str:
    return "" if mean.high is None else f" ±{100 * (mean.high - mean.mean):.1f}"
