"""Points at every turn: what a method takes that measures all of them (VinePPO, exhaustive Monte Carlo)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from prover.records import Group, NoProposal, Proposal, Segment
from prover.segments import choose_success


class EveryTurnJudge:
    """Names each turn as a segment of its own, the last one and those without a valid action included.

    Args:
        of: ``all`` runs of the group, its ``successes``, or the ``shortest`` success.
        length: Turns of a segment; the last one may be shorter.
        pieces: Cut a run into so many segments instead, whose lengths differ by one turn at most; a run of fewer turns
            is cut into its turns.
    """

    name = "every_turn"
    every_run = True

    def __init__(
        self, of: Literal["all", "successes", "shortest"] = "all", length: int = 1, pieces: int | None = None
    ) -> None:
        self.of = of
        self.length = length
        self.pieces = pieces

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The first of them."""
        found = await self.propose_all(group, seed=seed)
        return found if isinstance(found, NoProposal) else found[0]

    async def propose_all(self, group: Group, *, seed: int) -> Sequence[Proposal] | NoProposal:
        """All of them."""
        if self.of != "all" and group.n_success == 0:
            return NoProposal(reason="no_success")
        chosen = [choose_success(group)] if self.of == "shortest" else range(len(group.trajectories))
        found = []
        for index in chosen:
            run = group.trajectories[index]
            if self.of == "successes" and not run.success:
                continue
            for start, stop in pairwise(self._cuts(run.n_turns)):
                segment = Segment(trajectory=index, start=start, end=stop - 1)
                found.append(Proposal(segment=segment, reason="every turn", judge=self.name))
        return found or NoProposal(reason="no_turns")

    def _cuts(self, n_turns: int) -> list[int]:
        """The first turn of each segment, and the end."""
        if self.pieces is None:
            return [*range(0, n_turns, self.length), n_turns]
        pieces = min(self.pieces, n_turns)
        return [0, *(number * n_turns // pieces for number in range(1, pieces + 1))]
