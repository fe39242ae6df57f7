"""Groups and their credit as rows to train on."""

from collections.abc import Sequence

from prover.advantages import group_advantages, token_advantages
from prover.attribution import Verdict
from prover.config import AdvantageConfig
from prover.objective import TrainRow
from prover.records import Credit, Group


def training_rows(groups: Sequence[Group], verdicts: Sequence[Verdict], settings: AdvantageConfig) -> list[TrainRow]:
    """Every row of every trajectory with its per-token advantages: the group advantage, and credit inside segments."""
    credits: dict[tuple[int, int], list[Credit]] = {}
    for verdict in verdicts:
        if verdict.credit is not None:
            credits.setdefault((verdict.group, verdict.credit.segment.trajectory), []).append(verdict.credit)
    rows: list[TrainRow] = []
    number = 0
    for group in groups:
        bases = group_advantages(group.rewards_G, std=settings.std, baseline=settings.baseline, eps=settings.eps)
        for index, (trajectory, base) in enumerate(zip(group.trajectories, bases, strict=True)):
            earned = credits.get((group.index, index), [])
            for row in trajectory.rows:
                advantages = token_advantages(float(base), row.turn_of_token, row.loss_mask, earned)
                rows.append(TrainRow(row=row, advantages_T=advantages, trajectory=number))
            number += 1
    return rows
