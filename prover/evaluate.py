"""Success rates with intervals, per task type, and the paired comparison of two checkpoints.

Evaluation plays with seeds of its own and stores no states; it leaves training bit-identical.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from prover.errors import DataError, FailureShareError
from prover.estimates import MeanInterval, clustered_mean, paired_difference, wilson
from prover.records import Failure, Provenance, Task
from prover.rollout import Rollout
from prover.seeds import derive


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """How one evaluation episode ended."""

    task: str
    kind: str
    """Task type; empty where the environment has none."""
    seed: int
    success: bool
    reward: float
    turns: int
    invalid: int
    """Turns without a valid action."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What the environment measured besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Episodes of one policy at one temperature. Failed episodes are left out and counted."""

    split: str
    temperature: float
    episodes: tuple[Episode, ...]
    failures: int = 0
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def n(self) -> int:
        """Number of episodes that finished."""
        return len(self.episodes)

    @property
    def successes(self) -> int:
        """Number of successful episodes."""
        return sum(episode.success for episode in self.episodes)

    @property
    def rate(self) -> float:
        """Success rate; NaN without episodes."""
        return self.successes / self.n if self.n else float("nan")

    def interval(self) -> tuple[float, float] | None:
        """95% interval of the success rate: Wilson's; clustered by task where tasks repeat. None without episodes.

        Episodes of one task tend to end alike, so they tell less than as many tasks would.
        """
        outcomes = self.by_task()
        if len(outcomes) == self.n:
            return wilson(self.successes, self.n)
        mean = clustered_mean(outcomes)
        if mean.low is None or mean.high is None:
            return None
        return max(0.0, mean.low), min(1.0, mean.high)

    def by_task(self) -> dict[str, list[float]]:
        """Outcomes, 1 or 0, of each task's episodes."""
        outcomes: dict[str, list[float]] = {}
        for episode in self.episodes:
            outcomes.setdefault(episode.task, []).append(float(episode.success))
        return outcomes

    def means(self) -> dict[str, MeanInterval]:
        """Means of ``reward`` (where it differs from success) and of the environment's metrics, clustered by task.

        A metric that an episode does not have is left out of its mean.
        """
        values: dict[str, dict[str, list[float]]] = {}
        for episode in self.episodes:
            own = dict(episode.metrics)
            if any(other.reward != other.success for other in self.episodes):
                own = {"reward": episode.reward, **own}
            for name, value in own.items():
                values.setdefault(name, {}).setdefault(episode.task, []).append(value)
        return {name: clustered_mean(of_task) for name, of_task in values.items()}

    def on(self, tasks: Collection[str]) -> "Evaluation":
        """Only the episodes of some tasks."""
        return replace(self, episodes=tuple(episode for episode in self.episodes if episode.task in tasks))

    def by_kind(self) -> "dict[str, Evaluation]":
        """The same episodes, split by task type."""
        kinds = sorted({episode.kind for episode in self.episodes})
        return {
            kind: replace(self, episodes=tuple(e for e in self.episodes if e.kind == kind), failures=0)
            for kind in kinds
        }

    def summary(self) -> dict[str, Any]:
        """Rate, interval and n, overall and by task type; means of the metrics; turns; what the environment says."""
        turns = sum(episode.turns for episode in self.episodes)
        return {
            "split": self.split,
            "temperature": self.temperature,
            "success": self.rate if self.n else None,
            "interval95": self.interval(),
            "n": self.n,
            "failures": self.failures,
            "mean_turns": turns / self.n if self.n else None,
            "invalid_share": sum(episode.invalid for episode in self.episodes) / turns if turns else None,
            "metrics": _described(self.means()),
            "by_kind": {
                kind: {
                    "success": part.rate,
                    "interval95": part.interval(),
                    "n": part.n,
                    "metrics": _described(part.means()),
                }
                for kind, part in self.by_kind().items()
                if kind
            },
            "provenance": asdict(self.provenance),
        }

    def text(self) -> str:
        """One line for people: rates in %, with intervals and n; the ceiling and the label where there are any."""
        parts = [f"success {percent(self.rate if self.n else None, self.interval())} %"]
        if self.provenance.ceiling is not None:
            parts[0] += f" (ceiling {100 * self.provenance.ceiling:.1f})"
        for name, mean in self.means().items():
            bounds = None if mean.low is None or mean.high is None else (mean.low, mean.high)
            parts.append(f"{name} {number(mean.mean, bounds)}")
        parts.append(f"n={self.n}")
        if self.failures:
            parts.append(f"FAILED {self.failures}")
        if label := self.provenance.manifest.get("label"):
            parts.append(f"[{label}]")
        return ", ".join(parts)

    def save(self, path: Path) -> None:
        """Write summary and episodes as JSON; the file is there whole or not at all."""
        episodes = [asdict(episode) for episode in self.episodes]
        aside = path.with_suffix(".partial")
        aside.write_text(json.dumps(self.summary() | {"episodes": episodes}, indent=1), encoding="utf-8")
        aside.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Evaluation":
        """Read what ``save`` wrote.

        Raises:
            DataError: there is no such file, or it holds no evaluation.
        """
        try:
            stored = json.loads(path.read_text())
            return cls(
                split=stored["split"],
                temperature=stored["temperature"],
                episodes=tuple(Episode(**episode) for episode in stored["episodes"]),
                failures=stored["failures"],
                provenance=Provenance(**stored.get("provenance", {})),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"expected a result file of `prover eval` or of a run's evaluations folder at {path}, got "
                f"{type(error).__name__}: {error}"
            ) from error


