"""The curves of a study as SVG: success of the training episodes against turns, tokens and CPU time."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prover.study.record import Record

_COSTS = {"turns_U": "environment turns (1,000)", "tokens_U": "sampled tokens (1,000)", "cpu_U": "CPU-seconds"}
_WINDOW = 5
"""Updates that a point of a curve averages: single updates have other tasks and swing widely."""


def can_draw() -> bool:
    """Whether matplotlib is installed, which comes with the extra ``plots``."""
    return find_spec("matplotlib") is not None


def draw(records: Sequence[Record], out: Path) -> list[Path]:
    """One file per start policy."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    paths = []
    # The same records give the same file, byte for byte.
    with rc_context({"svg.hashsalt": "prover", "svg.fonttype": "none", "font.size": 9}):
        for start in dict.fromkeys(record.start for record in records):
            figure = Figure(figsize=(11, 3.6), layout="constrained")
            of_start = [record for record in records if record.start == start]
            for axes, (cost, label) in zip(figure.subplots(1, 3, sharey=True), _COSTS.items(), strict=True):
                for method in dict.fromkeys(record.method for record in of_start):
                    runs = [record for record in of_start if record.method == method]
                    scale = 1 if cost == "cpu_U" else 1000
                    spent, success = curve([run.success_U for run in runs], [getattr(run, cost) for run in runs])
                    axes.plot(spent / scale, 100 * success, label=f"{method} ({len(runs)})", linewidth=1.2)
                axes.set_xlabel(label)
                axes.grid(alpha=0.3)
            figure.axes[0].set_ylabel("success of training episodes in %")
            figure.axes[0].legend(fontsize=7, frameon=False)
            figure.suptitle(f"start: {start}; mean over seeds (their number)")
            path = out / f"{start}.svg"
            figure.savefig(path, metadata={"Date": None})
            paths.append(path)
    return paths


def curve(success: Sequence[ArrayLike], costs: Sequence[ArrayLike]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over runs: cost up to the middle of each window of updates, and success within it.

    Args:
        success: Success by update of each run, shapes (U,); the runs have equally many.
        costs: Cost of each update, likewise.

    Returns:
        Both of shape (U - w + 1,), w the window.
    """
    window = min(_WINDOW, len(np.asarray(success[0])))
    kernel = np.full(window, 1 / window)
    mean = np.mean([np.asarray(run, dtype=float) for run in success], axis=0)
    spent = np.mean([np.cumsum(cost) - np.asarray(cost, dtype=float) / 2 for cost in costs], axis=0)
    return np.convolve(spent, kernel, mode="valid"), np.convolve(mean, kernel, mode="valid")
