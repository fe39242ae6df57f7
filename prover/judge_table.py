"""What a person sees of a comparison of judges: what they found, what they cost, whether they agree."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prover.estimates import MeanInterval
from prover.judgements import NULL, Standing, Summary


def print_summary(summary: Summary, out: Path, console: Console | None = None) -> None:
    """The tables of a comparison, with what has to be known to read them."""
    console = console or Console()
    for table in (_found(summary), _cost(summary), _agreement(summary)):
        if table.row_count:
            console.print(table)
    notes = [
        f"{summary.stored} stored groups, {summary.eligible} eligible, {len(summary.left_out)} of these left out. "
        f"K = {summary.continuations} continuations before and after a segment.",
        "n: segments measured. delta: success rate after the segment minus before it; 95% intervals over tasks.",
        "minus random: less the delta of a random segment of the same length in the same success. About 0 or below, "
        "the judge finds nothing.",
    ]
    notes += [
        f"{one.judge} gave no answer in {one.failed} groups, for one: {one.failure[:600]} The same command asks again."
        for one in summary.judges
        if one.failed
    ]
    notes += [f"Left out, for one: {reason[:600]}" for reason in summary.left_out[:1]]
    notes += [
        f"APPROXIMATE: update {update} was continued by {policy}, not by the policy that sampled its groups."
        for update, policy in sorted(summary.approximate.items())
    ]
    notes.append(f"Every judgement: {out}/verdicts.jsonl; these figures: {out}/summary.json")
    console.print("\n".join(notes), highlight=False, markup=False, soft_wrap=True)


def _found(summary: Summary) -> Table:
    table = _table("What the judges found", "judge", "n", "positive %", "delta", "minus random")
    for one in summary.judges:
        against = "" if one.judge == NULL else _mean(one.delta_over_null)
        _row(table, one.judge, str(one.measured), _positive(one), _mean(one.delta), against)
    return table


def _cost(summary: Summary) -> Table:
    columns = ("judge", "groups", "valid %", "turns", "repairs", "failed", "tokens", "seconds")
    table = _table("What they named, and what it cost per group", *columns)
    for one in summary.judges:
        length = "n/a" if one.mean_length is None else f"{one.mean_length:.1f}"
        valid = "n/a" if one.valid_share is None else f"{100 * one.valid_share:.0f}"
        named = (str(one.judged), valid, length)
        seconds = f"{one.seconds:.0f}" if one.seconds >= 10 else f"{one.seconds:.2g}"
        _row(table, one.judge, *named, f"{one.repairs:.2f}", str(one.failed), f"{one.tokens:.0f}", seconds)
    return table


def _agreement(summary: Summary) -> Table:
    table = _table("Whether they name the same turns", "judges", "same %", "overlapping %", "groups")
    for pair in summary.agreement:
        shares = (f"{100 * share:.0f}" for share in (pair.identical, pair.overlapping))
        _row(table, " and ".join(pair.judges), *shares, str(pair.groups))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title, title_justify="left")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*map(escape, cells))


def _positive(one: Standing) -> str:
    if one.positive_share95 is None:
        return "n/a"
    low, high = one.positive_share95
    return f"{100 * one.positive / one.measured:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def _mean(mean: MeanInterval | None) -> str:
    if mean is None:
        return "n/a"
    if mean.low is None or mean.high is None:
        return _signed(mean.mean)
    return f"{_signed(mean.mean)} [{_signed(mean.low)}, {_signed(mean.high)}]"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("0.", ".", 1)
