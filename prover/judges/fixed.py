"""A segment between fixed boundaries: what a method takes that cuts episodes without looking at them."""

from prover.records import Group, NoProposal, Proposal, Segment
from prover.seeds import generator
from prover.segments import choose_success, validate_segment


class FixedJudge:
    """Cuts the shortest success every ``length`` turns and draws one of the pieces that can be measured.

    Args:
        length: Turns of a piece; the last one may be shorter.
    """

    name = "fixed"

    def __init__(self, length: int = 4) -> None:
        self.length = length

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The piece that the seed draws; ``NoProposal`` when there is no success or no piece of it can be measured."""
        if group.n_success == 0:
            return NoProposal(reason="no_success")
        chosen = choose_success(group)
        success = group.trajectories[chosen]
        pieces = [
            piece
            for start in range(0, success.n_turns, self.length)
            if validate_segment(
                piece := Segment(trajectory=chosen, start=start, end=min(start + self.length, success.n_turns) - 1),
                success,
                self.length,
            )
            is None
        ]
        if not pieces:
            return NoProposal(reason="no_valid_segment")
        drawn = pieces[int(generator(seed).integers(len(pieces)))]
        return Proposal(segment=drawn, reason=f"one of {len(pieces)} pieces of {self.length} turns", judge=self.name)
