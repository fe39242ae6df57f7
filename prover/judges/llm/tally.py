"""What judging took, counted between two looks."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from prover.chat import Usage


@dataclass(slots=True)
class Tally:
    """Counters of one judge."""

    counts: Counter[str] = field(default_factory=Counter)
    """``judged`` (conversations begun), ``repairs``, ``tool_calls``, ``tool_errors``, ``fallbacks`` (to one prompt),
    ``cache_hits``, ``orders_compared``, ``orders_flipped``."""
    refused: Counter[str] = field(default_factory=Counter)
    """Replies that could not be used, by code."""
    usage: Usage = field(default_factory=Usage)
    earlier: Usage = field(default_factory=Usage)
    """Of the looks before."""
    earlier_repairs: int = 0

    @property
    def total(self) -> Usage:
        """All that was ever used."""
        return self.earlier + self.usage

    @property
    def repairs(self) -> int:
        """All repairs that there ever were."""
        return self.earlier_repairs + self.counts["repairs"]

    def drain(self) -> dict[str, Any]:
        """All counters since the last call, for ``metrics.jsonl``; they start at 0 again."""
        names = ("judged", "repairs", "tool_calls", "tool_errors", "fallbacks", "cache_hits")
        compared = self.counts["orders_compared"]
        told: dict[str, Any] = {name: self.counts[name] for name in names}
        told |= {
            "orders_compared": compared,
            "flip_share": self.counts["orders_flipped"] / compared if compared else None,
            "refused": dict(self.refused),
            "requests": self.usage.calls,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "seconds": self.usage.seconds,
            "cost": self.usage.cost,
        }
        self.earlier, self.earlier_repairs = self.total, self.repairs
        self.usage = Usage()
        self.counts.clear()
        self.refused.clear()
        return told
