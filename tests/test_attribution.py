"""From groups to credit, and to plain GRPO wherever something goes wrong."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from prover.attribution import Attribution, Verdict, attribution_metrics
from prover.credit import CreditRule
from prover.errors import EnvError
from prover.records import (
    Arm,
    Credit,
    EndReason,
    Estimate,
    Group,
    NoProposal,
    Proposal,
    Segment,
    Task,
    Trajectory,
    Turn,
)
from prover.testing import ScriptedJudge
from prover.verification_budget import VerificationBudget

TASK = Task(id="start-3", split="train")


def trajectory(success: bool, turns: int = 6, invalid: Sequence[int] = ()) -> Trajectory:
    """An episode of which only the outcome and the validity of turns matter."""
    return Trajectory(
        task=TASK,
        member=0,
        seed=0,
        policy_version=0,
        opening="",
        turns=tuple(
            Turn(text="", action="", result="", reward=0.0, invalid="env" if turn in invalid else None)
            for turn in range(turns)
        ),
        rows=(),
        reward=float(success),
        success=success,
        end=EndReason.DONE,
    )


def group(*successes: bool, index: int = 0, invalid: Sequence[int] = ()) -> Group:
    """A group with these outcomes."""
    return Group(index=index, task=TASK, trajectories=tuple(trajectory(s, invalid=invalid) for s in successes))


def claim(start: Any = 1, end: Any = 2, of: Any = 0) -> Proposal:
    """A judge's claim."""
    return Proposal(segment=Segment(trajectory=of, start=start, end=end), reason="so", judge="scripted")


def estimate(before: int, after: int, n: int = 8, turns: int = 10, failures: int = 0) -> Estimate:
    """A measurement with so many successes of n in both arms."""
    return Estimate(
        before=Arm(successes=before, n=n, failures=failures),
        after=Arm(successes=after, n=n),
        turns=turns,
        tokens=2 * turns,
    )


class ScriptedVerifier:
    """Answers with the next item of a script, and keeps what it was asked."""

    def __init__(self, *replies: Estimate | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[Proposal, int]] = []
        self.done = 0

    async def verify(self, proposal: Proposal, group: Group, *, seed: int) -> Estimate:
        """The next item, after others had a chance to go first."""
        self.asked.append((proposal, seed))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        await asyncio.sleep(0)
        self.done += 1
        return reply

    async def verify_all(self, proposals: Sequence[Proposal], group: Group, *, seed: int) -> list[Estimate]:
        """One item each."""
        return [await self.verify(proposal, group, seed=seed) for proposal in proposals]


def judged(
    judge: Any, verifier: ScriptedVerifier | None, *groups: Group, seed: int = 0, **options: Any
) -> list[Verdict]:
    """The verdicts on groups."""
    attribution = Attribution(judge=judge, verifier=verifier, **({"rule": CreditRule()} | options))
    return asyncio.run(attribution.judge_groups(groups, seed=seed))


def test_a_measured_difference_becomes_credit() -> None:
    """The credit is lambda times delta, on the segment that was proposed."""
    verifier = ScriptedVerifier(estimate(2, 6))
    (verdict,) = judged(ScriptedJudge([claim()]), verifier, group(True, False), rule=CreditRule(weight=4.0))
    assert verdict.outcome == "credited"
    assert verdict.credit == Credit(segment=Segment(trajectory=0, start=1, end=2), amount=2.0)
    assert verdict.estimate == estimate(2, 6)
    assert [proposal for proposal, _ in verifier.asked] == [claim()]


@pytest.mark.parametrize("after", [2, 1])
def test_what_is_not_better_earns_nothing(after: int) -> None:
    """A difference of 0 or below is measured and gives no credit."""
    (verdict,) = judged(ScriptedJudge([claim()]), ScriptedVerifier(estimate(2, after)), group(True, False))
    assert (verdict.outcome, verdict.credit) == ("measured", None)
    assert verdict.estimate is not None


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([False] * 4, "all_failed"),
        ([True] * 4, "all_succeeded"),
        ([True] * 2, "all_succeeded"),
        ([True] * 4 + [False] * 4, "not_eligible"),
        ([], "all_failed"),
        ([True], "all_succeeded"),
    ],
)
def test_groups_without_use_cost_nothing(outcomes: list[bool], code: str) -> None:
    """A group without contrast, or with too many successes, reaches neither judge nor verifier."""
    judge, verifier = ScriptedJudge([]), ScriptedVerifier()
    (verdict,) = judged(judge, verifier, group(*outcomes), probe=judge, probe_share=1.0)
    assert (verdict.outcome, verdict.credit, judge.groups, verifier.asked) == (code, None, [], [])