async def evaluate(
    rollout: Rollout,
    tasks: Sequence[Task],
    episodes: int,
    *,
    temperature: float,
    seed: int,
    provenance: Provenance | None = None,
) -> Evaluation:
    """Play ``episodes`` episodes: the tasks in their order, and again from the first where there are more episodes.

    Equal seeds give two policies the same tasks in the same order, so that they can be compared pairwise.

    Args:
        rollout: policy, environments and rules of the run.
        tasks: tasks to play; with fewer episodes than tasks, only the first of them.
        episodes: number of episodes; beyond the number of tasks, tasks repeat with other sampling seeds.
        temperature: sampling temperature.
        seed: entropy of the evaluation, unrelated to the training seed.
        provenance: what the environment says of the split; kept with the result.

    Raises:
        DataError: there are no tasks.
        FailureShareError: every episode failed.
    """
    if not tasks:
        raise DataError("expected at least one task to evaluate on, got none; choose another split")
    rules = replace(
        rollout.rules, sampling=replace(rollout.rules.sampling, temperature=temperature), record_states=False
    )
    player = replace(rollout, rules=rules)
    # Splits may be sorted by task type: fewer episodes than tasks are spread over the whole split.
    stride = max(1.0, len(tasks) / episodes)
    chosen = [tasks[int(index * stride) % len(tasks)] for index in range(episodes)]
    runs = await player.episodes(chosen, seeds=[derive(seed, index) for index in range(episodes)])
    failures = [run for run in runs if isinstance(run, Failure)]
    if failures and len(failures) == episodes:
        first = failures[0]
        raise FailureShareError(
            f"expected evaluation episodes to finish, got {episodes} of {episodes} failed; the first failed with "
            f"{first.cause} in {first.where} at turn {first.turn} of task {first.task!r}: "
            f"{first.summary}"
        )
    found = tuple(
        Episode(
            task=run.task.id,
            kind=run.task.kind,
            seed=run.seed,
            success=run.success,
            reward=run.reward,
            turns=run.n_turns,
            invalid=sum(turn.invalid is not None for turn in run.turns),
            metrics=run.metrics,
        )
        for run in runs
        if not isinstance(run, Failure)
    )
    return Evaluation(
        split=tasks[0].split,
        temperature=temperature,
        episodes=found,
        failures=len(failures),
        provenance=provenance or Provenance(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two evaluations on the tasks that both played; every task counts the same."""

    before: float
    """Mean of the tasks' success rates."""
    after: float
    difference: MeanInterval
    """After minus before, paired by task, with its 95% interval."""


def compare(before: Evaluation, after: Evaluation) -> Comparison:
    """Compare two evaluations task by task.

    Raises:
        DataError: they share no task, or were measured on data that must not be mistaken for each other.
    """
    labels = [evaluation.provenance.manifest.get("label") for evaluation in (before, after)]
    if labels[0] != labels[1]:
        raise DataError(
            f"expected two evaluations on the same data, got one on {labels[0] or 'data without a label'} and one on "
            f"{labels[1] or 'data without a label'}; their figures do not belong side by side"
        )
    rates = [evaluation.by_task() for evaluation in (before, after)]
    shared = sorted(rates[0].keys() & rates[1].keys())
    if not shared:
        raise DataError(
            f"expected evaluations that share tasks, got {len(rates[0])} and {len(rates[1])} tasks none in common; "
            "compare results of the same split"
        )
    first, second = ([fmean(side[task]) for task in shared] for side in rates)
    return Comparison(before=fmean(first), after=fmean(second), difference=paired_difference(first, second))


def percent(rate: float | None, interval: tuple[float, float] | None) -> str:
    """A rate with its interval, in percent, e.g. ``24.0 [20.8, 27.6]``; ``n/a`` without episodes."""
    if rate is None or interval is None:
        return "n/a"
    return number(100 * rate, (100 * interval[0], 100 * interval[1]), digits=1)


def number(value: float, interval: tuple[float, float] | None, *, digits: int = 3) -> str:
    """A mean with its interval, where there is one."""
    bounds = "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
    return f"{value:.{digits}f}{bounds}"


def _described(means: Mapping[str, MeanInterval]) -> dict[str, Any]:
    return {
        name: {"mean": mean.mean, "interval95": None if mean.low is None else (mean.low, mean.high), "tasks": mean.n}
        for name, mean in means.items()
    }
