"""Tests of prover.estimates."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.advantages import segment_credit
from prover.errors import ConfigError
from prover.estimates import (
    all_of_k,
    bootstrap_mean,
    clustered_mean,
    jeffreys_difference,
    mcnemar,
    mean_interval,
    paired_difference,
    pass_at_k,
    prob_after_exceeds_before,
    rate_difference,
    reliability,
    sign_flip,
    t_quantile,
    verification_turns,
    wilson,
)


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, Any]:
    """Ground truth that was computed apart from this project."""
    return json.loads((shared / "vectors" / "algorithm_vectors.json").read_text())


def test_difference_vectors(vectors: dict[str, Any]) -> None:
    """Plug-in and Jeffreys differences and the exact posterior agree with the vectors."""
    for case in vectors["segment_estimates"]:
        counts = case["pre_successes"], case["k_pre"], case["post_successes"], case["k_post"]
        plain, shrunk = rate_difference(*counts), jeffreys_difference(*counts)
        assert plain.delta == pytest.approx(case["delta"], abs=1e-9)
        assert plain.se == pytest.approx(case["se_plugin"], abs=1e-9)
        assert shrunk.delta == pytest.approx(case["jeffreys_delta"], abs=1e-9)
        assert shrunk.se == pytest.approx(case["jeffreys_se"], abs=1e-9)
        assert prob_after_exceeds_before(*counts) == pytest.approx(case["uniform_prior_P_post_gt_pre"], abs=1e-9)


def test_reliability_vectors(vectors: dict[str, Any]) -> None:
    """Standard error, probability of a positive estimate and its bias agree with the vectors."""
    for case in vectors["estimator_reliability"]:
        got = reliability(case["K"], case["p_pre"], case["p_post"])
        assert got.se == pytest.approx(case["se"], abs=1e-9)
        assert got.p_positive == pytest.approx(case["P_estimate_positive"], abs=1e-9)
        assert got.mean_positive_part == pytest.approx(case["E_positive_part"], abs=1e-9)
        assert got.bias == pytest.approx(case["bias_of_positive_part"], abs=1e-9)


def test_cost_vectors(vectors: dict[str, Any]) -> None:
    """The bound on verification turns agrees with the vectors."""
    for case in vectors["verification_cost"]:
        assert verification_turns(case["num_turns"], *case["segment"], case["K"]) == case["turns"]


def test_difference_by_hand() -> None:
    """2/8 before and 6/8 after: delta 1/2, error sqrt(2 * 3/16 / 8)."""
    got = rate_difference(2, 8, 6, 8)
    assert got.delta == 0.5
    assert got.se == pytest.approx(math.sqrt(3 / 64))
    assert jeffreys_difference(0, 8, 8, 8).delta == pytest.approx(8 / 9)
    assert rate_difference(0, 8, 8, 8).se == 0
    assert jeffreys_difference(0, 8, 8, 8).se > 0.1


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_posterior_by_integration(n: int, m: int, data: Any) -> None:
    """The posterior equals the exact integral of one Beta's density times the other's distribution function."""
    before, after = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    a, b, c, d = before + 1, n - before + 1, after + 1, m - after + 1

    def beta(x: int, y: int) -> Fraction:
        return Fraction(math.factorial(x - 1) * math.factorial(y - 1), math.factorial(x + y - 1))

    # P(Beta(a, b) < x) = sum_j C(a+b-1, j) x^j (1-x)^(a+b-1-j) for j >= a, integrated against Beta(c, d).
    n_uniform = a + b - 1
    exact = sum(math.comb(n_uniform, j) * beta(c + j, d + n_uniform - j) / beta(c, d) for j in range(a, n_uniform + 1))
    assert prob_after_exceeds_before(before, n, after, m) == pytest.approx(float(exact), abs=1e-12)


def test_noise_as_credit() -> None:
    """A segment without effect earns 0.098 on average at rate 1/2 with K = 8: the estimator is what it says."""
    rng = np.random.default_rng(0)
    before, after = rng.binomial(8, 0.5, 2000), rng.binomial(8, 0.5, 2000)
    bonus = [segment_credit(rate_difference(int(b), 8, int(a), 8).delta) for b, a in zip(before, after, strict=True)]
    assert np.mean(bonus) == pytest.approx(0.098, abs=0.01)
    exact = reliability(8, 0.5, 0.5)
    assert exact.bias == pytest.approx(0.0982, abs=5e-5)
    assert np.mean(np.array(bonus) > 0) == pytest.approx(exact.p_positive, abs=0.03)


@pytest.mark.parametrize(
    ("k", "rate", "positive", "mean"),
    [
        (4, 0.5, 0.36, 0.137),
        (8, 0.5, 0.40, 0.098),
        (16, 0.5, 0.43, 0.070),
        (4, 0.1, 0.24, 0.070),
        (8, 0.1, 0.32, 0.055),
    ],
)
def test_null_of_the_estimator(k: int, rate: float, positive: float, mean: float) -> None:
    """Without a true difference, positive shares and mean bonuses are the known ones."""
    got = reliability(k, rate, rate)
    assert got.p_positive == pytest.approx(positive, abs=0.005)
    assert got.mean_positive_part == pytest.approx(mean, abs=0.0005)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"), [(67, 134, 0.4165, 0.5835), (70, 134, 0.4384, 0.6052), (10, 10, 0.7225, 1.0)]
)
def test_wilson(successes: int, n: int, low: float, high: float) -> None:
    """Wilson's bounds are the known ones; the ends are exact."""
    bounds = wilson(successes, n)
    assert bounds is not None
    assert bounds == pytest.approx((low, high), abs=5e-5)
    assert (bounds[1] == 1.0) == (successes == n)


