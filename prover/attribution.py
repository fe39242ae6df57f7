"""Which decisions mattered: eligible groups -> a judge's proposal -> its check -> a measurement -> credit.

Whatever goes wrong on the way, the group's update is plain GRPO, bit for bit, and the reason is counted.
"""

import asyncio
import traceback
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from prover.advantages import segment_credit
from prover.credit import CreditRule
from prover.protocols import Judge, Verifier
from prover.records import Credit, Estimate, Group, NoProposal, Proposal, Segment
from prover.seeds import derive, generator
from prover.segments import validate_segment
from prover.verification_budget import Gate, VerificationBudget

_Answer = TypeVar("_Answer")

INELIGIBLE = frozenset({"all_failed", "all_succeeded", "not_eligible"})
"""Outcomes of groups that are not judged."""
_UNANSWERED = "no_proposal:judge_"
"""Begins the outcome of groups whose judge said why it has no answer; the cause follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one group, or of one segment where several were proposed for it."""

    group: int
    """Index of the group in its update."""
    outcome: str
    """``credited``, ``measured`` (no credit came of it), ``trusted``, or why nothing was measured."""
    proposal: Proposal | None = None
    estimate: Estimate | None = None
    credit: Credit | None = None
    probe: Estimate | None = None
    """Measurement of a random segment of the same success: what the judge has to beat."""
    probe_error: str = ""
    """Why the random segment could not be measured; nothing but a metric depends on it."""
    detail: str = ""

    @property
    def unanswered(self) -> str | None:
        """Why the judge gave no answer, as a short code; None where it gave one or was not asked."""
        if self.outcome == "judge_failed":
            return "error"
        return self.outcome.removeprefix(_UNANSWERED) if self.outcome.startswith(_UNANSWERED) else None


