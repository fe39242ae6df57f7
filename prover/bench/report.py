"""What a person sees of measurements: a progress bar, a table of results, and results side by side.

Success is in %, other measures are as they are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from prover.bench.measurement import Watch
from prover.bench.results import Key, key_of
from prover.comparison import Comparison, compare, compare_means, differing_rules
from prover.evaluate import Evaluation, percent


@contextmanager
def progress(label: str, console: Console) -> Iterator[Watch]:
    """A bar for one measurement, where there is a terminal; it leaves nothing behind."""
    if not console.is_terminal:
        yield lambda done, total, successes, failures: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)
    task = bar.add_task(escape(label), total=None, figures="")

    def watch(done: int, total: int, successes: int, failures: int) -> None:
        figures = f"success {successes / done:.0%}" if done else ""
        bar.update(task, completed=done, total=total, figures=figures + (f", FAILED {failures}" if failures else ""))

    with bar:
        yield watch


def summary(results: Mapping[Key, Evaluation]) -> list[RenderableType]:
    """All results in one table, and one per suite with several task types."""
    table = _table("suite", "policy", "T", "success in %", "besides", "tasks", "n", "seconds")
    for key, result in results.items():
        table.add_row(
            *map(
                escape,
                (
                    key.suite or key.split,
                    key.policy,
                    f"{key.temperature:g}" if key.temperature else "",
                    percent(result.rate if result.n else None, result.interval()),
                    "\n".join(_besides(result)),
                    str(len(result.by_task())),
                    str(result.n),
                    f"{result.setting.get('seconds', 0):.0f}",
                ),
            )
        )
    leaks = {f"LEAKED SPLIT: {leak}" for result in results.values() if (leak := result.setting.get("leak"))}
    shown: list[RenderableType] = [table, *map(escape, sorted(leaks))]
    return shown + [by_kind(result) for result in results.values() if len(result.by_kind()) > 1]


def by_kind(result: Evaluation) -> Table:
    """A result by task type, with intervals; the title says what data it is of."""
    key, names = key_of(result), list(result.means())
    label = str(result.provenance.manifest.get("label", ""))
    title = " ".join(filter(None, (key.suite or key.split, key.policy, f"T={result.temperature:g}", label)))
    table = _table("task type", "success in %", *names, "n", title=escape(title))
    for kind, part in result.by_kind().items():
        # The interval below the mean, so that a dozen of them stand beside each other.
        figures = {name: re.sub(r" (?=[\[(])", "\n", part.shown(mean)) for name, mean in part.means().items()}
        shown = (figures.get(name, "") for name in names)
        table.add_row(escape(kind), percent(part.rate, part.interval()), *shown, str(part.n))
    return table


def comparison(pairs: Iterable[tuple[Evaluation, Evaluation]]) -> list[RenderableType]:
    """Pairs of results, task by task, with what each difference shows."""
    table = _table("suite", "T", "measure", "before", "after", "difference", "p", "tasks", "verdict")
    notes: list[RenderableType] = []
    for before, after in pairs:
        key = key_of(after)
        heat = " / ".join(dict.fromkeys(f"{side.temperature:g}" for side in (before, after)))
        rows = {"success": compare(before, after)} | compare_means(before, after)
        for name, found in rows.items():
            table.add_row(key.suite or key.split, heat, name, *_row(found, success=name == "success"))
        played = before.by_task().keys() | after.by_task().keys()
        if left := len(played) - rows["success"].difference.n:
            notes.append(f"{key.suite or key.split}: {left} of {len(played)} tasks have results on one side only.")
        if odd := differing_rules(before, after):
            notes.append(f"{key.suite or key.split}: the sides played differently ({'; '.join(odd)}).")
    return [table, *notes]


def print_all(shown: Iterable[RenderableType], console: Console | None = None) -> None:
    """Print tables and notes."""
    # A file or a pipe takes lines of any length.
    console = console or (Console() if Console().is_terminal else Console(width=200))
    for part in shown:
        console.print(part, highlight=False)


def _row(found: Comparison, *, success: bool) -> tuple[str, ...]:
    scale, digits = (100, 1) if success else (1, 3)
    mean, low, high = (found.difference.mean, found.difference.low, found.difference.high)
    # Where all tasks differ alike, they tell no spread.
    bounds = ""
    if found.difference.se and low is not None and high is not None:
        bounds = f" [{scale * low:+.{digits}f}, {scale * high:+.{digits}f}]"
    return (
        f"{scale * found.before:.{digits}f}",
        f"{scale * found.after:.{digits}f}",
        f"{scale * mean:+.{digits}f}{bounds}",
        "n/a" if found.p is None else "<.001" if found.p < 0.001 else f"{found.p:.3f}",
        str(found.difference.n),
        found.verdict,
    )


def _besides(result: Evaluation) -> list[str]:
    """Ceiling, means, pass@k, failures and marks of a result."""
    found = []
    if result.provenance.ceiling is not None:
        found.append(f"ceiling {100 * result.provenance.ceiling:.1f}")
    found += [f"{name} {result.shown(mean)}" for name, mean in result.means().items()]
    if (k := result.repeats) > 1:
        both = {f"pass@{k}": result.pass_at(k), f"all of {k}": result.all_of(k)}
        found += [f"{name} {result.shown(mean)}" for name, mean in both.items() if mean]
    if result.failures:
        found.append(f"FAILED {result.failures}")
    if label := result.provenance.manifest.get("label"):
        found.append(str(label))
    if result.setting.get("leak"):
        found.append("LEAKED SPLIT")
    return found


_RIGHT = ("n", "tasks", "seconds", "p", "before", "after")


def _table(*columns: str, title: str | None = None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title=title, title_justify="left")
    right: dict[str, Any] = {"justify": "right"}
    for column in columns:
        table.add_column(column, no_wrap=column != "verdict", **(right if column in _RIGHT else {}))
    return table