def test_wilson_of_nothing() -> None:
    """No observations give no interval, and no successes a lower bound of exactly 0."""
    assert wilson(0, 0) is None
    bounds = wilson(0, 10)
    assert bounds is not None
    assert bounds[0] == 0.0
    assert bounds[1] == pytest.approx(0.2775, abs=5e-5)


@pytest.mark.parametrize(
    ("df", "quantile"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (133, 1.9780)]
)
def test_t_quantile(df: int, quantile: float) -> None:
    """The 97.5 % quantiles are those of printed tables, for odd and even degrees of freedom."""
    assert t_quantile(0.975, df) == pytest.approx(quantile, abs=5e-5)
    assert t_quantile(0.025, df) == pytest.approx(-quantile, abs=5e-5)


def test_mean_interval() -> None:
    """Mean 2, standard error 1/sqrt(3), half-width 4.3027 times that; one value has no interval."""
    got = mean_interval([1.0, 2.0, 3.0])
    assert (got.mean, got.n) == (2.0, 3)
    assert got.se == pytest.approx(0.57735, abs=1e-5)
    assert got.low == pytest.approx(2 - 2.48414, abs=1e-4)
    assert got.high == pytest.approx(2 + 2.48414, abs=1e-4)
    one = mean_interval([1.0])
    assert (one.mean, one.se, one.low, one.high) == (1.0, None, None, None)


def test_clustered_mean() -> None:
    """Tasks weigh the same, however many episodes each has, and n counts tasks."""
    got = clustered_mean({"a": [1, 1, 1, 1, 1, 1], "b": [0, 0], "c": []})
    assert (got.mean, got.n) == (0.5, 2)


def test_paired_difference() -> None:
    """Differences are taken per task: a constant gain has no spread although the tasks differ."""
    got = paired_difference([0.0, 0.5, 0.25], [0.5, 1.0, 0.75])
    assert (got.mean, got.se, got.low, got.high, got.n) == (0.5, 0.0, 0.5, 0.5, 3)
    assert paired_difference([0.0], [1.0]).low is None
    with pytest.raises(ConfigError, match="one rate per task"):
        paired_difference([0.0], [1.0, 1.0])
    with pytest.raises(ConfigError, match="at least one value"):
        paired_difference([], [])


