"""Critic: what each turn changed in the success that the policy's own hidden states foretell.

V is a linear head on the policy's last hidden state before each turn, fitted in closed form (ridge regression, Hoerl
and Kennard, 1970) to how the episodes of the last few updates ended. A turn is credited with the one-step difference
``V(next state) - V(state)``, the outcome standing for V after the last turn. A batch is scored before it is fitted on,
so that no outcome is foretold by itself. Hidden states move with the weights, which a head of earlier updates does not
know: hence the short window, and ``critic_r2`` and ``critic_correlation`` in the metrics.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prover.advantages import vineppo_advantages
from prover.config import AdvantageConfig
from prover.protocols import TrainablePolicy
from prover.records import Group, Trajectory

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Head:
    """A linear function of hidden states with H numbers."""

    weights_H: _Floats  # noqa: N815 - shape suffix
    centre_H: _Floats  # noqa: N815 - shape suffix
    """The mean hidden state, whose value is ``level``."""
    level: float

    @classmethod
    def fit(cls, features_NH: NDArray[np.floating[Any]], outcomes_N: NDArray[np.floating[Any]], ridge: float) -> Self:  # noqa: N803 - shape suffix
        """The head with the least mean squared error plus ``ridge`` times the squared weights; the level is free.

        The penalty is in units of the mean variance of a feature, so that it means the same for every policy.

        >>> Head.fit(np.array([[1.0], [-1.0]]), np.array([1.0, 0.0]), ridge=1.0).values(np.array([[1.0]])).tolist()
        [0.75]
        """
        features, outcomes = features_NH.astype(np.float64), outcomes_N.astype(np.float64)
        centre, level = features.mean(axis=0), float(outcomes.mean())
        apart = features - centre
        covariance = apart.T @ apart / len(apart)
        penalty = ridge * (float(covariance.diagonal().mean()) or 1.0)
        weights = np.linalg.solve(covariance + penalty * np.eye(len(centre)), apart.T @ (outcomes - level) / len(apart))
        return cls(weights_H=weights, centre_H=centre, level=level)

    def values(self, features_NH: NDArray[np.floating[Any]]) -> _Floats:  # noqa: N803 - shape suffix
        """V of each state, shape (N,); not held to [0, 1]."""
        found: _Floats = (features_NH.astype(np.float64) - self.centre_H) @ self.weights_H + self.level
        return found


def centred(steps: Sequence[_Floats], tokens: Sequence[NDArray[np.int64]]) -> tuple[list[_Floats], float]:
    """The steps of a batch less their mean over its trained tokens, and that mean.

    Under a right V the mean is 0 at every state, so what a batch has of it is the critic's error, most of all its lag
    behind a policy that improves. A constant is a baseline and biases nothing. The mean of each trajectory would: it is
    (outcome - V of the start) / turns, most for short successes, and would be taken off them.

    Args:
        steps: per trajectory the credit of each turn, shape (S,).
        tokens: per trajectory the trained tokens of each turn, shape (S,).
    """
    n = sum(int(count.sum()) for count in tokens)
    mean = sum(float(step @ count) for step, count in zip(steps, tokens, strict=True)) / max(n, 1)
    return [step - mean for step in steps], mean


def quality(values_N: _Floats, outcomes_N: NDArray[np.floating[Any]]) -> dict[str, float | None]:  # noqa: N803 - shape suffix
    """Share of the outcomes' variance that V explains, below 0 if less than their mean does, and their correlation.

    None where they are undefined because outcomes, or values, are all alike.
    """
    apart = outcomes_N - outcomes_N.mean()
    spread, found = float(apart @ apart), values_N - values_N.mean()
    size = float(found @ found)
    missed = outcomes_N - values_N
    return {
        "critic_r2": 1 - float(missed @ missed) / spread if spread else None,
        "critic_correlation": float(found @ apart) / (size * spread) ** 0.5 if spread and size else None,
    }


@dataclass(slots=True, kw_only=True)
class Critic:
    """Scores one update after another, each by a head that was fitted on those before it."""

    weight: float
    ridge: float
    batch: int
    """Rows per forward pass."""
    window: deque[tuple[NDArray[np.float32], NDArray[np.float32]]] = field(default_factory=deque)
    """Hidden states (N, H) and outcomes (N,) of the turns of the last updates."""

    @classmethod
    def of(cls, settings: AdvantageConfig, batch: int) -> "Critic | None":
        """The configured critic; None where its weight is 0."""
        if settings.critic_weight == 0:
            return None
        window = deque[tuple[NDArray[np.float32], NDArray[np.float32]]](maxlen=settings.critic_window)
        return cls(weight=settings.critic_weight, ridge=settings.critic_ridge, batch=batch, window=window)

    def see(self, groups: Sequence[Group], policy: TrainablePolicy) -> tuple[list[_Floats], dict[str, float | None]]:
        """Credit of each turn of each trajectory, in order, and metrics; then remember the batch.

        The policy must be the one that sampled the groups. In a first update there is no credit: an empty list.
        """
        runs = [run for group in groups for run in group.trajectories]
        looks = [look for run in runs for look in _looks(run)]
        features = policy.features([ids for ids, _ in looks], [places for _, places in looks], batch=self.batch)
        turns = [run.n_turns for run in runs]
        outcomes = np.repeat(np.array([run.success for run in runs], dtype=np.float32), turns)
        steps, told = (
            list[_Floats](),
            dict[str, float | None](critic_r2=None, critic_correlation=None, critic_mean=None),
        )
        if self.window and len(features):
            before, ends = zip(*self.window, strict=True)
            values = Head.fit(np.concatenate(before), np.concatenate(ends), self.ridge).values(features)
            parts = np.split(values, np.cumsum(turns)[:-1])
            raw = [vineppo_advantages(part, float(run.success)) for part, run in zip(parts, runs, strict=True)]
            steps, mean = centred(raw, [_trained_tokens(run) for run in runs])
            steps = [self.weight * step for step in steps]
            told = {**quality(values, outcomes), "critic_mean": mean}
        if len(features):
            self.window.append((features, outcomes))
        return steps, told

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a resumed run must know."""
        return {
            f"{number}.{name}": array
            for number, seen in enumerate(self.window)
            for name, array in zip(("features", "outcomes"), seen, strict=True)
        }

    def recall(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take in what an interrupted run knew."""
        self.window.extend(
            (arrays[f"{number}.features"], arrays[f"{number}.outcomes"]) for number in range(len(arrays) // 2)
        )


def _looks(run: Trajectory) -> list[tuple[NDArray[np.int64], list[int]]]:
    """Ids of each row with the places of the last prompt token before each of its turns."""
    last = [turn.prompt_length - 1 for turn in run.turns]
    if len(run.rows) == 1:
        return [(run.rows[0].ids, last)]
    return [(row.ids, [place]) for row, place in zip(run.rows, last, strict=True)]


def _trained_tokens(run: Trajectory) -> NDArray[np.int64]:
    """Trained tokens of each turn, shape (S,)."""
    counts = np.zeros(run.n_turns, dtype=np.int64)
    for row in run.rows:
        counts += np.bincount(row.turn_of_token[row.loss_mask], minlength=run.n_turns)
    return counts
