"""What is written down about an update."""

import json
import math

import pytest

from prover.attribution import Verdict
from prover.journal import Clock, readable, rollout_metrics
from prover.records import (
    Arm,
    Credit,
    EndReason,
    Estimate,
    Failure,
    FailureCause,
    Group,
    Proposal,
    Segment,
    Task,
    Trajectory,
    Turn,
)

TASK = Task(id="start-3", split="train")


def turn(action: str = "look", invalid: str | None = None, truncated: bool = False) -> Turn:
    """A turn that was answered with ``c``."""
    return Turn(text=f"<{action}>", action=action, result="c", reward=0.0, invalid=invalid, truncated=truncated)


def trajectory(member: int, success: bool, end: EndReason, *turns: Turn) -> Trajectory:
    """An episode without tokens."""
    return Trajectory(
        task=TASK,
        member=member,
        seed=0,
        policy_version=0,
        opening="o",
        turns=turns,
        rows=(),
        reward=float(success),
        success=success,
        end=end,
    )


FAILURE = Failure(
    cause=FailureCause.TIMEOUT, where="env.step", task="start-3", member=2, seed=7, turn=3, detail="Traceback ..."
)
GROUPS = [
    Group(
        index=0,
        task=TASK,
        trajectories=(
            trajectory(0, True, EndReason.DONE, turn(), turn("right")),
            trajectory(1, False, EndReason.TURN_CAP, turn("jump", "env"), turn("", "truncated", True), turn()),
        ),
        failures=(FAILURE,),
    ),
    Group(index=1, task=TASK, trajectories=(trajectory(0, True, EndReason.DONE, turn()),), failures=(FAILURE, FAILURE)),
]
PROPOSAL = Proposal(segment=Segment(trajectory=0, start=0, end=0), reason="so", judge="scripted")
ESTIMATE = Estimate(before=Arm(successes=2, n=8), after=Arm(successes=6, n=7, failures=1), turns=9, tokens=18)


def test_metrics_of_rollouts() -> None:
    """Counts of an update, worked out by hand; cut turns have a counter of their own."""
    assert rollout_metrics(GROUPS) == {
        "episodes": 3,
        "success": pytest.approx(2 / 3),
        "contrast_groups": 1,
        "groups": 2,
        "turns": 6,
        "tokens": 0,
        "invalid_turns": 1,
        "truncated_turns": 1,
        "ends": {"done": 2, "turn_cap": 1},
        "failures": {"timeout": 3},
        "single_member_groups": 1,
    }


def test_episodes_can_be_read() -> None:
    """Each member says what it did; the judgement stands with the member that it is about."""
    credit = Credit(segment=PROPOSAL.segment, amount=1.5)
    verdict = Verdict(group=0, outcome="credited", proposal=PROPOSAL, estimate=ESTIMATE, credit=credit)
    first, second, failure, *_ = readable(4, GROUPS, [verdict])
    assert first == {
        "update": 4,
        "group": 0,
        "member": 0,
        "task": "start-3",
        "success": True,
        "reward": 1.0,
        "end": "done",
        "opening": "o",
        "turns": [{"action": "look", "result": "c"}, {"action": "right", "result": "c"}],
        "judgements": [
            {
                "judge": "scripted",
                "turns": [0, 0],
                "reason": "so",
                "credit": 1.5,
                "before": {"successes": 2, "n": 8, "failures": 0, "rate": 0.25},
                "after": {"successes": 6, "n": 7, "failures": 1, "rate": 6 / 7},
                "delta": 6 / 7 - 0.25,
                # Jeffreys: 2.5 of 9 and 6.5 of 8.
                "se": pytest.approx(math.sqrt(2.5 / 9 * 6.5 / 9 / 9 + 6.5 / 8 * 1.5 / 8 / 8)),
            }
        ],
        "verdict": "credited",
    }
    assert (second["judgements"], second["verdict"]) == ([], "credited")
    # Where no action could be read, the text is shown, and why.
    assert second["turns"][:2] == [
        {"action": "jump", "result": "c", "invalid": "env"},
        {"action": "<>", "result": "c", "invalid": "truncated"},
    ]
    assert failure["failure"]["detail"] == "Traceback ..."


def test_failed_episodes_are_told_with_their_story() -> None:
    """Cause, place, task, seed, turn and traceback of each are on disk."""
    records = [record for record in readable(4, GROUPS, []) if "failure" in record]
    assert [record["group"] for record in records] == [0, 1, 1]
    assert json.loads(json.dumps(records[0])) == {
        "update": 4,
        "group": 0,
        "task": "start-3",
        "failure": {
            "cause": "timeout",
            "where": "env.step",
            "task": "start-3",
            "member": 2,
            "seed": 7,
            "turn": 3,
            "detail": "Traceback ...",
        },
    }


def test_judgements_that_went_wrong_are_told_with_their_story() -> None:
    """The traceback of a judge, a verifier or a probe is on disk, once per group."""
    verdicts = [
        Verdict(group=0, outcome="judge_failed", detail="no engine"),
        Verdict(group=1, outcome="measured", proposal=PROPOSAL, estimate=ESTIMATE, probe_error="no state"),
    ]
    records = [record for record in readable(4, GROUPS, verdicts) if "detail" in record]
    assert records == [
        {
            "update": 4,
            "group": 0,
            "task": "start-3",
            "verdict": "judge_failed",
            "detail": "no engine",
            "probe_error": "",
        },
        {"update": 4, "group": 1, "task": "start-3", "verdict": "measured", "detail": "", "probe_error": "no state"},
    ]


def test_a_claim_that_was_not_measured_has_no_rates() -> None:
    """A refused proposal is shown with its reason and without numbers."""
    verdict = Verdict(group=0, outcome="invalid_proposal:too_long", proposal=PROPOSAL)
    first = next(iter(readable(4, GROUPS, [verdict])))
    assert first["judgements"] == [{"judge": "scripted", "turns": [0, 0], "reason": "so", "credit": 0.0}]


def test_without_verdicts_there_are_no_judgements() -> None:
    """Plain GRPO leaves both fields empty."""
    assert all((r["judgements"], r["verdict"]) == ([], None) for r in readable(0, GROUPS, []) if "member" in r)


def test_a_clock_keeps_the_phases_apart() -> None:
    """Each phase has its seconds of processor and wall, none below 0."""
    clock = Clock()
    for name in ("rollout", "update"):
        with clock.phase(name):
            pass
    assert list(clock.cpu) == list(clock.wall) == ["rollout", "update"]
    assert min(*clock.cpu.values(), *clock.wall.values()) >= 0