def test_pass_at_k() -> None:
    """The unbiased estimates by hand; fewer samples than k give none, not 1."""
    assert pass_at_k(4, 0, 8) is None
    assert pass_at_k(4, 1, 1) == 0.25
    assert pass_at_k(4, 1, 2) == 0.5
    assert pass_at_k(8, 2, 4) == pytest.approx(0.7857, abs=5e-5)
    assert all_of_k(8, 5, 3) == pytest.approx(0.1786, abs=5e-5)
    assert all_of_k(2, 2, 3) is None


def test_cost_by_hand() -> None:
    """Turns 3..4 of 10 with K = 8: seven turns are left before, five after."""
    assert verification_turns(10, 3, 4, 8) == 8 * 7 + 8 * 5


def test_refusals() -> None:
    """Impossible counts, rates and probabilities are refused."""
    with pytest.raises(ConfigError, match="got 9 of 8"):
        rate_difference(9, 8, 0, 8)
    with pytest.raises(ConfigError, match="got 0 of 0"):
        rate_difference(0, 0, 0, 8)
    with pytest.raises(ConfigError, match="rate in"):
        reliability(8, 1.5, 0.5)
    with pytest.raises(ConfigError, match="df >= 1"):
        t_quantile(0.5, 0)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [(0, 0, 1.0), (0, 1, 1.0), (1, 9, 22 / 1024), (9, 1, 22 / 1024), (5, 5, 1.0), (2, 8, 112 / 1024)],
)
def test_mcnemar_is_exact(lost: int, gained: int, p: float) -> None:
    """Twice the smaller tail of a fair coin, at most 1, worked out by hand: 1 + 10 and 1 + 10 + 45 of 1,024 ways."""
    assert mcnemar(lost, gained) == pytest.approx(p)


def test_sign_flips_are_counted_exactly_for_few_differences() -> None:
    """Of eight ways to choose three signs two give a sum of at least 4, both ends; zeros change nothing."""
    assert sign_flip([1.0, 1.0, 2.0]) == 2 / 8
    assert sign_flip([1.0, 0.0, 1.0, 0.0, 2.0]) == 2 / 8
    # |-1 + 1 + 2| = 2: of the sums 4, 2, 2, 0, 0, -2, -2, -4 six are as large.
    assert sign_flip([-1.0, 1.0, 2.0]) == 6 / 8
    assert sign_flip([]) == sign_flip([0.0, 0.0]) == 1.0


def test_sign_flips_of_many_differences_agree_with_mcnemar() -> None:
    """For gains and losses of 1 both tests are the same one: 2 P(at most 6 of 20) = .1153, within chance of 10,000."""
    found = sign_flip([1.0] * 14 + [-1.0] * 6)
    assert mcnemar(6, 14) == pytest.approx(0.11532, abs=1e-5)
    assert found == pytest.approx(0.11532, abs=0.013)
    assert found == sign_flip([1.0] * 14 + [-1.0] * 6), "the draws come from a seed"
    assert sign_flip([1.0] * 40) == pytest.approx(1 / 10_001)


def test_the_bootstrap_stays_inside_what_can_be() -> None:
    """Nine tasks of ten fail: the t-interval goes below 0, the bootstrap does not; mean and error are the same."""
    values = [0.0] * 9 + [1.0]
    found, plain = bootstrap_mean(values), mean_interval(values)
    assert (found.mean, found.se, found.n) == (plain.mean, plain.se, 10)
    assert plain.low is not None
    assert plain.low < 0
    # Of a thousand resamples none has a negative mean; .9**10 = 35% have a mean of 0.
    assert (found.low, found.high) == (0.0, pytest.approx(0.3))
    assert bootstrap_mean([0.5]).low is None
