"""What a person sees of a run: a live progress line, then the result."""

from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from prover.evaluate import compare
from prover.train import TrainResult

_RECENT = 5
"""Updates that the running figures average over: one update's tasks are too few to read."""


class Display:
    """Shows a training run as it goes; hand ``watch`` to ``train``."""

    def __init__(self, updates: int, *, console: Console | None = None) -> None:
        self._console = console or Console()
        self._recent: deque[Mapping[str, Any]] = deque(maxlen=_RECENT)
        self._totals = {"proposals": 0, "measured": 0, "positive": 0}
        self._deltas: list[tuple[float, int]] = []
        self._updates = updates
        self._progress = Progress(
            TextColumn("updates"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
        )
        self._task = self._progress.add_task("train", total=updates, figures="measuring the policy before training ...")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def watch(self, event: str, metrics: Mapping[str, Any]) -> None:
        """Take in an event of ``train``."""
        if event == "evaluation":
            self._progress.console.print(
                f"after {metrics['update']} updates, temperature {metrics['temperature']:g}: success "
                f"{_rate(metrics['success'], metrics['interval95'])}, n={metrics['n']}, split {metrics['split']}"
            )
            return
        self._recent.append(metrics)
        for key in self._totals:
            self._totals[key] += metrics[key]
        if metrics["mean_delta"] is not None:
            self._deltas.append((metrics["mean_delta"], metrics["measured"]))
        self._progress.update(self._task, completed=metrics["update"] + 1, figures=self._figures())
        if not self._progress.console.is_terminal and (metrics["update"] + 1) % 5 == 0:
            self._progress.console.print(f"update {metrics['update'] + 1}/{self._updates}: {self._figures()}")

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
        parts.append(f"{tokens / seconds:.0f} tokens/s")
        return " | ".join(parts)


def print_result(result: TrainResult, console: Console | None = None) -> None:
    """Success before and after at every temperature, with n, intervals and the paired difference; where it all lies."""
    console = console or Console()
    table = Table(title=f"success on held-out tasks ({result.after[0].split})")
    for column in ("temperature", "before", "after", "difference", "episodes"):
        table.add_column(column, no_wrap=True)
    for before, after in zip(result.before, result.after, strict=True):
        difference = compare(before, after)
        shown = f"{100 * difference.mean:+.1f} points"
        if difference.low is not None and difference.high is not None:
            shown += f" ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
        rates = [_rate(side.rate, side.interval()) for side in (before, after)]
        table.add_row(f"{after.temperature:g}", *rates, shown, f"{before.n} and {after.n}")
    console.print(table)
    console.print("Intervals are 95%; the difference is paired by task.", highlight=False)
    path = result.folder.path
    console.print(
        f"\nRun folder: {path}\n"
        f"  {path}/trajectories.jsonl  every episode: turns, outcome, proposal, both success rates, credit\n"
        f"  {path}/metrics.jsonl       one line per update\n"
        "Next:\n"
        "  prover train examples/households.yaml method=grpo run=runs/grpo     the same without verified credit\n"
        f"  prover compare {path} runs/grpo\n"
        "  prover train examples/alfworld.yaml env.data=PATH                   the original ALFWorld games",
        highlight=False,
        soft_wrap=True,
    )


def _rate(rate: float | None, interval: tuple[float, float] | None) -> str:
    if rate is None or interval is None:
        return "n/a"
    return f"{rate:.1%} (95% {interval[0]:.1%} to {interval[1]:.1%})"
