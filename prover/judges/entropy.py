"""The turn at which the policy was least sure of itself: a judge that reads log-probabilities and no text."""

import numpy as np

from prover.records import Group, NoProposal, Proposal, Segment, Trajectory
from prover.segments import choose_success, validate_segment


class EntropyJudge:
    """Proposes the single turn of the shortest success with the highest mean surprisal of its tokens.

    Surprisal, minus the log-probability of what was sampled, is an unbiased estimate of the entropy of the distribution
    that it was drawn from; entropies themselves are not stored.
    """

    name = "entropy"

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The least certain turn; ``NoProposal`` where there is no success, or no turn with tokens can be measured."""
        if group.n_success == 0:
            return NoProposal(reason="no_success")
        chosen = choose_success(group)
        success = group.trajectories[chosen]
        surprisal = {
            turn: mean
            for turn, mean in _surprisal(success).items()
            if validate_segment(Segment(trajectory=chosen, start=turn, end=turn), success, max_length=1) is None
        }
        if not surprisal:
            return NoProposal(reason="no_valid_segment")
        turn = max(surprisal, key=lambda turn: (surprisal[turn], -turn))
        return Proposal(
            segment=Segment(trajectory=chosen, start=turn, end=turn),
            reason=f"mean surprisal of {surprisal[turn]:.3f} nats a token, the highest of {len(surprisal)} turns",
            judge=self.name,
        )


def _surprisal(trajectory: Trajectory) -> dict[int, float]:
    """Mean surprisal of the tokens of each turn that sampled any, in nats."""
    turns = np.concatenate([row.turn_of_token for row in trajectory.rows] or [np.empty(0, np.int64)])
    logprobs = np.concatenate([row.logprobs for row in trajectory.rows] or [np.empty(0)])
    return {int(turn): -float(logprobs[turns == turn].mean()) for turn in np.unique(turns[turns >= 0])}
