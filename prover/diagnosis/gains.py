"""How much a rule of credit changes what one update gains: pure functions of inner products.

A step along a gradient g changes the expected success J by <g, grad J> to first order. Steps are compared at equal
length, as clipping and AdamW about make them, so a rule is worth ``E<g, grad J> / sqrt(E|g|^2)``: its signal over its
size, noise included. ``grad J`` is not known; GRPO's gradient estimates it, and no credit has touched it. The estimate
must not come from the batch that the rule's gradient comes from, since both would share their noise: the mean over all
OTHER batches takes its place (cross-fitting, arXiv 1608.00060). Standard errors are the jackknife's (J. Tukey, 1958): a
batch is left out in both of its parts.

The figure is local: it holds for the policy at hand and for a small step.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prover.errors import ConfigError
from prover.estimates import MeanInterval, t_quantile

LEAST = 3
"""Batches below which nothing can be left out."""
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Products:
    """Inner products of the gradients of I parts in B batches; part 0 is GRPO's."""

    cross: _Floats
    """``cross[i, b, c]``: part i of batch b with GRPO's gradient of batch c, shape (I, B, B)."""
    within: _Floats
    """``within[b, i, j]``: parts i and j of batch b, shape (B, I, I)."""

    @classmethod
    def of(cls, gradients: Sequence[NDArray[np.floating[Any]]]) -> "Products":
        """From the gradients of each batch, shape (I, P); only GRPO's are in memory all at once."""
        grpo = np.stack([np.asarray(batch[0], np.float64) for batch in gradients])
        cross, within = [], []
        for batch in gradients:
            mine = np.asarray(batch, np.float64)
            cross.append(mine @ grpo.T)
            within.append(mine @ mine.T)
        return cls(cross=np.stack(cross, axis=1), within=np.stack(within))

    def direction(self, weights: _Floats) -> "Direction":
        """A gradient that is a weighted sum of parts, shape (I,)."""
        return Direction(
            cross=np.einsum("i,ibc->bc", weights, self.cross),
            squares=np.einsum("i,bij,j->b", weights, self.within, weights),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Direction:
    """Inner products of one rule's gradients."""

    cross: _Floats
    """With GRPO's gradient: its own batch in rows, GRPO's in columns, shape (B, B)."""
    squares: _Floats
    """Squared norms, shape (B,)."""

    def signal(self, kept: NDArray[np.intp]) -> float:
        """Mean inner product with the mean GRPO gradient of the other batches, among those kept."""
        products, n = self.cross[np.ix_(kept, kept)], len(kept)
        return float((products.sum() - np.trace(products)) / (n * (n - 1)))

    def gain(self, kept: NDArray[np.intp]) -> float:
        """The signal over the root mean square norm; 0 for a rule without a gradient."""
        mean_square = float(self.squares[kept].mean())
        return self.signal(kept) / math.sqrt(mean_square) if mean_square > 0 else 0.0

    def larger_gain(self, kept: NDArray[np.intp], times: float) -> float:
        """The gain if every batch were so many times larger: the noise in its square shrinks, the signal stays.

        Only for GRPO itself, whose signal is the squared norm of its mean gradient.
        """
        signal = self.signal(kept)
        mean_square = signal + (float(self.squares[kept].mean()) - signal) / times
        return signal / math.sqrt(mean_square) if mean_square > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a rule changes in the first-order gain of an update, relative to GRPO: 0.1 is 10% more."""

    rule: str
    weight: float | None
    """lambda, where the rule has one."""
    relative: MeanInterval | None
    """Against GRPO on the same batches; None where GRPO's own gain is not above 0 in every jackknife sample."""
    same_turns: MeanInterval | None
    """Against GRPO with larger batches that take as many turns as the rule with its continuations."""
    extra_turns: float
    """Turns of continuations per turn of the rollouts."""


def relative_gain(rule: Direction, grpo: Direction, *, times: float = 1.0) -> MeanInterval | None:
    """Gain of a rule over that of GRPO with batches ``times`` as large, minus 1.

    None where it is undefined: GRPO's gain is not above 0 with some batch left out, so that its gradient cannot be told
    from noise.

    Raises:
        ConfigError: there are fewer than three batches.
    """

    def estimate(kept: NDArray[np.intp]) -> float:
        base = grpo.larger_gain(kept, times) if times != 1 else grpo.gain(kept)
        return rule.gain(kept) / base - 1 if base > 0 else math.nan

    found = jackknife(estimate, len(grpo.squares))
    return None if math.isnan(found.mean) or found.se is None or math.isnan(found.se) else found


def jackknife(estimate: Callable[[NDArray[np.intp]], float], n: int, level: float = 0.95) -> MeanInterval:
    """An estimate from n batches with the jackknife's standard error and Student's t-interval.

    Args:
        estimate: Makes it from the batches with the given indices.
        n: Number of batches.
        level: Confidence of the interval.

    Raises:
        ConfigError: there are fewer than three batches.

    >>> jackknife(lambda kept: float(np.array([1.0, 2.0, 6.0])[kept].mean()), 3).mean
    3.0
    """
    if n < LEAST:
        raise ConfigError(f"expected at least {LEAST} batches, got {n}; raise --batches")
    every = np.arange(n)
    value = estimate(every)
    without = np.array([estimate(np.delete(every, left_out)) for left_out in range(n)])
    se = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    half = t_quantile(0.5 + level / 2, n - 1) * se
    return MeanInterval(mean=value, n=n, se=se, low=value - half, high=value + half)
