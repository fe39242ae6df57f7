"""What is made of a measured difference."""

import math

import pytest

from prover.credit import CreditRule
from prover.records import Arm, Estimate


def estimate(before: int, after: int, n: int = 8) -> Estimate:
    """A measurement with so many successes of n in both arms."""
    return Estimate(before=Arm(successes=before, n=n), after=Arm(successes=after, n=n), turns=0, tokens=0)


def test_credit_rules() -> None:
    """Signed rules keep negative differences; a reliability rule drops small ones, measured in Jeffreys' errors."""
    assert CreditRule().amount(estimate(6, 2)) == 0.0
    assert CreditRule(sign="signed", weight=2.0).amount(estimate(6, 2)) == -1.0
    # 0 of 8 against 8 of 8: rates 1/18 and 17/18, so each arm has the variance 17 / 18^2 / 9, and 1 / 0.108 = 9.26.
    certain = estimate(0, 8)
    error = math.sqrt(2 * 17 / 324 / 9)
    assert CreditRule(min_z=0.99 / error).amount(certain) == 1.0
    assert CreditRule(min_z=1.01 / error).amount(certain) == 0.0


def test_small_and_improbable_differences_can_be_dropped() -> None:
    """By size, and by the exact probability that the sign is right: .9717 for 6 of 8 against 2 of 8."""
    assert CreditRule(min_delta=0.5).amount(estimate(2, 6)) == 0.5
    assert CreditRule(min_delta=0.51).amount(estimate(2, 6)) == 0.0
    assert CreditRule(tau=0.97).amount(estimate(2, 6)) == 0.5
    assert CreditRule(tau=0.98).amount(estimate(2, 6)) == 0.0
    assert CreditRule(tau=0.97, sign="signed").amount(estimate(6, 2)) == -0.5


def test_credit_can_be_divided_as_advantages_are() -> None:
    """Outcomes [1, 0, 0, 0] have a standard deviation of 0.5 (ddof 1): delta 0.5 becomes 1."""
    rule = CreditRule(std="ddof1")
    assert rule.amount(estimate(2, 6), [1, 0, 0, 0]) == pytest.approx(1.0, abs=1e-5)


def test_credit_can_be_capped_on_both_sides() -> None:
    """Never more than the cap, whatever lambda."""
    rule = CreditRule(weight=8.0, sign="signed", cap=1.5)
    assert [rule.amount(estimate(*counts)) for counts in ((2, 6), (6, 2), (4, 5))] == [1.5, -1.5, 1.0]


def test_graded_rewards_can_be_compared() -> None:
    """What the segment itself brought counts with what follows it: .25 + .5 against .5."""
    measured = Estimate(
        before=Arm(successes=4, n=8, mean_reward=0.5),
        after=Arm(successes=4, n=8, mean_reward=0.5),
        turns=0,
        tokens=0,
        gained=0.25,
    )
    assert CreditRule(measure="reward", weight=2.0).amount(measured) == 0.5
    assert CreditRule().amount(measured) == 0.0


def test_a_known_outcome_has_a_certain_sign() -> None:
    """7 of 8 before a certain success is a gain whatever tau asks for, and before a certain failure a loss."""
    won, lost = (
        Estimate(before=Arm(successes=7, n=8), after=Arm(successes=end, n=1, known=True), turns=0, tokens=0)
        for end in (1, 0)
    )
    assert CreditRule(tau=0.999).amount(won) == 0.125
    assert CreditRule(tau=0.999, sign="signed").amount(lost) == -0.875
    assert CreditRule(tau=0.999, sign="signed").amount(estimate(7, 8)) == 0.0


def test_a_known_outcome_has_no_error_of_its_own() -> None:
    """0 of 8 before: rate 1/18, variance 17 / 18^2 / 9, and 1 / .0764 = 13.1 errors."""
    ended = Estimate(before=Arm(successes=0, n=8), after=Arm(successes=1, n=1, known=True), turns=0, tokens=0)
    errors = 1 / math.sqrt(17 / 324 / 9)
    assert CreditRule(min_z=errors - 0.01).amount(ended) == 1.0
    assert CreditRule(min_z=errors + 0.01).amount(ended) == 0.0


def test_the_largest_amounts_of_a_group_can_be_kept() -> None:
    """By absolute value, in their places; of equals the first."""
    rule = CreditRule(top=2)
    assert rule.kept([0.25, -0.5, 0.125, 0.5, 0.5]) == [0.0, -0.5, 0.0, 0.5, 0.0]
    assert rule.kept([0.25]) == [0.25]
    assert CreditRule(top=1).kept([0.5, 0.5]) == [0.5, 0.0]
    assert CreditRule().kept([0.5, 0.25, 0.0]) == [0.5, 0.25, 0.0]


def test_what_earns_nothing_takes_no_place_among_the_largest() -> None:
    """Sign and size are looked at first: a loss of 4 of 8 is larger than a gain of 3 of 8, and dropped before it."""
    measured = [estimate(2, 4), estimate(6, 2), estimate(2, 5)]
    assert CreditRule(top=1, weight=2.0).amounts(measured) == [0.0, 0.0, 0.75]
    assert CreditRule(top=1, sign="signed").amounts(measured) == [0.0, -0.5, 0.0]
