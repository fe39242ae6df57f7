"""TurnBudget: as many environment turns as another run took, continuations included, spent on larger groups."""

import json
import math
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Self

from prover.errors import DataError


@dataclass(slots=True, kw_only=True)
class TurnBudget:
    """Says how many more episodes an update needs to keep up with the other run.

    What the other run spent on measuring random segments is no part of its method and does not count.
    """

    spent: tuple[int, ...]
    """Turns of the other run up to and including each update."""
    own: int = 0
    """Turns that this run has taken."""

    @classmethod
    def of(cls, run: Path) -> Self:
        """The budget that a run's metrics tell.

        Raises:
            DataError: there are none.
        """
        try:
            lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            turns = [json.loads(line)["turns"] + json.loads(line)["verifier_turns"] for line in lines]
        except (OSError, ValueError, KeyError) as error:
            raise DataError(
                f"expected a finished run in {run}, got {type(error).__name__}: {error}; name its folder as "
                "rollout.match_turns"
            ) from error
        if not turns:
            raise DataError(f"expected a finished run in {run}, got one without updates; let it run first")
        return cls(spent=tuple(accumulate(turns)))

    def allowance(self, update: int) -> float:
        """Turns until the end of an update; beyond the other run's end it would have gone on as on average."""
        if update < len(self.spent):
            return self.spent[update]
        return self.spent[-1] * (update + 1) / len(self.spent)

    def more(self, update: int, turns: int, episodes: int, groups: int) -> list[int]:
        """Members to add to each group, the first groups first.

        Args:
            update: Number of the update, from 0.
            turns: Turns that its episodes took.
            episodes: How many these were.
            groups: How many groups they are in.
        """
        left = self.allowance(update) - self.own - turns
        n = max(0, math.floor(left * episodes / turns)) if turns else 0
        return [n // groups + (index < n % groups) for index in range(groups)]
