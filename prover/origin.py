"""The policy that sampled stored groups: found by its number of updates, checked by the log-probabilities it gives."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from prover import build, checkpoint
from prover.config import RunConfig
from prover.errors import ConfigError
from prover.folder import RunFolder
from prover.objective import token_logprobs
from prover.protocols import TrainablePolicy
from prover.records import Group

_SAME_WEIGHTS = 0.02
"""Largest mean difference of log-probabilities that rounding can explain."""
_ROWS = 4
"""Rows that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who plays the continuations of stored groups."""

    name: str
    """``start``, or the name of a checkpoint."""
    policy: TrainablePolicy
    exact: bool
    """Whether these weights sampled the groups."""


def origin(config: RunConfig, run: Path, update: int, group: Group, *, any_policy: bool = False) -> Origin:
    """The policy that sampled the groups of an update.

    Args:
        config: Config of the run.
        run: Folder of the run.
        update: 0-based number of the update: its groups were sampled after so many updates.
        group: One of these groups.
        any_policy: Take the nearest checkpoint where that policy is gone.

    Raises:
        ConfigError: That policy is gone, or other weights have taken its place.
    """
    folder = RunFolder(run).checkpoints
    saved = {found.update: found.path for found in checkpoint.complete(folder)}
    nearest = min((0, *saved), key=lambda number: abs(number - update))
    if nearest != update and not any_policy:
        raise ConfigError(
            f"expected in {folder} the checkpoint after {update} updates, which sampled the groups of update {update}, "
            f"got those after {sorted(saved)}; let the nearest one play with --any-policy, or remove the groups of "
            "this update"
        )
    name = saved[nearest].name if nearest else "start"
    policy = build.policy(config.policy, saved.get(nearest))
    differs = difference(policy, group)
    if nearest == update and differs > _SAME_WEIGHTS and not any_policy:
        raise ConfigError(
            f"expected {name!r} to be the policy that sampled the groups of update {update}, got one whose "
            f"log-probabilities differ by {differs:.3f} on average; put back what the run began with, or let this one "
            "play with --any-policy"
        )
    return Origin(name=name, policy=policy, exact=nearest == update and differs <= _SAME_WEIGHTS)


def difference(policy: TrainablePolicy, group: Group) -> float:
    """Mean difference between the log-probabilities that a group was sampled with and those of the policy now."""
    rows = [row for trajectory in group.trajectories for row in trajectory.rows][:_ROWS]
    with torch.no_grad():
        scored = token_logprobs(policy.model, rows, which="sampled")
    sampled = np.array([rows[row].logprobs[place] for row, place in zip(scored.row, scored.place, strict=True)])
    return float(np.abs(scored.logprobs.double().cpu().numpy() - sampled).mean()) if len(sampled) else 0.0
