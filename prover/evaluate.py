"""Success rates with intervals, overall and per task type.

Evaluation plays with seeds of its own and stores no states; it leaves training bit-identical. Every task counts the
same: where tasks repeat, rates and means are those of the tasks' own means, and intervals are clustered by task.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from prover.errors import DataError, FailureShareError
from prover.estimates import MeanInterval, all_of_k, bootstrap_mean, clustered_mean, pass_at_k, wilson
from prover.host import HostPool
from prover.protocols import Grader
from prover.records import Failure, Provenance, Task, Trajectory
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

    @classmethod
    def of(cls, run: Trajectory) -> "Episode":
        """What is kept of a finished episode."""
        return cls(
            task=run.task.id,
            kind=run.task.kind,
            seed=run.seed,
            success=run.success,
            reward=run.reward,
            turns=run.n_turns,
            invalid=sum(turn.invalid is not None for turn in run.turns),
            metrics=run.metrics,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Episodes of one policy at one temperature. Failed episodes are left out and counted."""

    split: str
    temperature: float
    episodes: tuple[Episode, ...]
    failures: int = 0
    provenance: Provenance = field(default_factory=Provenance)
    setting: Mapping[str, Any] = field(default_factory=dict)
    """What was measured, and how: suite and its version, tasks, rules, policy, versions, seconds (``prover.bench``)."""

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
        """Success rate, the mean of the tasks' rates; NaN without episodes."""
        return fmean(map(fmean, self.by_task().values())) if self.n else float("nan")

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
        if mean.se == 0:  # All alike tells no spread: Wilson's, as if of one episode each.
            return wilson(round(mean.mean * mean.n), mean.n)
        return max(0.0, mean.low), min(1.0, mean.high)

    @property
    def repeats(self) -> int:
        """Episodes that every task has; 0 without episodes."""
        return min(map(len, self.by_task().values()), default=0)

    def pass_at(self, k: int) -> MeanInterval | None:
        """Chance that one of k episodes of a task succeeds (``pass_at_k``), averaged over tasks, with its bootstrap.

        None, "n/a", where some task has fewer than k episodes.
        """
        return self._of_k(k, pass_at_k)

    def all_of(self, k: int) -> MeanInterval | None:
        """The same for all of k episodes of a task: how reliably it is solved."""
        return self._of_k(k, all_of_k)

    def _of_k(self, k: int, estimate: Callable[[int, int, int], float | None]) -> MeanInterval | None:
        found = [estimate(len(values), round(sum(values)), k) for values in self.by_task().values()]
        known = [value for value in found if value is not None]
        return _bounded(bootstrap_mean(known)) if known and len(known) == len(found) else None

    def by_task(self) -> dict[str, list[float]]:
        """Outcomes, 1 or 0, of each task's episodes."""
        outcomes: dict[str, list[float]] = {}
        for episode in self.episodes:
            outcomes.setdefault(episode.task, []).append(float(episode.success))
        return outcomes

    def values(self) -> dict[str, dict[str, list[float]]]:
        """Each task's values of ``reward`` (where it differs from success) and of the environment's metrics.

        A metric that an episode does not have is left out.
        """
        values: dict[str, dict[str, list[float]]] = {}
        graded = any(episode.reward != episode.success for episode in self.episodes)
        for episode in self.episodes:
            own = ({"reward": episode.reward} if graded else {}) | dict(episode.metrics)
            for name, value in own.items():
                values.setdefault(name, {}).setdefault(episode.task, []).append(value)
        return values

    def means(self) -> dict[str, MeanInterval]:
        """Means of ``values``, clustered by task; without bounds where all tasks are alike, which tells no spread."""
        return {name: _bounded(clustered_mean(of_task)) for name, of_task in self.values().items()}

    def joined(self, other: "Evaluation") -> "Evaluation":
        """Both measurements of one policy, with other seeds, as one."""
        return replace(self, episodes=self.episodes + other.episodes, failures=self.failures + other.failures)

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
            "tasks": len(self.by_task()),
            "pass_at_k": self._by_k(self.pass_at),
            "all_of_k": self._by_k(self.all_of),
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
            "setting": dict(self.setting),
        }

    def _by_k(self, estimate: Callable[[int], MeanInterval | None]) -> dict[str, Any]:
        """For k = 2, 4, 8 ... up to the episodes that every task has."""
        ks = [2**power for power in range(1, self.repeats.bit_length()) if 2**power <= self.repeats]
        return _described({str(k): mean for k in ks if (mean := estimate(k))})

    def text(self) -> str:
        """One line for people: rates in %, with intervals and n; the ceiling and the label where there are any."""
        parts = [f"success {percent(self.rate if self.n else None, self.interval())} %"]
        if self.provenance.ceiling is not None:
            parts[0] += f" (ceiling {100 * self.provenance.ceiling:.1f})"
        parts += [f"{name} {self.shown(mean)}" for name, mean in self.means().items()]
        parts.append(f"n={self.n}")
        if self.failures:
            parts.append(f"FAILED {self.failures}")
        if label := self.provenance.manifest.get("label"):
            parts.append(f"[{label}]")
        if leak := self.setting.get("leak"):
            parts.append(f"[LEAKED SPLIT: {leak}]")
        return ", ".join(parts)

    def shown(self, mean: MeanInterval) -> str:
        """A mean for people, with the number of tasks where not all have the figure."""
        bounds = None if mean.low is None or mean.high is None else (mean.low, mean.high)
        partly = f" ({mean.n} tasks)" if mean.n < len(self.by_task()) else ""
        return number(mean.mean, bounds) + partly

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
                setting=stored.get("setting", {}),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"expected a result file of `prover eval` or of a run's evaluations folder at {path}, got "
                f"{type(error).__name__}: {error}"
            ) from error