_NO_LIMIT = VerificationBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Judges and measures all groups of an update at once."""

    judge: Judge
    verifier: Verifier | None
    """None takes the judge's word: each valid proposal earns ``trusted_delta``, and nothing is measured."""
    rule: CreditRule
    trusted_delta: float = 0.0
    """What an unmeasured segment is taken to add to the success rate."""
    judge_deadline_s: float | None = None
    """Longest wait for one judgement, in seconds; a judge that holds up the event loop cannot be cut short."""
    probe: Judge | None = None
    """Proposes the random segments of the null probe."""
    probe_share: float = 0.0
    """Share of the measured groups whose random segment is measured too."""
    eligible_min: int = 1
    eligible_max: int = 3
    """Fewest and most successes of a group that is judged."""
    mixed_only: bool = True
    """Whether groups in which all succeeded or all failed are left out."""
    max_length: int = 4
    """Longest segment, in turns."""
    budget: VerificationBudget = _NO_LIMIT
    """Groups are admitted in order, each with what it is expected to cost; the others are ``over_budget``."""

    async def judge_groups(self, groups: Sequence[Group], *, seed: int) -> list[Verdict]:
        """One verdict per group or proposed segment, in order; the continuations of all groups run in one pool."""
        gate = self.budget.gate(groups)
        parts = await asyncio.gather(*(self._judge_group(group, derive(seed, group.index), gate) for group in groups))
        return [verdict for part in parts for verdict in part]

    async def _judge_group(self, group: Group, seed: int, gate: Gate) -> list[Verdict]:
        verdicts, valid = await self._ask(group, seed)
        admitted = await gate.admit(group, valid)
        if not valid:
            return verdicts
        if self.verifier is None:
            return verdicts + self._trusted(valid, group)
        if not admitted:
            over = Verdict(group=group.index, outcome="over_budget")
            return verdicts + [replace(over, proposal=proposal) for proposal in valid]
        async with asyncio.TaskGroup() as tasks:
            probing = tasks.create_task(self._probe(group, seed))
            first, *others = await self._measure(self.verifier, valid, group, seed=derive(seed, 1))
        probe = probing.result()
        first = replace(first, probe_error=probe) if isinstance(probe, str) else replace(first, probe=probe)
        return [*verdicts, first, *others]

    async def _ask(self, group: Group, seed: int) -> tuple[list[Verdict], list[Proposal]]:
        """What the judge says: verdicts on what cannot be measured, and proposals that can."""
        if (reason := self._ineligible(group)) is not None:
            return [Verdict(group=group.index, outcome=reason)], []
        try:
            propose = getattr(self.judge, "propose_all", self.judge.propose)
            reply = await in_time(propose(group, seed=derive(seed, 0)), self.judge_deadline_s)
            answers = [_checked(answer) for answer in (reply if isinstance(reply, Sequence) else [reply])]
            codes = [None if isinstance(answer, NoProposal) else self._invalid(answer, group) for answer in answers]
        except Exception as error:
            return [Verdict(group=group.index, outcome="judge_failed", detail=_trace(error))], []
        if not answers:
            return [Verdict(group=group.index, outcome="no_proposal:nothing_named")], []
        verdicts, valid = [], []
        for answer, code in zip(answers, codes, strict=True):
            if isinstance(answer, NoProposal):
                outcome = f"no_proposal:{answer.reason}"
                verdicts.append(Verdict(group=group.index, outcome=outcome, detail=answer.detail))
            elif code is not None:
                verdicts.append(Verdict(group=group.index, outcome=f"invalid_proposal:{code}", proposal=answer))
            else:
                valid.append(answer)
        return verdicts, valid

    def _trusted(self, proposals: Sequence[Proposal], group: Group) -> list[Verdict]:
        amount = segment_credit(self.trusted_delta, weight=self.rule.weight, sign=self.rule.sign)
        return [
            Verdict(
                group=group.index,
                outcome="trusted",
                proposal=proposal,
                credit=Credit(segment=proposal.segment, amount=kept) if kept else None,
            )
            for proposal, kept in zip(proposals, self.rule.kept([amount] * len(proposals)), strict=True)
        ]

    async def _measure(
        self, verifier: Verifier, proposals: Sequence[Proposal], group: Group, *, seed: int
    ) -> list[Verdict]:
        try:
            estimates = await verifier.verify_all(proposals, group, seed=seed)
            amounts = self.rule.amounts(estimates, group.rewards_G)
        except Exception as error:
            failed = Verdict(group=group.index, outcome="verifier_failed", detail=_trace(error))
            return [replace(failed, proposal=proposal) for proposal in proposals]
        return [
            Verdict(
                group=group.index,
                outcome="credited" if amount else "measured",
                proposal=proposal,
                estimate=estimate,
                credit=Credit(segment=proposal.segment, amount=amount) if amount else None,
            )
            for proposal, estimate, amount in zip(proposals, estimates, amounts, strict=True)
        ]

    def _ineligible(self, group: Group) -> str | None:
        successes, size = group.n_success, len(group.trajectories)
        if successes == 0 and self.mixed_only:
            return "all_failed"
        if successes == size and self.mixed_only:
            return "all_succeeded"
        if not self.eligible_min <= successes <= self.eligible_max:
            return "not_eligible"
        return None

    def _invalid(self, proposal: Proposal, group: Group) -> str | None:
        segment = proposal.segment
        if not 0 <= segment.trajectory < len(group.trajectories):
            return "unknown_trajectory"
        trajectory, every = group.trajectories[segment.trajectory], getattr(self.judge, "every_run", False)
        if not trajectory.success and not every:
            return "not_a_success"
        return validate_segment(segment, trajectory, max_length=self.max_length, strict=not every)

    async def _probe(self, group: Group, seed: int) -> Estimate | str | None:
        """Measure a random segment, where one is drawn; the traceback if that fails."""
        if self.probe is None or self.verifier is None or generator(seed, 2).random() >= self.probe_share:
            return None
        try:
            proposal = await self.probe.propose(group, seed=derive(seed, 3))
            if isinstance(proposal, NoProposal):
                return None
            return await self.verifier.verify(proposal, group, seed=derive(seed, 4))
        except Exception as error:
            return _trace(error)


