"""Training runs where the truth is known. Seeds are fixed: what is asserted is decided, not likely."""

from dataclasses import replace
from functools import cache

import numpy as np

from prover.study.toy import Method, Outcome, simulate
from prover.study.toy_table import difference

SEEDS = range(24)
JUDGE = Method(selector="judge", continuations=2, weight=8.0)
BIASED = replace(JUDGE, accuracy=0.3, error="biased", continuations=4)


@cache
def outcome(method: Method) -> Outcome:
    """What training 24 seeds gives; computed once."""
    return simulate(method, SEEDS)


def gain(method: Method, base: Method) -> float:
    """Mean difference of the areas under the curve, in % of the base's."""
    return difference(outcome(method), outcome(base)).mean


def test_training_starts_from_a_tenth_and_learns() -> None:
    """The uniform policy succeeds with 9.1%: (9/16 x .02 + 6/16 x .10 + 1/16 x .95) x (1 - .05/4)^14."""
    curve = outcome(Method()).success
    uniform = (9 * 0.02 + 6 * 0.10 + 0.95) / 16 * (1 - 0.05 / 4) ** 14
    assert np.allclose(curve[0], uniform)
    assert curve[-1].min() > 0.5
    assert outcome(Method()).turns.tolist() == [100 * 16 * 8 * 16] * 24


def test_weight_zero_is_grpo_bit_for_bit() -> None:
    """Judging and measuring leave tasks, episodes and weights as they are."""
    few = replace(Method(), updates=10)
    with_credit = replace(JUDGE, weight=0.0, updates=10)
    assert np.array_equal(simulate(with_credit, range(4)).success, simulate(few, range(4)).success)


def test_a_seed_gives_the_same_in_any_company() -> None:
    """Running seeds side by side changes nothing but the rounding of sums."""
    short = replace(JUDGE, updates=5)
    together, alone = simulate(short, range(3)), simulate(short, [2])
    assert np.allclose(together.success[:, 2], alone.success[:, 0], rtol=1e-12)
    assert together.turns[2] == alone.turns[0]


def test_a_random_turn_gains_nothing() -> None:
    """Verification alone does not help: within 4% of GRPO."""
    assert abs(gain(replace(JUDGE, selector="random"), Method())) <= 4


def test_a_good_judge_beats_grpo_with_as_many_turns() -> None:
    """Right in 70%, K 2, lambda 8: at least 6% above GRPO with groups of 9, which plays more turns."""
    assert outcome(JUDGE).turns.mean() < outcome(Method(group_size=9)).turns.mean()
    assert gain(JUDGE, Method(group_size=9)) >= 6


def test_verification_insures_against_a_biased_judge() -> None:
    """A judge that names the worst turn in 70% costs 8% and more when trusted, and nothing when verified."""
    assert gain(BIASED, Method()) >= 0
    assert gain(replace(BIASED, trusted=0.25), Method()) <= -8


def test_a_threshold_drops_what_is_within_the_noise() -> None:
    """With K = 2 the largest difference, 2 of 2 against 0 of 2, is 3.3 errors: z > 3 keeps it, z > 3.5 does not."""
    # Jeffreys: rates 5/6 and 1/6, n + 1 = 3, error sqrt(2 x 5/36 / 3) = .304; 1 / .304 = 3.3 errors.
    strict, stricter = (replace(JUDGE, min_z=z, updates=5) for z in (3.0, 3.5))
    plain = simulate(replace(Method(), updates=5), range(4)).success
    assert not np.array_equal(simulate(strict, range(4)).success, plain)
    assert np.array_equal(simulate(stricter, range(4)).success, plain)


def test_stopping_early_saves_a_third_and_costs_nothing() -> None:
    """At the paper's K 8 and lambda 1: 30% of the continuations' turns saved, the same area within 2%."""
    full = Method(selector="judge")
    rollouts = outcome(Method()).turns.mean()
    spent = [outcome(method).turns.mean() - rollouts for method in (full, replace(full, sequential=True))]
    assert spent[1] <= 0.7 * spent[0]
    assert abs(gain(replace(full, sequential=True), full)) <= 2


def test_measuring_every_turn_costs_what_it_says() -> None:
    """K continuations from before each of 16 turns of each episode: 16 x 17 / 2 turns for every K and episode."""
    exhaustive = simulate(Method(selector="every_turn", continuations=2, updates=3), [0])
    assert exhaustive.turns.tolist() == [3 * (128 * 16 + 128 * 2 * 136)]
