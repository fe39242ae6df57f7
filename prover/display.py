"""What a person sees of a run: a live progress line, then the result."""

from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from prover.comparison import compare
from prover.evaluate import Evaluation, percent
from prover.train import TrainResult

_RECENT = 5
"""Updates that the running figures average over: one update's tasks are too few to read."""

_BEFORE = "measuring the policy before training ..."


class Display:
    """Shows a training run as it goes; hand ``watch`` to ``train``.

    A terminal gets a progress bar with the running figures below it, anything else a line every few updates.
    """

    def __init__(self, updates: int, *, resumed: bool = False, console: Console | None = None) -> None:
        self._console = console or Console()
        self._recent: deque[Mapping[str, Any]] = deque(maxlen=_RECENT)
        self._totals = dict.fromkeys(("proposals", "measured", "positive"), 0)
        self._deltas: list[tuple[float, int]] = []
        self._failed = 0
        self._updates = updates
        self._bar = Progress(
            TextColumn("update"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task("train", total=updates)
        self._first = "going on after the last checkpoint ..." if resumed else _BEFORE
        self._live = Live(self._view(self._first), console=self._console, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        else:
            self._print(self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def watch(self, event: str, metrics: Mapping[str, Any]) -> None:
        """Take in an event of ``train``."""
        if event == "evaluation":
            when = f"after {metrics['update']} updates at temperature {metrics['temperature']:g}"
            self._print(f"{when}: {metrics['text']}")
            return
        self._recent.append(metrics)
        for key in self._totals:
            self._totals[key] += metrics[key]
        if metrics["mean_delta"] is not None:
            self._deltas.append((metrics["mean_delta"], metrics["measured"]))
        outcomes = metrics["outcomes"]
        self._failed += outcomes.get("judge_failed", 0) + outcomes.get("verifier_failed", 0)
        done = metrics["update"] + 1
        if self._console.is_terminal:
            self._bar.update(self._task, completed=done)
            self._live.update(self._view(self._figures()))
        elif done % _RECENT == 0 or done == self._updates:
            self._print(f"update {done}/{self._updates}: {self._figures()}")

    def _view(self, figures: str) -> Group:
        return Group(self._bar, Text(figures, style="dim"))

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)

    def _figures(self) -> str:
        n = len(self._recent)
        success = sum(metrics["success"] for metrics in self._recent) / n
        contrast = sum(metrics["contrast_groups"] / metrics["groups"] for metrics in self._recent) / n
        tokens = sum(metrics["tokens"] + metrics["verifier_tokens"] for metrics in self._recent)
        seconds = sum(sum(metrics["wall_seconds"].values()) for metrics in self._recent)
        parts = [f"success {success:.0%}", f"contrast {contrast:.0%}"]
        if measured := self._totals["measured"]:
            delta = sum(value * weight for value, weight in self._deltas) / measured
            parts += [
                f"proposals {self._totals['proposals']}",
                f"positive {self._totals['positive'] / measured:.0%}",
                f"delta {delta:+.2f}",
            ]
        if self._failed:
            parts.append(f"FAILED {self._failed}")
        parts.append(f"{tokens / seconds:.0f} tokens/s")
        return " | ".join(parts)


def print_result(result: TrainResult, console: Console | None = None) -> None:
    """Success before and after at every temperature, with n, intervals and the paired difference; where it all lies."""
    console = console or Console()
    provenance = result.after[0].provenance
    where = ", ".join(filter(None, (result.after[0].split, provenance.manifest.get("label"))))
    title = f"success in % at temperature T on held-out tasks ({where})"
    ceiling = "" if provenance.ceiling is None else f" These tasks allow {100 * provenance.ceiling:.1f} % at most."
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title=title)
    for column in ("T", "before", "after", "difference", "n"):
        table.add_column(column, no_wrap=True)
    for before, after in zip(result.before or (None,) * len(result.after), result.after, strict=True):
        row = [percent(side.rate if side.n else None, side.interval()) if side else "" for side in (before, after)]
        table.add_row(*map(escape, (f"{after.temperature:g}", *row, _gain(before, after), str(after.n))))
    console.print(table)
    path, updates = result.folder.path, result.updates
    other = "grpo" if result.method == "prover" else "prover"
    console.print(
        f"95% intervals; the difference is paired by task.{ceiling}\n\n"
        f"Run folder: {path}\n"
        "  trajectories.jsonl  every episode: turns, outcome, proposal, both success rates, credit\n"
        "  metrics.jsonl       one line per update\n"
        f"  checkpoints/        policies to go on with, e.g. as policy.path\n\n"
        "Next (commands of .venv/bin, or after `. .venv/bin/activate`):\n"
        f"  prover train --resume --run {path} optim.updates={2 * updates}\n"
        f"  prover train {path}/config.yaml method={other} --run runs/{other}\n"
        f"  prover compare {path} runs/{other}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _gain(before: Evaluation | None, after: Evaluation) -> str:
    """The difference with its interval; nothing where one side was not measured."""
    if before is None:
        return ""
    difference = compare(before, after).difference
    shown = f"{100 * difference.mean:+.1f}"
    if difference.low is not None and difference.high is not None:
        shown += f" [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    return shown
