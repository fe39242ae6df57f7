"""First-order gains on cases computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.diagnosis.gains import Direction, Products, jackknife, relative_gain
from prover.errors import ConfigError

EVERY = np.arange(3)
GRPO = [(1.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
"""GRPO's gradients of three batches, two parameters each."""
PART = [(1.0, 0.0)] * 3
"""What a rule adds to them."""


def products(*parts: list[tuple[float, float]]) -> Products:
    """Of parts, GRPO's first."""
    return Products.of(np.array(parts).swapaxes(0, 1))


def test_a_gain_is_the_signal_over_the_size() -> None:
    """Means of the others (.5, .5), (.5, .5), (1, 0): products .5, .5 and 0, mean 1/3; all gradients have norm 1."""
    direction = products(GRPO).direction(np.array([1.0]))
    assert direction.signal(EVERY) == pytest.approx(1 / 3)
    assert direction.gain(EVERY) == pytest.approx(1 / 3)


def test_a_rule_is_a_sum_of_parts() -> None:
    """GRPO plus the part is (2, 0), (2, 0), (1, 1): products 1, 1, 1 and mean square (4 + 4 + 2) / 3."""
    direction = products(GRPO, PART).direction(np.array([1.0, 1.0]))
    assert direction.signal(EVERY) == pytest.approx(1)
    assert direction.gain(EVERY) == pytest.approx(1 / math.sqrt(10 / 3))


def test_the_own_batch_is_left_out() -> None:
    """A part of the first batch along its own GRPO gradient, at a right angle to the others', has no signal."""
    grpo = [(1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]
    own = [(9.0, 0.0), (0.0, 0.0), (0.0, 0.0)]
    assert products(grpo, own).direction(np.array([0.0, 1.0])).signal(EVERY) == 0


def test_a_batch_is_left_out_of_both_of_its_parts() -> None:
    """Without the third batch only (1, 0) with (1, 0) remains."""
    direction = products(GRPO).direction(np.array([1.0]))
    assert direction.signal(np.array([0, 1])) == pytest.approx(1)
    assert direction.signal(np.array([0, 2])) == 0


def test_larger_batches_lose_noise_and_no_signal() -> None:
    """Signal 1/4 of a mean square of 1: three times as large, the mean square is 1/4 + (3/4) / 3."""
    direction = Direction(cross=np.full((3, 3), 0.25), squares=np.ones(3))
    assert direction.larger_gain(EVERY, 1.0) == pytest.approx(0.25)
    assert direction.larger_gain(EVERY, 3.0) == pytest.approx(0.25 / math.sqrt(0.5))


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    """1, 2 and 6 have mean 3 and standard deviation sqrt(7); t(2) is 4.3027."""
    values = np.array([1.0, 2.0, 6.0])
    found = jackknife(lambda kept: float(values[kept].mean()), 3)
    assert found.se == pytest.approx(math.sqrt(7 / 3))
    assert found.low == pytest.approx(3 - 4.3027 * math.sqrt(7 / 3), abs=1e-3)
    assert found.high == pytest.approx(3 + 4.3027 * math.sqrt(7 / 3), abs=1e-3)


@given(st.floats(0.1, 10.0), st.integers(0, 5))
def test_the_length_of_a_rule_does_not_matter(scale: float, seed: int) -> None:
    """Any multiple of GRPO gains what GRPO gains, with certainty."""
    rng = np.random.default_rng(seed)
    gradients = rng.normal(size=(6, 1, 4)) * 0.1 + 1
    found = Products.of(gradients)
    relative = relative_gain(found.direction(np.array([scale])), found.direction(np.array([1.0])))
    assert relative is not None
    assert relative.mean == pytest.approx(0, abs=1e-9)
    assert relative.se == pytest.approx(0, abs=1e-9)


def test_signal_without_noise_is_found() -> None:
    """A part of length 1 along the mean of GRPO's gradients, whose noise is at a right angle, and four times lambda."""
    grpo = [(1.0, 1.0), (1.0, -1.0), (1.0, 1.0), (1.0, -1.0)]
    found = products(grpo, [(1.0, 0.0)] * 4)
    base = found.direction(np.array([1.0, 0.0]))
    # Products of unlike batches are 0 and of like ones 2: (4 x 2 + 8 x 0) / 12 = 2/3; mean square 2.
    assert base.gain(np.arange(4)) == pytest.approx(2 / 3 / math.sqrt(2))
    rule = found.direction(np.array([1.0, 4.0]))
    # (5, +-1) with (1, +-1): like 6, unlike 4, so 56 / 12; mean square 26.
    assert rule.gain(np.arange(4)) == pytest.approx(56 / 12 / math.sqrt(26))


def test_what_is_noise_has_no_relative_gain() -> None:
    """Gradients at right angles say nothing of the direction, so there is nothing to relate to."""
    found = Products.of(np.eye(4)[:, None, :])
    base = found.direction(np.array([1.0]))
    assert relative_gain(base, base) is None


def test_two_batches_are_too_few() -> None:
    """With one of them left out, nothing is left to compare with."""
    with pytest.raises(ConfigError, match="expected at least 3 batches, got 2"):
        jackknife(lambda kept: 0.0, 2)
