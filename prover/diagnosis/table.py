"""What a person sees of a diagnosis: the groups, the values, the selectors, the gains, and what it all means."""

from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prover.diagnosis.conclusion import conclusion, delta
from prover.diagnosis.figures import Selector, Summary
from prover.diagnosis.rules import WEIGHTS
from prover.estimates import MeanInterval


def print_summary(summary: Summary, out: Path, console: Console | None = None) -> None:
    """The tables of a diagnosis, what has to be known to read them, and the conclusion."""
    console = console or Console()
    _say(console, *_groups(summary))
    for table in (_values(summary), _selectors(summary), *_gain_tables(summary)):
        if table.row_count:
            console.print(table)
    _say(console, *_notes(summary), f"Every batch: {out}/batches.jsonl; these figures: {out}/summary.json", "")
    _say(console, *conclusion(summary))


def _groups(summary: Summary) -> list[str]:
    shares = ", ".join(f"{number}: {100 * share:.0f}" for number, share in summary.by_successes.items())
    eligible = summary.eligible / summary.groups
    return [
        f"{summary.batches} batches, {summary.groups} groups of {summary.group_size}, "
        f"{summary.cpu_seconds:.0f} CPU-seconds, K = {summary.continuations}",
        f"success {_percent(summary.success)} %; turns without a valid action {100 * summary.invalid_share:.0f} %",
        f"groups by successes in %: {shares}; eligible {100 * eligible:.0f} % ({summary.surveyed} surveyed)",
    ]


def _values(summary: Summary) -> Table:
    table = _table("Values along a success", "turns behind", "success in %")
    for value in summary.values:
        _row(table, value.place, _percent(value.rate))
    if (found := summary.pivotality) is not None:
        _row(table, "", "")
        _row(table, "best turn", delta(found.best))
        _row(table, "random turn", delta(found.random))
        _row(table, "pivotality", delta(found.difference))
    return table


def _selectors(summary: Summary) -> Table:
    columns = ("selector", "fires %", "positive %", "delta", "minus random", "turns %")
    table = _table("Who points where", *columns)
    for one in summary.selectors:
        against = "" if one.over_random is None else delta(one.over_random)
        worth = "n/a" if one.delta is None else f"{one.delta.mean:+.2f}".replace("0.", ".", 1)
        fires = f"{100 * one.fired / max(one.asked, 1):.0f}"
        _row(table, one.name, fires, _positive(one), worth, against, f"{100 * one.turn_share:.0f}")
    return table


def _gains(summary: Summary, title: str, rules: Mapping[str, str]) -> Table:
    """Gains of some rules.

    Args:
        summary: All figures.
        title: Of the table.
        rules: What they are called in it -> what they are called in the figures.
    """
    columns = ("rule", *(f"λ {weight:g}" for weight in WEIGHTS), f"λ {WEIGHTS[1]:g}, equal\nturns", "extra\n%")
    table = _table(title, *columns)
    for name, rule in rules.items():
        at = {one.weight: one for one in summary.gains if one.rule == rule}
        shown = [_gain(at[weight].relative if weight in at else None) for weight in WEIGHTS]
        if None in at:  # A rule without a lambda stands in the first column.
            shown[0] = _gain(at[None].relative)
        middle = at.get(WEIGHTS[1]) or next(iter(at.values()))
        _row(table, name, *shown, _gain(middle.same_turns), f"{100 * middle.extra_turns:.0f}")
    return table


def _gain_tables(summary: Summary) -> tuple[Table, Table]:
    """One of who points, and one of what is made of the segments of the config's judge."""
    names = dict.fromkeys(one.rule for one in summary.gains)
    own = f"{summary.judge}, "
    judged = {name.removeprefix(own): name for name in names if name.startswith(own)}
    return (
        _gains(
            summary,
            "First-order gain of an update relative to GRPO, in %",
            {name: name for name in names if not name.startswith(own)},
        ),
        _gains(summary, f"The same, segments of {summary.judge}, with other settings", judged),
    )


def _notes(summary: Summary) -> list[str]:
    notes = [
        "delta: success rate after the segment minus before it. minus random: less that of a random segment of as many "
        "turns of the same success. turns %: share of continuations in all turns.",
        "Gains: inner product with the mean GRPO gradient of the other batches over the rule's size; ± and brackets: "
        "95 %; they hold for the first steps. equal turns: against GRPO with larger batches instead of continuations. "
        "extra %: turns of continuations per turn of the rollouts.",
    ]
    if (found := summary.pivotality) is not None:
        notes.append(
            "best turn: chosen by one set of continuations, measured by another; the first one claims "
            f"{found.claimed:+.2f}. pivotality: best turn minus random turn."
        )
    failed = [f"{one.name} in {one.failed}" for one in summary.selectors if one.failed]
    if failed:
        notes.append(f"Judges that failed: {', '.join(failed)} groups; the same command asks no second time.")
    if summary.unmeasured:
        notes.append(f"{len(summary.unmeasured)} successes could not be surveyed, for one: {summary.unmeasured[0]}")
    return notes


def _gain(mean: MeanInterval | None) -> str:
    if mean is None:
        return ""
    half = "" if mean.high is None else f" ±{100 * (mean.high - mean.mean):.0f}"
    return f"{100 * mean.mean:+.0f}{half}"


def _percent(mean: MeanInterval) -> str:
    if mean.low is None or mean.high is None:
        return f"{100 * mean.mean:.0f}"
    return f"{100 * mean.mean:.0f} [{100 * max(mean.low, 0):.0f}, {100 * min(mean.high, 1):.0f}]"


def _positive(one: Selector) -> str:
    if one.positive_share95 is None:
        return "n/a"
    low, high = one.positive_share95
    return f"{100 * one.positive / one.measured:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def _say(console: Console, *lines: str) -> None:
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title, title_justify="left")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*map(escape, cells))
