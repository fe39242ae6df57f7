"""What is made of a measured difference: the third of the three choices of a method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from prover.advantages import Sign, Std, group_scale, segment_credit
from prover.estimates import jeffreys_difference, prob_after_exceeds_before
from prover.records import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditRule:
    """From a measured difference to an amount of credit (method, section 2.2: scale, sign, reliability)."""

    weight: float = 1.0
    """lambda."""
    sign: Sign = "positive"
    """``positive`` drops negative differences, ``signed`` keeps them."""
    min_z: float = 0.0
    """Least difference in standard errors."""
    min_delta: float = 0.0
    """Least difference."""
    tau: float = 0.0
    """Least posterior probability that the difference has the sign that was measured."""
    measure: Literal["success", "reward"] = "success"
    """Difference of success rates, or of mean rewards where rewards are graded."""
    std: Std = "none"
    """Divisor, as that of the group's advantages."""
    cap: float | None = None
    """Largest amount in either direction."""
    top: int | None = None
    """Segments of a group that earn credit; None for all."""

    def amounts(self, estimates: Sequence[Estimate], rewards_G: ArrayLike = ()) -> list[float]:  # noqa: N803 - shape suffix
        """What each segment of a group earns; 0 for all but the ``top`` ones. See ``amount``."""
        return self.kept([self.amount(estimate, rewards_G) for estimate in estimates])

    def kept(self, amounts: Sequence[float]) -> list[float]:
        """The ``top`` largest amounts of a group by absolute value, the first of equals, and 0 for the others."""
        order = sorted(range(len(amounts)), key=lambda index: -abs(amounts[index]))
        earning = set(order[: self.top])
        return [amount if index in earning else 0.0 for index, amount in enumerate(amounts)]

    def amount(self, estimate: Estimate, rewards_G: ArrayLike = ()) -> float:  # noqa: N803 - shape suffix
        """Lambda times delta, or 0 where the rule gives no credit.

        Args:
            estimate: What was measured.
            rewards_G: Outcomes of the group, for ``std``.
        """
        amount = segment_credit(
            estimate.delta if self.measure == "success" else estimate.reward_delta,
            weight=self.weight,
            sign=self.sign,
            se=self._error(estimate),
            min_delta=self.min_delta,
            min_z=self.min_z,
            probability=self._probability(estimate) if self.tau else 1.0,
            tau=self.tau,
            scale=group_scale(rewards_G, std=self.std) if self.std != "none" else 1.0,
        )
        return amount if self.cap is None else min(max(amount, -self.cap), self.cap)

    @staticmethod
    def _probability(estimate: Estimate) -> float:
        """Posterior probability that the rate after exceeds that before."""
        before, after = estimate.before, estimate.after
        if after.known:  # No rate is above a certain success, none below a certain failure.
            return float(after.successes)
        return prob_after_exceeds_before(before.successes, before.n, after.successes, after.n)

    @staticmethod
    def _error(estimate: Estimate) -> float:
        """Standard error of the difference; Jeffreys' is never 0: 0 of 8 against 8 of 8 is no certainty."""
        before, after = estimate.before, estimate.after
        if after.known:  # Only the state before was estimated: half the variance of two such arms.
            return float(jeffreys_difference(before.successes, before.n, before.successes, before.n).se / np.sqrt(2))
        return jeffreys_difference(before.successes, before.n, after.successes, after.n).se
