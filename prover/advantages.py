"""Advantages and segment credit: pure functions of arrays, in float64.

A group's rollouts are centred on their mean (GRPO, Dr. GRPO), a measured segment adds ``weight * delta`` to the trained
tokens of its turns (ProVer), and nothing else changes: without credits the token advantages are GRPO's bit for bit.
Statistics are taken over trajectories, never over rows or turns, so that long episodes do not weigh more.
"""

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prover.errors import ConfigError, NumericsError, TokenError
from prover.records import Credit

Std = Literal["none", "ddof0", "ddof1"]
Baseline = Literal["mean", "rloo"]
Sign = Literal["positive", "signed"]

NO_CONTRAST = 1e-6
"""A group whose rewards spread (max - min) less than this teaches nothing: its advantages are exactly 0."""


def has_contrast(rewards_G: ArrayLike) -> bool:  # noqa: N803 - shape suffix
    """Whether a group has two members or more and their rewards differ by at least ``NO_CONTRAST``."""
    rewards = _vector(rewards_G, "rewards_G")
    return rewards.size > 1 and float(np.ptp(rewards)) >= NO_CONTRAST


def group_scale(rewards_G: ArrayLike, *, std: Std = "none", eps: float = 1e-6) -> float:  # noqa: N803 - shape suffix
    """What ``group_advantages`` divides by: 1 for ``none``, else ``std + eps`` (eps outside the root)."""
    rewards = _vector(rewards_G, "rewards_G")
    if std not in ("none", "ddof0", "ddof1"):
        raise ConfigError(f"expected std 'none', 'ddof0' or 'ddof1', got {std!r}")
    if std == "none" or not has_contrast(rewards):
        return 1.0
    return float(rewards.std(ddof=0 if std == "ddof0" else 1)) + eps


def group_advantages(
    rewards_G: ArrayLike,  # noqa: N803 - shape suffix
    *,
    std: Std = "none",
    eps: float = 1e-6,
    baseline: Baseline = "mean",
) -> NDArray[np.float64]:
    """Advantage of each rollout within its group, shape (G,).

    ``mean``: R - mean(R), as in Dr. GRPO (arXiv 2503.20783); with ``std`` "ddof1" GRPO's (arXiv 2402.03300).
    ``rloo``: R minus the mean of the others, G/(G-1) times the former (arXiv 2402.14740). ``std`` divides either.

    A group of one, or one without contrast, gives exact zeros, whatever rounding left in its standard deviation.

    Raises:
        ConfigError: the rewards are no vector, or an option is unknown.
        NumericsError: a reward is not finite.

    >>> group_advantages([1, 0, 0, 0]).tolist()
    [0.75, -0.25, -0.25, -0.25]
    """
    rewards = _vector(rewards_G, "rewards_G")
    if baseline not in ("mean", "rloo"):
        raise ConfigError(f"expected baseline 'mean' or 'rloo', got {baseline!r}")
    scale = group_scale(rewards, std=std, eps=eps)
    if not has_contrast(rewards):
        return np.zeros_like(rewards)
    centred: NDArray[np.float64] = rewards - rewards.mean()
    if baseline == "rloo":
        centred *= rewards.size / (rewards.size - 1)
    centred /= scale
    return centred


def batch_advantages(
    groups: Sequence[ArrayLike], *, baseline: Literal["group", "batch"] = "group", eps: float = 1e-6
) -> list[NDArray[np.float64]]:
    """REINFORCE++ (arXiv 2501.03262): rewards centred on the group's or batch's mean, over the batch's std (ddof 0).

    Returns:
        One array of shape (G,) for each group; all zeros when nothing in the batch differs.

    >>> [a.tolist() for a in batch_advantages([[1, 0], [1, 1]], baseline="batch", eps=0)][1][0] > 0
    True
    """
    if baseline not in ("group", "batch"):
        raise ConfigError(f"expected baseline 'group' or 'batch', got {baseline!r}")
    rewards = [_vector(group, "groups") for group in groups]
    if not rewards:
        return []
    if baseline == "group":
        centred = [group_advantages(group) for group in rewards]
    else:
        mean = np.concatenate(rewards).mean()
        centred = [group - mean for group in rewards]
    together = np.concatenate(centred)
    if together.size == 0 or float(np.ptp(together)) < NO_CONTRAST:
        return [np.zeros_like(group) for group in centred]
    scale = together.std() + eps
    return [group / scale for group in centred]


