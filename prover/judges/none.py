"""NoJudge: proposes nothing, so that every update is plain GRPO."""

from prover.records import Group, NoProposal


class NoJudge:
    """Has nothing to say.

    >>> import asyncio
    >>> asyncio.run(NoJudge().propose(None, seed=0)).reason
    'no_judge'
    """

    name = "none"

    async def propose(self, group: Group | None, *, seed: int) -> NoProposal:
        """No proposal, whatever the group."""
        return NoProposal(reason="no_judge")
