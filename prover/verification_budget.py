"""VerificationBudget: what the continuations of an update may cost, in turns, in tokens, or as a share of the rollouts.

Costs are estimates made before anything is played: K continuations of either arm, each as long as the trajectory that
it leaves. Those that miss its success and go on to the turn cap cost more; states of known outcome and ``sequential``
cost less. Random segments, which are measured beside, are not counted.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from prover.estimates import verification_turns
from prover.records import Group, Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationBudget:
    """All limits that are set hold; None sets none."""

    continuations: int = 0
    """K, of either arm."""
    max_share: float | None = None
    """Turns, as a share of the turns of the update's rollouts."""
    max_turns: int | None = None
    """Turns of an update."""
    max_tokens: int | None = None
    """Sampled tokens of an update; a turn is taken to have as many as on average in its group."""

    def gate(self, groups: Sequence[Group]) -> "Gate":
        """What lets the groups of one update pass."""
        share = None if self.max_share is None else self.max_share * sum(_turns(group) for group in groups)
        turns = min((limit for limit in (self.max_turns, share) if limit is not None), default=None)
        return Gate(budget=self, turns=turns, tokens=self.max_tokens, n=len(groups))


@dataclass(slots=True, kw_only=True)
class Gate:
    """Lets groups pass in their order, whoever comes first, until their costs reach a limit.

    A group passes as a whole or not at all; one that does not fit keeps those behind it out as well, so that what is
    measured does not depend on how costly a group looks.
    """

    budget: VerificationBudget
    turns: float | None
    tokens: float | None
    n: int
    """Groups that will ask."""
    _costs: dict[int, tuple[int, float]] = field(default_factory=dict)
    _all_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def admit(self, group: Group, proposals: Sequence[Proposal]) -> bool:
        """Whether a group may measure its segments; waits until every group has asked, where there is a limit."""
        if self.turns is None and self.tokens is None:
            return True
        turns = sum(self._segment(proposal, group) for proposal in proposals)
        self._costs[group.index] = (turns, turns * _tokens_per_turn(group))
        if len(self._costs) == self.n:
            self._all_asked.set()
        await self._all_asked.wait()
        ahead = [cost for index, cost in self._costs.items() if index <= group.index]
        spent = [sum(costs) for costs in zip(*ahead, strict=True)]
        return all(limit is None or cost <= limit for cost, limit in zip(spent, (self.turns, self.tokens), strict=True))

    def _segment(self, proposal: Proposal, group: Group) -> int:
        segment = proposal.segment
        n_turns = group.trajectories[segment.trajectory].n_turns
        return verification_turns(n_turns, segment.start, segment.end, self.budget.continuations)


def _turns(group: Group) -> int:
    return sum(trajectory.n_turns for trajectory in group.trajectories)


def _tokens_per_turn(group: Group) -> float:
    return sum(trajectory.n_sampled for trajectory in group.trajectories) / max(1, _turns(group))