def segment_credit(
    delta: float,
    *,
    weight: float = 1.0,
    sign: Sign = "positive",
    se: float = 0.0,
    min_delta: float = 0.0,
    min_z: float = 0.0,
    lcb: float = 0.0,
    probability: float = 1.0,
    tau: float = 0.0,
    scale: float = 1.0,
) -> float:
    """The amount that a measured segment adds to the advantage of its trained tokens: ``weight * delta``.

    The defaults are ProVer's: the raw difference where it is positive, else 0. ``delta`` stays raw even where the
    base advantage is divided by the group's std; pass that divisor (``group_scale``) as ``scale`` to divide both alike.

    Args:
        delta: success rate after the segment minus before; NaN (nothing was measured) earns 0.
        weight: lambda.
        sign: ``positive`` drops negative differences, ``signed`` keeps them.
        se: standard error of ``delta``, used by ``min_z`` and ``lcb`` (Jeffreys' is never 0, see ``estimates``).
        min_delta: smallest absolute difference that earns anything.
        min_z: the difference must exceed this many standard errors.
        lcb: standard errors taken off the size of the difference (lower confidence bound).
        probability: posterior P(after > before), used by ``tau``.
        tau: smallest ``probability`` of the difference's own sign.
        scale: divisor of the result.

    >>> segment_credit(0.5, weight=4.0), segment_credit(-0.5), segment_credit(-0.5, sign="signed")
    (2.0, 0.0, -0.5)
    """
    if sign not in ("positive", "signed"):
        raise ConfigError(f"expected sign 'positive' or 'signed', got {sign!r}")
    if not scale > 0:
        raise ConfigError(f"expected a scale above 0, got {scale}")
    if np.isnan(delta) or delta == 0 or (delta < 0 and sign == "positive"):
        return 0.0
    size = abs(delta)
    if size < min_delta or (min_z > 0 and size <= min_z * se):
        return 0.0
    if (probability if delta > 0 else 1 - probability) < tau:
        return 0.0
    return float(np.copysign(weight * max(size - lcb * se, 0.0) / scale, delta))


def token_advantages(
    base: float | NDArray[np.float64],
    turn_of_token_T: NDArray[np.int64],  # noqa: N803 - shape suffix
    loss_mask_T: NDArray[np.bool_],  # noqa: N803 - shape suffix
    credits: Sequence[Credit] = (),
) -> NDArray[np.float64]:
    """Advantage of every token of one row, shape (T,): the base on trained tokens, plus credits in their segments.

    Tokens that are not trained on (prompts, observations, masked replies) get 0, inside a segment as well.

    Args:
        base: one advantage for the trajectory, or one per turn, shape (S,).
        turn_of_token_T: 0-based turn that sampled the token, -1 for others.
        loss_mask_T: where the token is trained on.
        credits: of THIS row's trajectory; overlapping ones add up.

    Raises:
        TokenError: shapes differ, or a trained token belongs to no turn.
    """
    turns, mask = np.asarray(turn_of_token_T), np.asarray(loss_mask_T, dtype=np.bool_)
    if turns.ndim != 1 or turns.shape != mask.shape:
        raise TokenError(f"expected turn_of_token and loss_mask of one shape (T,), got {turns.shape} and {mask.shape}")
    per_turn = np.asarray(base, dtype=np.float64)
    trained = turns[mask]
    most = per_turn.size if per_turn.ndim == 1 else np.inf
    if per_turn.ndim > 1 or (trained.size and not (trained.min() >= 0 and trained.max() < most)):
        raise TokenError(
            f"expected trained tokens of turns that the base advantage covers (shape {per_turn.shape}), got turns "
            f"{sorted(set(trained.tolist()))}; give one number, or one per turn"
        )
    values = np.zeros(turns.shape)
    values[mask] = per_turn[trained] if per_turn.ndim == 1 else per_turn
    for credit in credits:
        values[mask & (turns >= credit.segment.start) & (turns <= credit.segment.end)] += credit.amount
    return values


