"""The turn at which the success parts from its failures: a judge that reads only where actions differ."""

from typing import Literal

from prover.records import Group, NoProposal, Proposal, Segment, Trajectory
from prover.segments import choose_success, validate_segment


class DivergenceJudge:
    """Proposes the single turn of the shortest success at which it parts from the first or the last of its failures.

    A failure goes along as long as its actions are those of the success, from the start on.

    Args:
        which: ``first`` takes the earliest parting, ``last`` the latest: the decision that the nearest failure missed.
    """

    name = "divergence"

    def __init__(self, which: Literal["first", "last"] = "last") -> None:
        self.which = which

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The turn of parting; ``NoProposal`` where there is no contrast or that turn cannot be measured."""
        failures = [run for run in group.trajectories if not run.success]
        if group.n_success == 0 or not failures:
            return NoProposal(reason="no_contrast", detail=f"{group.n_success} of {len(group.trajectories)} succeeded")
        chosen = choose_success(group)
        success = group.trajectories[chosen]
        pick = min if self.which == "first" else max
        turn = pick(_parting(success, failure) for failure in failures)
        segment = Segment(trajectory=chosen, start=turn, end=turn)
        if (code := validate_segment(segment, success, max_length=1)) is not None:
            return NoProposal(reason="no_valid_segment", detail=f"turn {turn}: {code}")
        return Proposal(segment=segment, reason=f"{self.which} parting from {len(failures)} failures", judge=self.name)


def _parting(success: Trajectory, failure: Trajectory) -> int:
    """First turn of the success whose action the failure did not take; its number of turns if there is none."""
    pairs = zip(success.turns, failure.turns, strict=False)
    same = [ours.action == theirs.action for ours, theirs in pairs]
    return same.index(False) if False in same else len(same)
