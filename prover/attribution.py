"""Which decisions mattered: eligible groups -> a judge's proposal -> its check -> a measurement -> credit.

Whatever goes wrong on the way, the group's update is plain GRPO, bit for bit, and the reason is counted.
"""

import asyncio
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from prover.advantages import Sign, segment_credit
from prover.errors import FailureShareError
from prover.estimates import jeffreys_difference
from prover.protocols import Judge, Verifier
from prover.records import Credit, Estimate, Group, NoProposal, Proposal, Segment
from prover.seeds import derive, generator
from prover.segments import validate_segment

_INELIGIBLE = frozenset({"all_failed", "all_succeeded", "not_eligible"})
"""Outcomes of groups that are not judged."""
_UNANSWERED = "no_proposal:judge_"
"""Begins the outcome of groups whose judge said why it has no answer; the cause follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one group."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditRule:
    """From a measured difference to an amount of credit (method, section 2.2: scale, sign, reliability)."""

    weight: float = 1.0
    """lambda."""
    sign: Sign = "positive"
    """``positive`` drops negative differences, ``signed`` keeps them."""
    min_z: float = 0.0
    """Least difference in standard errors."""

    def amount(self, estimate: Estimate) -> float:
        """Lambda times delta, or 0 where the rule gives no credit."""
        before, after = estimate.before, estimate.after
        # Jeffreys' error is never 0: 0 of 8 against 8 of 8 is no certainty.
        se = jeffreys_difference(before.successes, before.n, after.successes, after.n).se
        return segment_credit(estimate.delta, weight=self.weight, sign=self.sign, se=se, min_z=self.min_z)


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
    max_length: int = 4
    """Longest segment, in turns."""

    async def judge_groups(self, groups: Sequence[Group], *, seed: int) -> list[Verdict]:
        """One verdict per group, in order; the continuations of all groups run in one pool."""
        return list(await asyncio.gather(*(self._judge_group(group, derive(seed, group.index)) for group in groups)))

    async def _judge_group(self, group: Group, seed: int) -> Verdict:
        if (reason := self._ineligible(group)) is not None:
            return Verdict(group=group.index, outcome=reason)
        try:
            proposal = _checked(await ask(self.judge, group, seed=derive(seed, 0), deadline_s=self.judge_deadline_s))
            code = None if isinstance(proposal, NoProposal) else self._invalid(proposal, group)
        except Exception as error:
            return Verdict(group=group.index, outcome="judge_failed", detail=_trace(error))
        if isinstance(proposal, NoProposal):
            return Verdict(group=group.index, outcome=f"no_proposal:{proposal.reason}", detail=proposal.detail)
        if code is not None:
            return Verdict(group=group.index, outcome=f"invalid_proposal:{code}", proposal=proposal)
        if self.verifier is None:
            amount = segment_credit(self.trusted_delta, weight=self.rule.weight, sign=self.rule.sign)
            credit = Credit(segment=proposal.segment, amount=amount) if amount else None
            return Verdict(group=group.index, outcome="trusted", proposal=proposal, credit=credit)
        async with asyncio.TaskGroup() as tasks:
            probing = tasks.create_task(self._probe(group, seed))
            verdict = await self._measure(self.verifier, proposal, group, seed=derive(seed, 1))
        probe = probing.result()
        if isinstance(probe, str):
            return replace(verdict, probe_error=probe)
        return replace(verdict, probe=probe)

    async def _measure(self, verifier: Verifier, proposal: Proposal, group: Group, *, seed: int) -> Verdict:
        try:
            estimate = await verifier.verify(proposal, group, seed=seed)
            amount = self.rule.amount(estimate)
        except Exception as error:
            return Verdict(group=group.index, outcome="verifier_failed", proposal=proposal, detail=_trace(error))
        return Verdict(
            group=group.index,
            outcome="credited" if amount else "measured",
            proposal=proposal,
            estimate=estimate,
            credit=Credit(segment=proposal.segment, amount=amount) if amount else None,
        )

    def _ineligible(self, group: Group) -> str | None:
        successes, size = group.n_success, len(group.trajectories)
        if successes == 0:
            return "all_failed"
        if successes == size:
            return "all_succeeded"
        if not self.eligible_min <= successes <= self.eligible_max:
            return "not_eligible"
        return None

    def _invalid(self, proposal: Proposal, group: Group) -> str | None:
        segment = proposal.segment
        if not 0 <= segment.trajectory < len(group.trajectories):
            return "unknown_trajectory"
        trajectory = group.trajectories[segment.trajectory]
        if not trajectory.success:
            return "not_a_success"
        return validate_segment(segment, trajectory, max_length=self.max_length)

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


@dataclass(slots=True, kw_only=True)
class AnswerWatch:
    """Watches how many of the last groups got an answer from their judge: an outage is no verdict, and not silent."""

    warn_below: float
    """Share of answers below which there is a warning, once until the share has recovered."""
    stop_below: float
    """Share of answers below which the run stops; 0 never stops it."""
    window: int
    """Judged groups that the share is taken of. Warnings do not wait until there are so many, stops do."""
    _recent: deque[str | None] = field(init=False)
    _low: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._recent = deque(maxlen=self.window)

    def see(self, verdicts: Sequence[Verdict]) -> str | None:
        """Take in an update; returns a warning where one is due. A budget that is used up counts as no outage.

        Raises:
            FailureShareError: too few of the last groups got an answer.
        """
        asked = (verdict for verdict in verdicts if verdict.outcome not in _INELIGIBLE)
        self._recent.extend(verdict.unanswered for verdict in asked if verdict.unanswered != "budget")
        if not self._recent:
            return None
        answered = self._recent.count(None)
        share = answered / len(self._recent)
        causes = ", ".join(f"{cause} {n}" for cause, n in Counter(filter(None, self._recent)).most_common())
        told = f"{answered} of the last {len(self._recent)} groups got an answer from the judge ({causes})"
        if share < self.stop_below and len(self._recent) == self.window:
            raise FailureShareError(
                f"expected answers to a share of at least {self.stop_below:g}, got {told}; see that the judge can be "
                "reached, then resume, or lower verify.stop_below"
            )
        before, self._low = self._low, share < self.warn_below
        return f"only {told}; the others are trained on as plain GRPO" if self._low and not before else None


async def ask(judge: Judge, group: Group, *, seed: int, deadline_s: float | None) -> Proposal | NoProposal:
    """What a judge answers; ``judge_deadline`` when it takes longer than the deadline."""
    try:
        async with asyncio.timeout(deadline_s) as deadline:
            return await judge.propose(group, seed=seed)
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
    eligible = sum(verdict.outcome not in _INELIGIBLE for verdict in verdicts)
    valid = sum(not verdict.outcome.startswith("invalid_proposal") for verdict in proposals)
    positive = sum(estimate.delta > 0 for estimate in estimates)
    unanswered = Counter(verdict.unanswered for verdict in verdicts if verdict.unanswered)
    told = [v for v in proposals if v.estimate is not None or v.outcome == "trusted"]
    segments = [(v.group, v.proposal.segment) for v in told if v.proposal is not None]
    positions = [s.start / of_index[group].trajectories[s.trajectory].n_turns for group, s in segments]
    credits = [verdict.credit.amount for verdict in verdicts if verdict.credit is not None]
    turns, tokens = (sum(getattr(run, name) for run in (*estimates, *probes)) for name in ("turns", "tokens"))
    return {
        "outcomes": dict(Counter(verdict.outcome for verdict in verdicts)),
        "eligible_rate": _share(eligible, len(verdicts)),
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