def test_eligibility_has_two_bounds() -> None:
    """``eligible_min`` and ``eligible_max`` are inclusive."""
    judge = ScriptedJudge([NoProposal(reason="x")], repeat=True)
    groups = [group(*[True] * n, *[False] * (8 - n), index=n) for n in range(9)]
    found = judged(judge, ScriptedVerifier(), *groups, eligible_min=2, eligible_max=4)
    assert [verdict.outcome for verdict in found] == (
        ["all_failed", "not_eligible", *["no_proposal:x"] * 3, *["not_eligible"] * 3, "all_succeeded"]
    )
    assert len(judge.groups) == 3


@pytest.mark.parametrize(
    ("proposal", "code"),
    [
        (claim(of=4), "unknown_trajectory"),
        (claim(of=-1), "unknown_trajectory"),
        (claim(of=1), "not_a_success"),
        (claim(6, 6), "out_of_bounds"),
        (claim(7, 9), "out_of_bounds"),
        (claim(-1, 2), "out_of_bounds"),
        (claim(4, 2), "out_of_bounds"),
        (claim(5, 5), "terminal_endpoint"),
        (claim(0, 4), "too_long"),
        (claim(2, 3), "contains_invalid_action"),
        (claim(True, 2), "not_integer"),
        (claim(1.0, 2), "not_integer"),
    ],
)
def test_wrong_proposals_are_refused_and_never_repaired(proposal: Proposal, code: str) -> None:
    """The code is counted; nothing is measured and nothing credited."""
    verifier = ScriptedVerifier()
    members = group(True, False, True, False, invalid=[3])
    (verdict,) = judged(ScriptedJudge([proposal]), verifier, members)
    assert (verdict.outcome, verdict.credit, verifier.asked) == (f"invalid_proposal:{code}", None, [])
    assert verdict.proposal == proposal


@pytest.mark.parametrize("answer", [RuntimeError("the judge is down"), TimeoutError(), None, claim(of="s0")])
def test_a_judge_that_fails_is_counted(answer: Any) -> None:
    """An error, or an answer that is none, is an outcome with a traceback; the other groups go on."""
    judge = ScriptedJudge([lambda asked: answer, claim()])
    verifier = ScriptedVerifier(estimate(2, 6))
    found = judged(judge, verifier, group(True, False), group(True, False, index=1))
    assert [verdict.outcome for verdict in found] == ["judge_failed", "credited"]
    assert "Traceback" in found[0].detail
    assert (found[0].credit, found[0].estimate) == (None, None)


class SlowJudge:
    """Answers for the second group only."""

    name = "slow"

    async def propose(self, group: Group, *, seed: int) -> Proposal:
        """Wait for ever, or answer."""
        await asyncio.sleep(0 if group.index else 3600)
        return claim()


def test_no_group_waits_beyond_the_deadline() -> None:
    """A judge of any kind that does not answer in time is cut short; the other groups go on."""
    found = judged(
        SlowJudge(),
        ScriptedVerifier(estimate(2, 6)),
        group(True, False),
        group(True, False, index=1),
        judge_deadline_s=0.05,
    )
    assert [verdict.outcome for verdict in found] == ["no_proposal:judge_deadline", "credited"]
    assert found[0].detail == "no judgement within 0.05 s"
    assert [verdict.unanswered for verdict in found] == ["deadline", None]


def test_a_trusted_judge_is_not_measured() -> None:
    """Without a verifier every valid proposal earns the same, no rate is made up, and no probe is run."""
    judge = ScriptedJudge([claim(1, 2), claim(0, 5), NoProposal(reason="no_idea")])
    groups = [group(True, False, index=index) for index in range(3)]
    found = judged(
        judge, None, *groups, rule=CreditRule(weight=4.0), trusted_delta=0.25, probe=ScriptedJudge([]), probe_share=1.0
    )
    assert [verdict.outcome for verdict in found] == [
        "trusted",
        "invalid_proposal:terminal_endpoint",
        "no_proposal:no_idea",
    ]
    assert found[0].credit == Credit(segment=Segment(trajectory=0, start=1, end=2), amount=1.0)
    assert [verdict.estimate or verdict.probe for verdict in found] == [None] * 3
    metrics = attribution_metrics(found, groups)
    assert (metrics["measured"], metrics["positive"], metrics["mean_delta"]) == (0, 0, None)
    assert (metrics["mean_credit"], metrics["mean_segment_length"], metrics["extra_turns"]) == (1.0, 2.0, 0.0)


