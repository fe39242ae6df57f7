"""AnswerWatch: whether the judge answers at all."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from prover.attribution import INELIGIBLE, Verdict
from prover.errors import FailureShareError


@dataclass(slots=True, kw_only=True)
class AnswerWatch:
    """Watches how many of the last groups got an answer from their judge: an outage is no verdict, and not silent."""

    warn_below: float
    """Share of answers below which there is a warning, once until the share has recovered."""
    stop_below: float
    """Share of answers below which the run stops; 0 never stops it."""
    window: int
    """Judged groups that the share is taken of. Warnings do not wait until there are so many, stops do."""
    _recent: deque[str | None] = field(init=False)
    _low: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._recent = deque(maxlen=self.window)

    def see(self, verdicts: Sequence[Verdict]) -> str | None:
        """Take in an update; returns a warning where one is due. A budget that is used up counts as no outage.

        Raises:
            FailureShareError: too few of the last groups got an answer.
        """
        asked = (verdict for verdict in verdicts if verdict.outcome not in INELIGIBLE)
        self._recent.extend(verdict.unanswered for verdict in asked if verdict.unanswered != "budget")
        if not self._recent:
            return None
        answered = self._recent.count(None)
        share = answered / len(self._recent)
        causes = ", ".join(f"{cause} {n}" for cause, n in Counter(filter(None, self._recent)).most_common())
        told = f"{answered} of the last {len(self._recent)} groups got an answer from the judge ({causes})"
        if share < self.stop_below and len(self._recent) == self.window:
            raise FailureShareError(
                f"expected answers to a share of at least {self.stop_below:g}, got {told}; see that the judge can be "
                "reached, then resume, or lower verify.stop_below"
            )
        before, self._low = self._low, share < self.warn_below
        return f"only {told}; the others are trained on as plain GRPO" if self._low and not before else None
