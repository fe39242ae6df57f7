"""Groups and their credit as rows to train on."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prover.advantages import gigpo_step_advantages, group_advantages, has_contrast, token_advantages
from prover.attribution import Verdict
from prover.config import AdvantageConfig
from prover.objective import TrainRow
from prover.records import Credit, Group, Segment, Trajectory


def training_rows(
    groups: Sequence[Group],
    verdicts: Sequence[Verdict],
    settings: AdvantageConfig,
    *,
    centred: bool = False,
    shared: bool = False,
    steps: Sequence[NDArray[np.float64]] = (),
) -> list[TrainRow]:
    """Every row of every trajectory with its per-token advantages: the group's, per turn, and credit inside segments.

    Continuations that the verifier kept follow as trajectories of their own, so that each of their trained tokens
    counts in the loss as one of the rollouts does, under every aggregation.

    Args:
        groups: What was sampled.
        verdicts: What became of the groups.
        settings: How the group's advantages are made.
        centred: Take the mean credit of a trajectory's trained tokens off each of them, so that credit moves advantage
            within the trajectory and adds none.
        shared: Give the credit to every success that did the same in the same states.
        steps: What each turn of each trajectory gets besides, in order, shape (S,) each; empty for nothing.
    """
    credits: dict[tuple[int, int], list[Credit]] = {}
    of_index = {group.index: group for group in groups}
    for verdict in verdicts:
        if verdict.credit is not None:
            earned = _shared(verdict.credit, of_index[verdict.group]) if shared else [verdict.credit]
            for credit in earned:
                credits.setdefault((verdict.group, credit.segment.trajectory), []).append(credit)
    rows: list[TrainRow] = []
    number = 0
    for group in groups:
        for index, (trajectory, base) in enumerate(zip(group.trajectories, _bases(group, settings), strict=True)):
            earned = credits.get((group.index, index), [])
            if steps:
                base = base + steps[number]
            excess = _mean_credit(trajectory, earned) if centred else 0.0
            for row in trajectory.rows:
                advantages = token_advantages(base - excess, row.turn_of_token, row.loss_mask, earned)
                rows.append(TrainRow(row=row, advantages_T=advantages, trajectory=number))
            number += 1
    return rows + list(_continuations(verdicts, settings, number))


def continuation_metrics(rows: Sequence[TrainRow]) -> dict[str, Any]:
    """How many rows of an update are continuations, and how many tokens of theirs are trained on."""
    masks = [row.row.loss_mask for row in rows if row.continued]
    return {"continuation_rows": len(masks), "continuation_tokens": sum(int(mask.sum()) for mask in masks)}


def _continuations(verdicts: Sequence[Verdict], settings: AdvantageConfig, number: int) -> Iterator[TrainRow]:
    """What was played from one state is a group: each outcome against their mean, whatever the rollouts' baseline.

    A state from which all ended alike teaches nothing and is left out, from the denominators of the loss as well. The
    null probe's continuations are left out too: it measures a run and does not change it.
    """
    for verdict in verdicts:
        for played in verdict.estimate.played if verdict.estimate is not None else ():
            outcomes = [float(run.success) for run in played]
            if not has_contrast(outcomes):
                continue
            advantages = group_advantages(outcomes, std=settings.std, eps=settings.eps)
            for run, advantage in zip(played, advantages.tolist(), strict=True):
                for row in run.rows:
                    values = token_advantages(advantage, row.turn_of_token, row.loss_mask)
                    yield TrainRow(row=row, advantages_T=values, trajectory=number, continued=True)
                number += 1


def _bases(group: Group, settings: AdvantageConfig) -> list[NDArray[np.float64] | float]:
    """One advantage per trajectory, or one per turn where states count as well (GiGPO)."""
    if settings.baseline == "none":
        return [0.0] * len(group.trajectories)
    bases = group_advantages(group.rewards_G, std=settings.std, baseline=settings.baseline, eps=settings.eps)
    if settings.omega == 0:
        return [float(base) for base in bases]
    steps = gigpo_step_advantages(
        [[turn.state_key for turn in trajectory.turns] for trajectory in group.trajectories],
        [_outcome_at_the_end(trajectory) for trajectory in group.trajectories],
        gamma=settings.gamma,
        std=settings.std,
        eps=settings.eps,
    )
    return [base + settings.omega * step for base, step in zip(bases, steps, strict=True)]


def _outcome_at_the_end(trajectory: Trajectory) -> NDArray[np.float64]:
    """Rewards per turn of the same return as the group's advantages: the outcome, with the last turn."""
    rewards = np.zeros(trajectory.n_turns)
    rewards[-1:] = float(trajectory.success)
    return rewards


def _mean_credit(trajectory: Trajectory, credits: Sequence[Credit]) -> float:
    """Mean credit over the trained tokens of a trajectory."""
    if not credits:
        return 0.0
    values = [
        token_advantages(0.0, row.turn_of_token, row.loss_mask, credits)[row.loss_mask] for row in trajectory.rows
    ]
    together = np.concatenate(values) if values else np.zeros(0)
    return float(together.mean()) if together.size else 0.0


def _shared(credit: Credit, group: Group) -> list[Credit]:
    """The credit, and the same for the first stretch of every other success with the same states and actions."""
    segment = credit.segment
    mine = _steps(group.trajectories[segment.trajectory])[segment.start : segment.end + 1]
    found = [credit]
    for index, trajectory in enumerate(group.trajectories):
        if index == segment.trajectory or not trajectory.success or any(not state for state, _ in mine):
            continue
        steps = _steps(trajectory)
        starts = (start for start in range(len(steps) - len(mine) + 1) if steps[start : start + len(mine)] == mine)
        if (start := next(starts, None)) is not None:
            twin = Segment(trajectory=index, start=start, end=start + len(mine) - 1)
            found.append(Credit(segment=twin, amount=credit.amount))
    return found


def _steps(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [(turn.state_key, turn.action) for turn in trajectory.turns]