def test_no_proposal_is_an_answer() -> None:
    """Its reason is counted."""
    judge = ScriptedJudge([NoProposal(reason="nothing_distinctive", detail="all alike")])
    (verdict,) = judged(judge, ScriptedVerifier(), group(True, False))
    assert (verdict.outcome, verdict.detail) == ("no_proposal:nothing_distinctive", "all alike")


@pytest.mark.parametrize(
    "answer",
    [
        EnvError("every continuation failed"),
        ZeroDivisionError(),
        Estimate(before=Arm(successes=0, n=0), after=Arm(successes=1, n=1), turns=0, tokens=0),
    ],
)
def test_a_verifier_that_fails_gives_no_credit(answer: Any) -> None:
    """An error, or a measurement of nothing, is an outcome with a traceback; the other groups go on."""
    judge = ScriptedJudge([claim()], repeat=True)
    verifier = ScriptedVerifier(answer, estimate(2, 6))
    found = judged(judge, verifier, group(True, False), group(True, False, index=1))
    assert [verdict.outcome for verdict in found] == ["verifier_failed", "credited"]
    assert (found[0].credit, found[0].estimate, found[0].proposal) == (None, None, claim())
    assert "Traceback" in found[0].detail


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through(stop: type[BaseException]) -> None:
    """Ctrl-C is no failed judge."""
    with pytest.raises(stop):
        judged(ScriptedJudge([stop()]), ScriptedVerifier(), group(True, False))


def test_verdicts_come_in_the_order_of_the_groups() -> None:
    """Each carries its group's index, whatever the groups are numbered."""
    groups = [group(True, True, index=5), group(True, False, index=2), group(False, index=9)]
    found = judged(ScriptedJudge([NoProposal(reason="x")]), ScriptedVerifier(), *groups)
    assert [verdict.group for verdict in found] == [5, 2, 9]


# The null probe


@pytest.mark.parametrize(
    "probe_answers",
    [
        [claim(0, 0)],
        [NoProposal(reason="no_valid_segment")],
        [RuntimeError("no probe")],
    ],
)
def test_probes_never_touch_credit(probe_answers: list[Any]) -> None:
    """With or without a probe, and if it fails, the judge's claim is measured with the same seed and credited alike."""
    plain, probed = ScriptedVerifier(estimate(2, 6)), ScriptedVerifier(estimate(2, 6), estimate(0, 8))
    (without,) = judged(ScriptedJudge([claim()]), plain, group(True, False))
    (with_probe,) = judged(
        ScriptedJudge([claim()]), probed, group(True, False), probe=ScriptedJudge(probe_answers), probe_share=1.0
    )
    assert (with_probe.outcome, with_probe.credit, with_probe.estimate) == (
        without.outcome,
        without.credit,
        without.estimate,
    )
    assert probed.asked[0] == plain.asked[0]
    assert len({seed for _, seed in probed.asked}) == len(probed.asked)


def test_a_probe_is_measured_and_kept_apart() -> None:
    """Its estimate stands in the verdict, beside the judge's."""
    verifier = ScriptedVerifier(estimate(2, 6), estimate(3, 4))
    (verdict,) = judged(
        ScriptedJudge([claim()]), verifier, group(True, False), probe=ScriptedJudge([claim(0, 0)]), probe_share=1.0
    )
    assert (verdict.estimate, verdict.probe) == (estimate(2, 6), estimate(3, 4))
    assert [proposal for proposal, _ in verifier.asked] == [claim(), claim(0, 0)]


def test_a_probe_that_fails_is_told() -> None:
    """Its traceback is kept, and the credit too."""
    verifier = ScriptedVerifier(estimate(2, 6), EnvError("no state"))
    (verdict,) = judged(
        ScriptedJudge([claim()]), verifier, group(True, False), probe=ScriptedJudge([claim(0, 0)]), probe_share=1.0
    )
    assert (verdict.outcome, verdict.probe) == ("credited", None)
    assert "EnvError: no state" in verdict.probe_error