def discounted_returns(
    rewards_S: ArrayLike,  # noqa: N803 - shape suffix
    gamma: float,
    mask_S: ArrayLike | None = None,  # noqa: N803 - shape suffix
) -> NDArray[np.float64]:
    """Discounted sums of the rewards from each place to the end, shape (S,).

    Places outside the mask do not count as time: their own return is 0, but rewards there or later are passed on.

    >>> discounted_returns([0, 0, 1], 0.5, [1, 0, 1]).tolist()
    [0.5, 0.0, 1.0]
    """
    rewards = _vector(rewards_S, "rewards_S")
    mask = np.ones(rewards.shape, np.bool_) if mask_S is None else np.asarray(mask_S, dtype=np.bool_)
    if mask.shape != rewards.shape:
        raise ConfigError(f"expected a mask of shape {rewards.shape}, got {mask.shape}")
    returns, ahead = np.zeros_like(rewards), 0.0
    for place in range(rewards.size - 1, -1, -1):
        ahead = rewards[place] + (gamma * ahead if mask[place] else ahead)
        returns[place] = ahead if mask[place] else 0.0
    return returns


def gigpo_step_advantages(
    states: Sequence[Sequence[Hashable]],
    rewards: Sequence[ArrayLike],
    *,
    gamma: float = 0.95,
    std: Std = "none",
    eps: float = 1e-6,
) -> list[NDArray[np.float64]]:
    """GiGPO's step advantages (arXiv 2505.10978): discounted returns, centred among a group's visits of one state.

    Args:
        states: per trajectory the state before each turn.
        rewards: per trajectory the reward of each turn.
        gamma: discount per turn.
        std: divisor inside each set of visits, as in ``group_advantages``.
        eps: added to the divisor.

    Returns:
        Per trajectory an array of shape (S,); 0 at states that were visited once.

    Raises:
        ConfigError: a trajectory has not as many states as rewards.
    """
    returns = [discounted_returns(r, gamma) for r in rewards]
    lengths = [len(s) for s in states]
    if lengths != [r.size for r in returns]:
        raise ConfigError(f"expected one state per reward, got lengths {lengths} and {[r.size for r in returns]}")
    visits: dict[Hashable, list[tuple[int, int]]] = {}
    for i, trajectory in enumerate(states):
        for t, state in enumerate(trajectory):
            visits.setdefault(state, []).append((i, t))
    steps = [np.zeros_like(r) for r in returns]
    for places in visits.values():
        values = group_advantages([returns[i][t] for i, t in places], std=std, eps=eps)
        for (i, t), value in zip(places, values, strict=True):
            steps[i][t] = value
    return steps


def gigpo_advantages(
    states: Sequence[Sequence[Hashable]],
    rewards: Sequence[ArrayLike],
    *,
    omega: float = 1.0,
    gamma: float = 0.95,
    std: Std = "none",
    eps: float = 1e-6,
) -> list[NDArray[np.float64]]:
    """GiGPO's advantages per turn: the group advantage of the episode plus ``omega`` times the step advantage."""
    steps = gigpo_step_advantages(states, rewards, gamma=gamma, std=std, eps=eps)
    episodes = group_advantages([float(np.sum(r)) for r in rewards], std=std, eps=eps)
    return [episode + omega * step for episode, step in zip(episodes, steps, strict=True)]


def vineppo_advantages(
    values_S: ArrayLike,  # noqa: N803 - shape suffix
    outcome: float,
    *,
    gamma: float = 1.0,
) -> NDArray[np.float64]:
    """VinePPO's step advantages (arXiv 2410.01679): ``gamma * V[t+1] - V[t]``, the last one ``outcome - V[-1]``.

    Args:
        values_S: success rate of continuations from before each turn.
        outcome: reward at the end; the value after the last turn is 0.
        gamma: discount per turn.

    >>> vineppo_advantages([0.125, 0.625, 0.5], 1.0).tolist()
    [0.5, -0.125, 0.5]
    """
    values = _vector(values_S, "values_S")
    if values.size == 0:
        return values
    return np.append(gamma * values[1:], outcome) - values


def _vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ConfigError(f"expected {name} of rank 1, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise NumericsError(f"expected finite {name}, got {array.tolist()}; leave failed episodes out of their group")
    return array