class Plays(Protocol):
    """What plays episodes: a ``Rollout``, or one without tokens (``prover.bench.text_rollout``)."""

    @property
    def hosts(self) -> HostPool:
        """The environments."""

    async def episodes(self, tasks: Sequence[Task], *, seeds: Sequence[int]) -> list[Trajectory | Failure]:
        """One episode per task and seed, in order."""


def schedule(tasks: Sequence[Task], episodes: int, seed: int) -> list[tuple[Task, int]]:
    """Which tasks are played with which seeds: all in their order, and again from the first where there are more.

    Equal seeds give two policies the same tasks in the same order, so that they can be compared pairwise. Splits may be
    sorted by task type: fewer episodes than tasks are spread over the whole split.

    Raises:
        DataError: there are no tasks.
    """
    if not tasks:
        raise DataError("expected at least one task to evaluate on, got none; choose another split")
    stride = max(1.0, len(tasks) / episodes)
    return [(tasks[int(index * stride) % len(tasks)], derive(seed, index)) for index in range(episodes)]


def sampling_at(rollout: Rollout, temperature: float) -> Rollout:
    """The rollout as it evaluates: at that temperature, without states."""
    rules = replace(
        rollout.rules, sampling=replace(rollout.rules.sampling, temperature=temperature), record_states=False
    )
    return replace(rollout, rules=rules)


async def measure(
    player: Plays,
    plan: Sequence[tuple[Task, int]],
    *,
    grader: Grader | None = None,
    done: Mapping[int, Episode] | None = None,
    watch: Callable[[int, Trajectory | Failure], None] = lambda index, run: None,
) -> tuple[dict[int, Episode], list[Failure]]:
    """Play the episodes of a plan that are not ``done``, all at once.

    Args:
        player: what plays.
        plan: task and seed of each episode.
        grader: who adds to the metrics of an episode when it has ended.
        done: episodes by their place in the plan that were played before.
        watch: told of each episode when it ends.

    Returns:
        All episodes that finished by their place in the plan, those of ``done`` among them, and the failed ones.

    Raises:
        FailureShareError: every episode failed.
    """
    found: dict[int, Episode] = dict(done or {})
    failures: list[Failure] = []

    async def play(index: int) -> None:
        """Play one episode of the plan."""
        task, seed = plan[index]
        (run,) = await player.episodes([task], seeds=[seed])
        if isinstance(run, Failure):
            failures.append(run)
        else:
            if grader is not None:
                run = replace(run, metrics={**run.metrics, **await grader.grade(run)})
            found[index] = Episode.of(run)
        watch(index, run)

    await asyncio.gather(*(play(index) for index in range(len(plan)) if index not in found))
    if failures and not found:
        first = failures[0]
        raise FailureShareError(
            f"expected evaluation episodes to finish, got {len(failures)} of {len(plan)} failed; the first failed with "
            f"{first.cause} in {first.where} at turn {first.turn} of task {first.task!r}: "
            f"{first.summary}"
        )
    return dict(sorted(found.items())), failures


async def evaluate(
    rollout: Rollout,
    tasks: Sequence[Task],
    episodes: int,
    *,
    temperature: float,
    seed: int,
    provenance: Provenance | None = None,
    grader: Grader | None = None,
) -> Evaluation:
    """Play ``episodes`` episodes of a policy.

    Args:
        rollout: policy, environments and rules of the run.
        tasks: tasks to play; see ``schedule`` for their order.
        episodes: number of episodes; beyond the number of tasks, tasks repeat with other sampling seeds.
        temperature: sampling temperature.
        seed: entropy of the evaluation, unrelated to the training seed.
        provenance: what the environment says of the split; kept with the result.
        grader: who adds to the metrics of the episodes.

    Raises:
        DataError: there are no tasks.
        FailureShareError: every episode failed.
    """
    plan = schedule(tasks, episodes, seed)
    found, failures = await measure(sampling_at(rollout, temperature), plan, grader=grader)
    served = await rollout.hosts.stats()
    return Evaluation(
        split=tasks[0].split,
        temperature=temperature,
        episodes=tuple(found.values()),
        failures=len(failures),
        provenance=provenance or Provenance(),
        setting=({} if grader is None else {"grader": dict(grader.about)}) | ({"env_stats": served} if served else {}),
    )


def percent(rate: float | None, interval: tuple[float, float] | None) -> str:
    """A rate with its interval, in percent, e.g. ``24.0 [20.8, 27.6]``; ``n/a`` without episodes.

    One task that was played several times has a rate and no interval: ``75.0 [n/a]``.
    """
    if rate is None:
        return "n/a"
    if interval is None:
        return f"{100 * rate:.1f} [n/a]"
    return number(100 * rate, (100 * interval[0], 100 * interval[1]), digits=1)


def number(value: float, interval: tuple[float, float] | None, *, digits: int = 3) -> str:
    """A mean with its interval, where there is one."""
    bounds = "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
    return f"{value:.{digits}f}{bounds}"


def _bounded(mean: MeanInterval) -> MeanInterval:
    """A mean without bounds where all values are alike."""
    return mean if mean.se else replace(mean, low=None, high=None)


def _described(means: Mapping[str, MeanInterval]) -> dict[str, Any]:
    return {
        name: {"mean": mean.mean, "interval95": None if mean.low is None else (mean.low, mean.high), "tasks": mean.n}
        for name, mean in means.items()
    }
