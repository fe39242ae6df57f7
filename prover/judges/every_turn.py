"""Points at every turn: what a method takes that measures all of them (VinePPO, exhaustive Monte Carlo)."""

from collections.abc import Sequence
from typing import Literal

from prover.records import Group, NoProposal, Proposal, Segment
from prover.segments import choose_success


class EveryTurnJudge:
    """Names each turn as a segment of its own, the last one and those without a valid action included.

    Args:
        of: ``all`` runs of the group, its ``successes``, or the ``shortest`` success.
        length: Turns of a segment; the last one may be shorter.
    """

    name = "every_turn"
    every_run = True

    def __init__(self, of: Literal["all", "successes", "shortest"] = "all", length: int = 1) -> None:
        self.of = of
        self.length = length

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
            for start in range(0, run.n_turns, self.length):
                segment = Segment(trajectory=index, start=start, end=min(start + self.length, run.n_turns) - 1)
                found.append(Proposal(segment=segment, reason="every turn", judge=self.name))
        return found or NoProposal(reason="no_turns")
