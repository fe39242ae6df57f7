"""NullProbe: does the judge point at turns that matter more than random ones?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prover.attribution import Verdict
from prover.estimates import MeanInterval, mean_interval


@dataclass(slots=True, kw_only=True)
class NullProbe:
    """Collects, over a run, by how much the judge's segment beat a random one of the same group.

    With K = 8 a segment without effect still has a positive difference in up to 40% of the cases, so the judge's own
    figures tell little; their difference to a random segment's does.
    """

    warn_after: int
    """Pairs after which a judge that is not better than chance is told of, once."""
    gains: list[float] = field(default_factory=list)
    _warned: bool = False

    @staticmethod
    def pairs(verdicts: Sequence[Verdict]) -> list[float]:
        """The judge's difference minus the random one's, of every group in which both were measured."""
        return [
            verdict.estimate.delta - verdict.probe.delta
            for verdict in verdicts
            if verdict.estimate is not None and verdict.probe is not None
        ]

    def see(self, verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Take in an update; returns metrics of the run so far."""
        mine = self.pairs(verdicts)
        self.gains += mine
        mean = self.mean
        return {
            "probe_gains": mine,
            "probe_gain": None if mean is None else mean.mean,
            "probe_gain_interval95": None if mean is None or mean.low is None else [mean.low, mean.high],
            "probe_pairs": len(self.gains),
        }

    def recall(self, metrics: Iterable[Mapping[str, Any]]) -> None:
        """Take in what an interrupted run had seen."""
        for update in metrics:
            self.gains += update.get("probe_gains", [])

    @property
    def mean(self) -> MeanInterval | None:
        """Mean gain over chance with its interval; None without pairs."""
        return mean_interval(self.gains) if self.gains else None

    def warning(self) -> str | None:
        """What to say of a judge that is no better than chance, once there are enough pairs."""
        mean = self.mean
        if self._warned or mean is None or mean.n < self.warn_after or mean.low is None or mean.low > 0:
            return None
        self._warned = True
        return (
            f"the judge is not shown to be better than chance: its segments beat random ones by {mean.mean:+.3f} "
            f"[{mean.low:+.3f}, {mean.high:+.3f}] in {mean.n} groups; compare judges with `prover judge RUN`"
        )