def test_a_probe_is_finished_when_the_verifier_fails() -> None:
    """Nothing goes on in the background once the verdict is there."""
    verifier = ScriptedVerifier(EnvError("no state"), estimate(3, 4))
    (verdict,) = judged(
        ScriptedJudge([claim()]), verifier, group(True, False), probe=ScriptedJudge([claim(0, 0)]), probe_share=1.0
    )
    assert (verdict.outcome, verdict.probe, verifier.done) == ("verifier_failed", estimate(3, 4), 1)


def test_the_share_of_probes_is_drawn_from_the_seed() -> None:
    """About a quarter of 200 groups is probed, none at a share of 0, the same ones every time."""

    def probed(share: float, seed: int) -> list[int]:
        groups = [group(True, False, index=index) for index in range(200)]
        verifier = ScriptedVerifier(*[estimate(2, 6)] * 400)
        judge = ScriptedJudge([claim()], repeat=True)
        found = judged(judge, verifier, *groups, probe=judge, probe_share=share, seed=seed)
        return [verdict.group for verdict in found if verdict.probe is not None]

    first = probed(0.25, 0)
    assert 30 < len(first) < 70
    assert probed(0.25, 0) == first != probed(0.25, 1)
    assert probed(0.0, 0) == []
    assert len(probed(1.0, 0)) == 200


# Metrics


def test_metrics_count_everything() -> None:
    """Counts, means and costs of an update, worked out by hand."""
    credit = Credit(segment=Segment(trajectory=0, start=1, end=2), amount=0.5)
    verdicts = [
        Verdict(group=0, outcome="all_failed"),
        Verdict(group=1, outcome="all_failed"),
        Verdict(group=2, outcome="credited", proposal=claim(1, 2), estimate=estimate(2, 6), credit=credit),
        Verdict(
            group=3,
            outcome="measured",
            proposal=claim(0, 3),
            estimate=estimate(4, 2, turns=30, failures=2),
            probe=estimate(3, 4, turns=7),
        ),
        Verdict(group=4, outcome="verifier_failed", proposal=claim(0, 0), detail="...", probe_error="..."),
        Verdict(group=5, outcome="invalid_proposal:too_long", proposal=claim(0, 4)),
    ]
    # Groups of two members with six turns each, and no tokens: 5 * 2 * 6 = 60 turns beside 47 of continuations.
    groups = [group(True, False, index=index) for index in range(6)]
    assert attribution_metrics(verdicts, groups[1:]) == {
        "outcomes": {
            "all_failed": 2,
            "credited": 1,
            "measured": 1,
            "verifier_failed": 1,
            "invalid_proposal:too_long": 1,
        },
        "eligible_rate": 4 / 6,
        "judge_asked": 4,
        "judge_answered": 4,
        "judge_failures": {},
        "proposals": 4,
        "proposal_valid_rate": 0.75,
        "measured": 2,
        "positive": 1,
        "positive_rate": 0.5,
        "negative": 1,
        "mean_delta": 0.125,
        "mean_credit": 0.5,
        "mean_segment_length": 3.0,
        "mean_segment_position": 1 / 12,
        "verifier_turns": 40,
        "verifier_tokens": 80,
        "verifier_failures": 2,
        "probes": 1,
        "probe_failures": 1,
        "probe_positive": 1,
        "probe_mean_delta": 0.125,
        "probe_turns": 7,
        "probe_tokens": 14,
        "extra_turns": 47 / 107,
        "extra_tokens": 1.0,
    }


def outcomes(*names: str) -> list[Verdict]:
    """Verdicts with these outcomes."""
    return [Verdict(group=index, outcome=name, detail="...") for index, name in enumerate(names)]


DOWN, FINE = "no_proposal:judge_timeout", "no_proposal:nothing_distinctive"


def test_unanswered_groups_are_counted_by_cause() -> None:
    """An outage is no verdict: it is counted apart from answers, and from groups that were not asked about."""
    found = outcomes(
        "all_failed", DOWN, DOWN, "no_proposal:judge_payment", "judge_failed", FINE, "credited", "measured"
    )
    metrics = attribution_metrics(found, [group(True, False, index=index) for index in range(8)])
    assert (metrics["judge_asked"], metrics["judge_answered"]) == (7, 3)
    assert metrics["judge_failures"] == {"timeout": 2, "payment": 1, "error": 1}


