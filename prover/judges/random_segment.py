"""A random segment of the success: the null that every judge has to beat."""

from prover.records import Group, NoProposal, Proposal, Segment
from prover.seeds import generator
from prover.segments import choose_success, validate_segment


class RandomJudge:
    """Draws uniformly among all valid segments of the chosen success. Verified random segments gain nothing over GRPO.

    A random turn of a success is no zero-effect null: being further along a success raises the value by itself.

    Args:
        max_length: longest segment in turns; 1 draws single turns.
    """

    name = "random"

    def __init__(self, max_length: int = 1) -> None:
        self.max_length = max_length

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The segment that the seed draws; ``NoProposal`` when there is no success or no valid segment in it."""
        if group.n_success == 0:
            return NoProposal(reason="no_success")
        chosen = choose_success(group)
        trajectory = group.trajectories[chosen]
        segments = [
            segment
            for start in range(trajectory.n_turns)
            for end in range(start, min(start + self.max_length, trajectory.n_turns))
            if validate_segment(
                segment := Segment(trajectory=chosen, start=start, end=end), trajectory, self.max_length
            )
            is None
        ]
        if not segments:
            return NoProposal(reason="no_valid_segment")
        drawn = segments[int(generator(seed).integers(len(segments)))]
        return Proposal(segment=drawn, reason=f"drawn at random among {len(segments)} segments", judge=self.name)
