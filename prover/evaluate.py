"""Success rates with intervals, per task type, and the paired comparison of two checkpoints.

Evaluation plays with seeds of its own and stores no states; it leaves training bit-identical.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from prover.errors import DataError, FailureShareError
from prover.estimates import MeanInterval, clustered_mean, paired_difference, wilson
from prover.records import Failure, Task
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Episodes of one policy at one temperature. Failed episodes are left out and counted."""

    split: str
    temperature: float
    episodes: tuple[Episode, ...]
    failures: int = 0

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
        """Rate, interval and n, overall and by task type, with mean turns and the share of invalid turns."""
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
            "by_kind": {kind: {"success": part.rate, "n": part.n} for kind, part in self.by_kind().items() if kind},
        }

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
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"expected a result file of `prover eval` or of a run's evaluations folder at {path}, got "
                f"{type(error).__name__}: {error}"
            ) from error


async def evaluate(
    rollout: Rollout, tasks: Sequence[Task], episodes: int, *, temperature: float, seed: int
) -> Evaluation:
    """Play ``episodes`` episodes: the tasks in their order, and again from the first where there are more episodes.

    Equal seeds give two policies the same tasks in the same order, so that they can be compared pairwise.

    Args:
        rollout: policy, environments and rules of the run.
        tasks: tasks to play; with fewer episodes than tasks, only the first of them.
        episodes: number of episodes; beyond the number of tasks, tasks repeat with other sampling seeds.
        temperature: sampling temperature.
        seed: entropy of the evaluation, unrelated to the training seed.

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
        )
        for run in runs
        if not isinstance(run, Failure)
    )
    return Evaluation(split=tasks[0].split, temperature=temperature, episodes=found, failures=len(failures))


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
        DataError: they share no task.
    """
    rates = [evaluation.by_task() for evaluation in (before, after)]
    shared = sorted(rates[0].keys() & rates[1].keys())
    if not shared:
        raise DataError(
            f"expected evaluations that share tasks, got {len(rates[0])} and {len(rates[1])} tasks none in common; "
            "compare results of the same split"
        )
    first, second = ([fmean(side[task]) for task in shared] for side in rates)
    return Comparison(before=fmean(first), after=fmean(second), difference=paired_difference(first, second))
