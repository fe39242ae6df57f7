"""Success rates, their differences and intervals: pure functions, no model and no configuration.

Every rate comes with n and an interval, and what fewer than two tasks cannot tell is ``None`` ("n/a"), never 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

import numpy as np

from prover.errors import ConfigError
from prover.seeds import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference of two success rates."""

    delta: float
    """Rate after minus rate before."""
    se: float
    """Standard error of ``delta``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """A mean over tasks with its interval."""

    mean: float
    n: int
    """Number of independent values: tasks, not episodes."""
    se: float | None
    """Standard error; None for fewer than two values, as are the bounds."""
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """What K continuations per arm tell about a segment of known worth."""

    se: float
    """Standard error of the measured difference."""
    p_positive: float
    """Probability that the measured difference is positive."""
    mean_positive_part: float
    """Expectation of max(measured difference, 0)."""
    bias: float
    """``mean_positive_part`` minus max(true difference, 0)."""


def rate_difference(before: int, n_before: int, after: int, n_after: int) -> Difference:
    """Success rate after minus before, with the plug-in standard error sqrt(p(1-p)/n + q(1-q)/m).

    That error is 0 where both rates are 0 or 1; ``jeffreys_difference`` never claims so.

    >>> rate_difference(2, 8, 6, 8).delta
    0.5
    """
    _check_counts(before, n_before)
    _check_counts(after, n_after)
    return _difference(before / n_before, n_before, after / n_after, n_after)


def jeffreys_difference(before: int, n_before: int, after: int, n_after: int) -> Difference:
    """The same with each rate shrunk to (s + 1/2) / (n + 1), Jeffreys' posterior mean, and n + 1 in the error."""
    _check_counts(before, n_before)
    _check_counts(after, n_after)
    return _difference((before + 0.5) / (n_before + 1), n_before + 1, (after + 0.5) / (n_after + 1), n_after + 1)


def prob_after_exceeds_before(before: int, n_before: int, after: int, n_after: int) -> float:
    """Exact posterior probability that the true rate after exceeds the one before, both priors uniform.

    The rates are order statistics of n+1 and m+1 uniform numbers, so the answer is a ratio of counts of interleavings:
    ``sum_j C(before + j, j) C(m - before + n + 1 - j, n + 1 - j) / C(n + m + 2, n + 1)`` for j = 0..after.

    >>> prob_after_exceeds_before(4, 8, 4, 8)
    0.5
    """
    _check_counts(before, n_before)
    _check_counts(after, n_after)
    ways = sum(
        math.comb(before + j, j) * math.comb(n_before - before + n_after + 1 - j, n_after + 1 - j)
        for j in range(after + 1)
    )
    return ways / math.comb(n_after + n_before + 2, n_after + 1)


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """Wilson's interval of a success rate (1927); None without observations.

    >>> [round(bound, 4) for bound in wilson(67, 134)]
    [0.4165, 0.5835]
    """
    if n == 0:
        return None
    _check_counts(successes, n)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    rate, shrink = successes / n, 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # At the ends the bound is 0 or 1 exactly; rounding must not pass it.
    return (0.0 if successes == 0 else centre - half), (1.0 if successes == n else centre + half)


def mean_interval(values: Sequence[float], level: float = 0.95) -> MeanInterval:
    """Mean of independent values with Student's t-interval.

    Raises:
        ConfigError: there are no values.
    """
    if not values:
        raise ConfigError("expected at least one value, got none; evaluate some task first")
    mean, n = fmean(values), len(values)
    if n < 2:
        return MeanInterval(mean=mean, n=n, se=None, low=None, high=None)
    se = stdev(values) / math.sqrt(n)
    half = t_quantile(0.5 + level / 2, n - 1) * se
    return MeanInterval(mean=mean, n=n, se=se, low=mean - half, high=mean + half)


def clustered_mean(outcomes: Mapping[str, Sequence[float]], level: float = 0.95) -> MeanInterval:
    """Mean over tasks of each task's mean outcome; episodes of one task are no independent evidence."""
    return mean_interval([fmean(values) for values in outcomes.values() if values], level)


def paired_difference(before: Sequence[float], after: Sequence[float], level: float = 0.95) -> MeanInterval:
    """Mean over tasks of (rate after - rate before): one pair per task, since episodes of one task are not independent.

    Args:
        before: rate of each task before, one per task.
        after: rate of the SAME tasks after, in the same order.
        level: confidence of the t-interval.

    Raises:
        ConfigError: the sides differ in length, or there are no tasks.

    >>> paired_difference([0.5, 0.0], [1.0, 0.5]).mean
    0.5
    """
    if len(before) != len(after):
        raise ConfigError(f"expected one rate per task on both sides, got {len(before)} and {len(after)}")
    return mean_interval([b - a for a, b in zip(before, after, strict=True)], level)