async def in_time(answer: Awaitable[_Answer], deadline_s: float | None) -> _Answer | NoProposal:
    """What a judge answers; ``judge_deadline`` when it takes longer than the deadline."""
    try:
        async with asyncio.timeout(deadline_s) as deadline:
            return await answer
    except TimeoutError:
        if not deadline.expired():
            raise
        return NoProposal(reason="judge_deadline", detail=f"no judgement within {deadline_s:g} s")


def _checked(reply: Proposal | NoProposal) -> Proposal | NoProposal:
    """What a judge answered, if it is of the types it claims: it may be anybody's code."""
    fields: list[tuple[object, type]] = [(reply.reason, str)]
    if isinstance(reply, NoProposal):
        fields.append((reply.detail, str))
    else:
        fields += [(reply.judge, str), (reply.segment, Segment)]
    for value, kind in fields:
        if type(value) is not kind:
            raise TypeError(f"expected a judge's answer to hold {kind.__name__} values, got {value!r} in {reply!r}")
    return reply


def _trace(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def attribution_metrics(verdicts: Sequence[Verdict], groups: Sequence[Group]) -> dict[str, Any]:
    """Counts, means and shares of an update (method, section 2.4); None where there is nothing to take them of.

    ``mean_segment_position`` averages the first turn of the segment over the turns of its trajectory; ``extra_turns``
    and ``extra_tokens`` are the shares of continuations, the probes' included, in all that was played in the update.
    """
    of_index = {group.index: group for group in groups}
    played = [trajectory for group in groups for trajectory in group.trajectories]
    estimates = [verdict.estimate for verdict in verdicts if verdict.estimate is not None]
    probes = [verdict.probe for verdict in verdicts if verdict.probe is not None]
    proposals = [verdict for verdict in verdicts if verdict.proposal is not None]
    eligible = len({verdict.group for verdict in verdicts if verdict.outcome not in INELIGIBLE})
    valid = len({v.group for v in proposals if not v.outcome.startswith("invalid_proposal")})
    positive = sum(estimate.delta > 0 for estimate in estimates)
    unanswered = Counter(verdict.unanswered for verdict in verdicts if verdict.unanswered)
    told = [v for v in proposals if v.estimate is not None or v.outcome == "trusted"]
    segments = [(v.group, v.proposal.segment) for v in told if v.proposal is not None]
    positions = [s.start / of_index[group].trajectories[s.trajectory].n_turns for group, s in segments]
    credits = [verdict.credit.amount for verdict in verdicts if verdict.credit is not None]
    turns, tokens = (sum(getattr(run, name) for run in (*estimates, *probes)) for name in ("turns", "tokens"))
    return {
        "outcomes": dict(Counter(verdict.outcome for verdict in verdicts)),
        "eligible_rate": _share(eligible, len({verdict.group for verdict in verdicts})),
        "judge_asked": eligible,
        "judge_answered": eligible - unanswered.total(),
        "judge_failures": dict(unanswered),
        "proposals": len(proposals),
        "proposal_valid_rate": _share(valid, eligible),
        "measured": len(estimates),
        "positive": positive,
        "positive_rate": _share(positive, len(estimates)),
        "negative": sum(estimate.delta < 0 for estimate in estimates),
        "mean_delta": _mean([estimate.delta for estimate in estimates]),
        "mean_credit": _mean(credits),
        "mean_segment_length": _mean([segment.length for _, segment in segments]),
        "mean_segment_position": _mean(positions),
        "verifier_turns": sum(estimate.turns for estimate in estimates),
        "verifier_tokens": sum(estimate.tokens for estimate in estimates),
        "verifier_failures": sum(estimate.before.failures + estimate.after.failures for estimate in estimates),
        "probes": len(probes),
        "probe_failures": sum(bool(verdict.probe_error) for verdict in verdicts),
        "probe_positive": sum(estimate.delta > 0 for estimate in probes),
        "probe_mean_delta": _mean([estimate.delta for estimate in probes]),
        "probe_turns": sum(estimate.turns for estimate in probes),
        "probe_tokens": sum(estimate.tokens for estimate in probes),
        "extra_turns": _share(turns, turns + sum(trajectory.n_turns for trajectory in played)),
        "extra_tokens": _share(tokens, tokens + sum(trajectory.n_sampled for trajectory in played)),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