def test_means_of_nothing_are_not_numbers() -> None:
    """Where nothing was measured there is no mean, not a mean of 0."""
    metrics = attribution_metrics([Verdict(group=0, outcome="all_failed")], [group(False, False)])
    names = ("mean_delta", "mean_credit", "mean_segment_length", "mean_segment_position", "positive_rate")
    assert [metrics[name] for name in (*names, "proposal_valid_rate", "probe_mean_delta")] == [None] * 7
    assert (metrics["eligible_rate"], metrics["extra_turns"]) == (0.0, 0.0)
    assert attribution_metrics([], [])["eligible_rate"] is None


@pytest.mark.parametrize(
    "reply",
    [
        Proposal(segment=Segment(trajectory=0, start=1, end=2), reason={"turn": 1}, judge="scripted"),  # type: ignore[arg-type]  # the fault
        NoProposal(reason="none", detail=RuntimeError("down")),  # type: ignore[arg-type]  # the fault
        NoProposal(reason=None),  # type: ignore[arg-type]  # the fault
    ],
    ids=["reason", "detail", "no reason"],
)
def test_an_answer_of_other_types_is_a_failure_of_the_judge(reply: Proposal | NoProposal) -> None:
    """It is counted, with what was wrong, and never reaches the run's files."""
    verifier = ScriptedVerifier()
    (verdict,) = judged(ScriptedJudge([reply]), verifier, group(True, False, False, False))
    assert (verdict.outcome, verifier.asked) == ("judge_failed", [])
    assert "expected a judge's answer to hold str values" in verdict.detail


class Several:
    """A judge that names these segments at once."""

    name = "several"

    def __init__(self, *proposals: Proposal | NoProposal, every_run: bool = False) -> None:
        self.proposals = proposals
        self.every_run = every_run

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        raise AssertionError("a judge that can name several is not asked for one")

    async def propose_all(self, group: Group, *, seed: int) -> Sequence[Proposal | NoProposal]:
        return self.proposals


def test_every_segment_gets_a_verdict() -> None:
    """Two are measured together and one is refused; the group counts once in the metrics."""
    judge = Several(claim(1, 1), claim(5, 5), claim(2, 3))
    of = group(True, False)
    found = judged(judge, ScriptedVerifier(estimate(2, 6), estimate(6, 2)), of)
    refused = "invalid_proposal:terminal_endpoint"
    assert [verdict.outcome for verdict in found] == [refused, "credited", "measured"]
    assert [verdict.proposal for verdict in found] == [claim(5, 5), claim(1, 1), claim(2, 3)]
    metrics = attribution_metrics(found, [of])
    assert (metrics["eligible_rate"], metrics["proposals"], metrics["measured"]) == (1.0, 3, 2)
    assert metrics["proposal_valid_rate"] == 1.0


def test_methods_that_measure_everything_may_name_anything() -> None:
    """Turns of failures, last turns and idle turns, in groups without contrast as well."""
    judge = Several(claim(5, 5), claim(0, 0, of=1), every_run=True)
    settings = {"mixed_only": False, "eligible_min": 0, "eligible_max": 9}
    found = judged(judge, ScriptedVerifier(*[estimate(2, 6)] * 2), group(False, False, invalid=[0]), **settings)
    assert [verdict.outcome for verdict in found] == ["credited", "credited"]


def test_naming_nothing_is_no_proposal() -> None:
    """An empty list is counted as such."""
    (verdict,) = judged(Several(), ScriptedVerifier(), group(True, False))
    assert verdict.outcome == "no_proposal:nothing_named"


def test_what_does_not_fit_the_budget_is_not_measured() -> None:
    """Of 3 x 12 turns each group may cost 4 x (6 - 1) + 4 x (6 - 3) = 32: twice as many admit two of three."""
    groups = [group(True, False, index=index) for index in range(3)]
    budget = VerificationBudget(continuations=4, max_share=2.0)
    found = judged(Several(claim(1, 2)), ScriptedVerifier(*[estimate(2, 6)] * 2), *groups, budget=budget)
    assert [verdict.outcome for verdict in found] == ["credited", "credited", "over_budget"]
    assert found[2].proposal == claim(1, 2)
