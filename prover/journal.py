"""What a run writes down about an update: metrics, readable episodes, seconds by phase."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from prover.attribution import Verdict
from prover.estimates import jeffreys_difference
from prover.records import Group, Proposal


def rollout_metrics(groups: Sequence[Group]) -> dict[str, Any]:
    """Success, contrast, lengths and failures of an update's rollouts."""
    trajectories = [trajectory for group in groups for trajectory in group.trajectories]
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    ends: dict[str, int] = {}
    for trajectory in trajectories:
        ends[trajectory.end] = ends.get(trajectory.end, 0) + 1
    causes: dict[str, int] = {}
    for failure in (failure for group in groups for failure in group.failures):
        causes[failure.cause] = causes.get(failure.cause, 0) + 1
    return {
        "episodes": len(trajectories),
        "success": sum(t.success for t in trajectories) / len(trajectories),
        "contrast_groups": sum(0 < group.n_success < len(group.trajectories) for group in groups),
        "groups": len(groups),
        "turns": len(turns),
        "tokens": sum(trajectory.n_sampled for trajectory in trajectories),
        "invalid_turns": sum(turn.invalid is not None and not turn.truncated for turn in turns),
        "truncated_turns": sum(turn.truncated for turn in turns),
        "ends": ends,
        "failures": causes,
        "single_member_groups": sum(len(group.trajectories) == 1 for group in groups),
    }


def readable(number: int, groups: Sequence[Group], verdicts: Sequence[Verdict]) -> Iterator[dict[str, Any]]:
    """Records for ``trajectories.jsonl``: one per trajectory, per failed episode and per judgement that went wrong."""
    for group in groups:
        mine = [verdict for verdict in verdicts if verdict.group == group.index]
        for index, trajectory in enumerate(group.trajectories):
            yield {
                "update": number,
                "group": group.index,
                "member": trajectory.member,
                "task": trajectory.task.id,
                "success": trajectory.success,
                "reward": trajectory.reward,
                "end": trajectory.end,
                "opening": trajectory.opening,
                "turns": [
                    {"action": turn.action or turn.text, "result": turn.result}
                    | ({"invalid": turn.invalid} if turn.invalid else {})
                    for turn in trajectory.turns
                ],
                "judgements": [
                    _judgement(verdict, verdict.proposal)
                    for verdict in mine
                    if verdict.proposal is not None and verdict.proposal.segment.trajectory == index
                ],
                "verdict": _said(mine),
            }
        place = {"update": number, "group": group.index, "task": group.task.id}
        yield from (place | {"failure": asdict(failure)} for failure in group.failures)
        for verdict in mine:
            if verdict.detail or verdict.probe_error:
                yield place | {"verdict": verdict.outcome, "detail": verdict.detail, "probe_error": verdict.probe_error}


def _said(verdicts: Sequence[Verdict]) -> str | None:
    """What became of a group: ``credited`` if any segment of it was, else the first outcome."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return "credited" if "credited" in outcomes else next(iter(outcomes), None)


def _judgement(verdict: Verdict, proposal: Proposal) -> dict[str, Any]:
    segment, estimate = proposal.segment, verdict.estimate
    record: dict[str, Any] = {
        "judge": proposal.judge,
        "turns": [segment.start, segment.end],
        "reason": proposal.reason,
        "credit": verdict.credit.amount if verdict.credit else 0.0,
    }
    if estimate is not None:
        before, after = estimate.before, estimate.after
        for name, arm in (("before", before), ("after", after)):
            record[name] = {"successes": arm.successes, "n": arm.n, "failures": arm.failures, "rate": arm.rate}
        record["delta"] = estimate.delta
        record["se"] = jeffreys_difference(before.successes, before.n, after.successes, after.n).se
    return record


@dataclass(slots=True)
class Clock:
    """Processor and wall seconds by phase."""

    cpu: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the block as the phase ``name``."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.cpu[name] = time.process_time() - cpu
        self.wall[name] = time.perf_counter() - wall