def bootstrap_mean(values: Sequence[float], level: float = 0.95, *, draws: int = 2000, seed: int = 0) -> MeanInterval:
    """Mean of independent values with the percentile bootstrap: for bounded, lopsided values such as pass@k.

    Raises:
        ConfigError: there are no values.
    """
    found = mean_interval(values, level)
    if found.se is None:
        return found
    array = np.asarray(values, dtype=np.float64)
    rng = generator(seed)
    # One draw at a time, so that memory does not grow with the number of draws.
    means = [float(array[rng.integers(len(array), size=len(array))].mean()) for _ in range(draws)]
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2]).tolist()
    return MeanInterval(mean=found.mean, n=found.n, se=found.se, low=low, high=high)


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided p value of McNemar's test (1947): are gains and losses of paired tasks equally likely?

    Args:
        lost: tasks solved before and not after.
        gained: tasks solved after and not before.

    >>> mcnemar(0, 6), mcnemar(3, 3)
    (0.03125, 1.0)
    """
    n, fewer = lost + gained, min(lost, gained)
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(fewer + 1)) / (1 << n))


def sign_flip(differences: Sequence[float], *, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided p value of the paired permutation test: how often do random signs give so large a mean difference?

    Exact for up to 12 differences that are not 0; beyond that, by ``draws`` random assignments of signs, of which the
    observed one counts as one more.

    >>> sign_flip([0.5, 0.25, 0.25])
    0.25
    """
    sizes = np.abs([difference for difference in differences if difference])
    observed = abs(math.fsum(differences)) - 1e-12
    if len(sizes) <= 12:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums + size, sums - size])
        return float((np.abs(sums) >= observed).mean())
    rng = generator(seed)
    hits = sum(bool(abs(rng.choice((-1.0, 1.0), len(sizes)) @ sizes) >= observed) for _ in range(draws))
    return float(hits + 1) / (draws + 1)


def pass_at_k(n: int, successes: int, k: int) -> float | None:
    """Unbiased probability that at least one of k samples succeeds (arXiv 2107.03374); None for fewer than k samples.

    >>> pass_at_k(4, 1, 2), pass_at_k(4, 0, 8)
    (0.5, None)
    """
    _check_counts(successes, n)
    return 1 - math.comb(n - successes, k) / math.comb(n, k) if 1 <= k <= n else None


def all_of_k(n: int, successes: int, k: int) -> float | None:
    """Unbiased probability that all of k samples succeed; None for fewer than k samples."""
    _check_counts(successes, n)
    return math.comb(successes, k) / math.comb(n, k) if 1 <= k <= n else None


def reliability(k: int, rate_before: float, rate_after: float) -> Reliability:
    """Exact behaviour of the estimator with k continuations per arm, from the two binomial distributions."""
    p_before, p_after = _binomial(k, rate_before), _binomial(k, rate_after)
    joint = np.outer(p_after, p_before)
    delta = np.subtract.outer(np.arange(k + 1), np.arange(k + 1)) / k
    mean_positive_part = float((joint * np.maximum(delta, 0)).sum())
    return Reliability(
        se=_difference(rate_before, k, rate_after, k).se,
        p_positive=float(joint[delta > 0].sum()),
        mean_positive_part=mean_positive_part,
        bias=mean_positive_part - max(rate_after - rate_before, 0.0),
    )


def verification_turns(n_turns: int, start: int, end: int, k: int) -> int:
    """Upper bound on the environment turns of both arms, if continuations run as long as the original did.

    >>> verification_turns(10, 3, 4, 8)
    96
    """
    return k * (n_turns - start) + k * (n_turns - end - 1)


def t_quantile(p: float, df: int) -> float:
    """Quantile of Student's t with a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3-4, bisected).

    >>> round(t_quantile(0.975, 4), 4)
    2.7764
    """
    if not 0 < p < 1 or df < 1:
        raise ConfigError(f"expected p in (0, 1) and df >= 1, got {p} and {df}")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if 0.5 + _t_mass(angle, df) / 2 < p else (low, angle)
    return math.sqrt(df) * math.tan((low + high) / 2)


def _t_mass(angle: float, df: int) -> float:
    """P(|T| < t) for ``angle`` = atan(t / sqrt(df))."""
    cos2, term = math.cos(angle) ** 2, 1.0
    total = 0.0
    for k in range(1 if df % 2 else 0, df - 1, 2):
        total += term
        term *= cos2 * (k + 1) / (k + 2)
    if df % 2 == 0:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)


def _difference(before: float, n_before: int, after: float, n_after: int) -> Difference:
    variance = before * (1 - before) / n_before + after * (1 - after) / n_after
    return Difference(delta=after - before, se=math.sqrt(variance))


def _binomial(n: int, p: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if n < 1 or not 0 <= p <= 1:
        raise ConfigError(f"expected at least 1 continuation and a rate in [0, 1], got {n} and {p}")
    return np.array([math.comb(n, s) * p**s * (1 - p) ** (n - s) for s in range(n + 1)])


def _check_counts(successes: int, n: int) -> None:
    if n < 1 or not 0 <= successes <= n:
        raise ConfigError(f"expected 0 <= successes <= n and n >= 1, got {successes} of {n}")
