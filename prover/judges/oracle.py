"""A judge that knows: where an environment's pivotal turns are known, the best that a judge could do."""

from collections.abc import Callable, Iterable

from prover.records import Group, NoProposal, Proposal, Segment, Trajectory
from prover.seeds import generator
from prover.segments import choose_success, validate_segment


class OracleJudge:
    """Draws one of the turns of the shortest success that a function of the environment's author calls pivotal.

    Args:
        pivots: Gets a trajectory and returns its pivotal turns, 0-based.
    """

    name = "oracle"

    def __init__(self, pivots: Callable[[Trajectory], Iterable[int]]) -> None:
        self.pivots = pivots

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The pivotal turn that the seed draws; ``NoProposal`` where there is none that can be measured."""
        if group.n_success == 0:
            return NoProposal(reason="no_success")
        chosen = choose_success(group)
        success = group.trajectories[chosen]
        segments = [Segment(trajectory=chosen, start=turn, end=turn) for turn in sorted(set(self.pivots(success)))]
        valid = [segment for segment in segments if validate_segment(segment, success, max_length=1) is None]
        if not valid:
            return NoProposal(reason="no_pivot", detail=f"{len(segments)} pivots, none that can be measured")
        drawn = valid[int(generator(seed).integers(len(valid)))]
        return Proposal(segment=drawn, reason=f"one of {len(valid)} pivotal turns", judge=self.name)
