"""The judge that points at every turn."""

import asyncio
from collections.abc import Sequence

import pytest
from episodes import TASK, played

from prover.attribution import Attribution
from prover.credit import CreditRule
from prover.judges.every_turn import EveryTurnJudge
from prover.records import Arm, Estimate, Group, NoProposal, Proposal, Turn


def group(*runs: tuple[bool, int]) -> Group:
    """A group of runs with these outcomes and numbers of turns."""
    trajectories = [
        played(
            (Turn(text="", action="", result="", reward=0.0, invalid="env") for _ in range(turns)),
            success,
            member=member,
        )
        for member, (success, turns) in enumerate(runs)
    ]
    return Group(index=0, task=TASK, trajectories=tuple(trajectories))


def named(judge: EveryTurnJudge, of: Group) -> list[tuple[int, int, int]]:
    """Trajectory, start and end of what a judge names."""
    found = asyncio.run(judge.propose_all(of, seed=0))
    assert isinstance(found, Sequence)
    return [(p.segment.trajectory, p.segment.start, p.segment.end) for p in found]


def test_every_turn_of_every_run_is_named() -> None:
    """Failures, last turns and turns without a valid action are no exception."""
    assert named(EveryTurnJudge(), group((True, 2), (False, 1))) == [(0, 0, 0), (0, 1, 1), (1, 0, 0)]


def test_runs_can_be_chosen() -> None:
    """Successes alone, or the shortest of them."""
    runs = group((True, 2), (False, 1), (True, 1))
    assert named(EveryTurnJudge(of="successes"), runs) == [(0, 0, 0), (0, 1, 1), (2, 0, 0)]
    assert named(EveryTurnJudge(of="shortest"), runs) == [(2, 0, 0)]


def test_stretches_cover_the_run() -> None:
    """Five turns are two, two and one."""
    assert named(EveryTurnJudge(length=2), group((True, 5))) == [(0, 0, 1), (0, 2, 3), (0, 4, 4)]


def test_a_run_can_be_cut_into_so_many_pieces() -> None:
    """Seven turns in three are 2, 2 and 3, nine are 3 each; two turns make two pieces. ``length`` plays no part."""
    judge = EveryTurnJudge(length=4, pieces=3)
    assert named(judge, group((True, 7))) == [(0, 0, 1), (0, 2, 3), (0, 4, 6)]
    assert named(judge, group((True, 9), (False, 2))) == [(0, 0, 2), (0, 3, 5), (0, 6, 8), (1, 0, 0), (1, 1, 1)]
    assert named(EveryTurnJudge(pieces=1), group((True, 30))) == [(0, 0, 29)]
    assert asyncio.run(judge.propose_all(group((True, 0)), seed=0)) == NoProposal(reason="no_turns")


@pytest.mark.parametrize("of", ["successes", "shortest"])
def test_without_a_success_there_may_be_nothing_to_name(of: str) -> None:
    """Only the turns of successes were asked for."""
    judge = EveryTurnJudge(of=of)  # type: ignore[arg-type]  # one of its literals
    assert asyncio.run(judge.propose(group((False, 2)), seed=0)) == NoProposal(reason="no_success")


def test_runs_without_turns_give_nothing() -> None:
    """Episodes may end before the first turn."""
    assert asyncio.run(EveryTurnJudge().propose(group((True, 0)), seed=0)) == NoProposal(reason="no_turns")


def test_one_proposal_is_the_first_of_all() -> None:
    """Who asks for one gets the first turn."""
    found = asyncio.run(EveryTurnJudge().propose(group((False, 2)), seed=0))
    assert not isinstance(found, NoProposal)
    assert (found.segment.trajectory, found.segment.start, found.segment.end) == (0, 0, 0)


class Climb:
    """A verifier under which turn by turn the success rate is 0, 1, 4, 6, 7 of 8."""

    rates = (0, 1, 4, 6, 7)

    async def verify(self, proposal: Proposal, group: Group, *, seed: int) -> Estimate:
        """The difference of the two states."""
        before, after = (
            Arm(successes=self.rates[turn], n=8) for turn in (proposal.segment.start, proposal.segment.end + 1)
        )
        return Estimate(before=before, after=after, turns=0, tokens=0)

    async def verify_all(self, proposals: Sequence[Proposal], group: Group, *, seed: int) -> list[Estimate]:
        """Each by itself."""
        return [await self.verify(proposal, group, seed=seed) for proposal in proposals]


@pytest.mark.parametrize("verifier", [Climb(), None])
def test_best_of_all_turns(verifier: Climb | None) -> None:
    """All turns of the shortest success are measured and the best one earns credit; taken on trust, the first one."""
    attribution = Attribution(
        judge=EveryTurnJudge(of="shortest"), verifier=verifier, rule=CreditRule(top=1), trusted_delta=0.25
    )
    verdicts = asyncio.run(attribution.judge_groups([group((False, 3), (True, 4))], seed=0))
    assert [verdict.proposal is not None and verdict.proposal.segment.start for verdict in verdicts] == [0, 1, 2, 3]
    amounts = [verdict.credit and verdict.credit.amount for verdict in verdicts]
    assert amounts == ([None, 0.375, None, None] if verifier else [0.25, None, None, None])
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes == (["measured", "credited", "measured", "measured"] if verifier else ["trusted"] * 4)
