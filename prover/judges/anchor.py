"""A judge that reads nothing but how the group's own runs ended: where did those that came through here do better?"""

from collections.abc import Sequence

from prover.records import Group, NoProposal, Proposal, Segment, Trajectory
from prover.segments import choose_success, validate_segment


class AnchorJudge:
    """Proposes the single turn of the shortest success at which the other runs' success rate rises most.

    The rate of a state is the share of successes among the *other* runs that visited it (GiGPO's anchor states, arXiv
    2505.10978), drawn towards the rate of all others as if one run more had been seen; a state that nobody else visited
    has just that rate. So it takes a second success to see a rise, which may also be the leaving of a state that others
    failed from. The judged success does not count: it would make every state of its own look like a discovery.
    """

    name = "anchor"

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The turn with the largest rise, the earliest of equals; ``NoProposal`` where the rate rises nowhere."""
        if not 0 < group.n_success < len(group.trajectories):
            return NoProposal(reason="no_contrast", detail=f"{group.n_success} of {len(group.trajectories)} succeeded")
        chosen = choose_success(group)
        success = group.trajectories[chosen]
        others = [run for index, run in enumerate(group.trajectories) if index != chosen]
        if not all(turn.state_key for turn in success.turns):
            return NoProposal(reason="no_states", detail="the states of the success were not recorded")
        rates = _rates(success, others)
        best, rise = None, 0.0
        for turn in range(success.n_turns - 1):
            segment = Segment(trajectory=chosen, start=turn, end=turn)
            if rates[turn + 1] - rates[turn] > rise and validate_segment(segment, success, max_length=1) is None:
                best, rise = segment, rates[turn + 1] - rates[turn]
        if best is None:
            return NoProposal(reason="no_rise", detail=f"the rate of {len(others)} other runs rises at no turn")
        reason = f"turn {best.start}: {rise:+.2f} in the success of the other runs through its states"
        return Proposal(segment=best, reason=reason, judge=self.name)


def _rates(success: Trajectory, others: Sequence[Trajectory]) -> list[float]:
    """Success rate of each state before a turn, shape (S,)."""
    visited = [{turn.state_key for turn in run.turns} for run in others]
    overall = sum(run.success for run in others) / len(others)
    rates = []
    for turn in success.turns:
        there = [run.success for run, states in zip(others, visited, strict=True) if turn.state_key in states]
        rates.append((sum(there) + overall) / (len(there) + 1))
    return rates
