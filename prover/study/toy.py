"""Methods compared on ``prover.testing.pivots``: many training runs side by side, as arrays.

Every group has a task of its own, drawn around a hidden teacher: actions have 24 random features, and the teacher's
scores say which action is right and which one slips. The policy is a softmax of a linear function of the features, so
what it learns must carry over to other tasks, and noise on decisions without weight disturbs those with it. Values are
exact; a continuation is a coin with the exact probability. The update is a plain policy gradient with the mean over
tokens: on-policy, no clipping.

All methods of one seed have the same teacher and draw their tasks and episodes from the same stream, so that their
differences are paired by seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prover.seeds import derive
from prover.testing.pivots import ACTIONS, DECISIONS, Pivots

FEATURES = 24
"""Features of an action, F."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How an update credits its episodes. The defaults are plain GRPO with 16 groups of 8."""

    selector: Literal["none", "random", "judge", "every_turn"] = "none"
    """Who points at a turn of a random success: nobody, chance, or a judge; ``every_turn`` measures all (VinePPO)."""
    accuracy: float = 0.7
    """Chance that the judge names the turn with the largest true difference."""
    error: Literal["benign", "biased"] = "benign"
    """What it names otherwise: any turn, or the one with the smallest difference."""
    continuations: int | None = 8
    """K before and after; None takes exact values at no cost."""
    sequential: bool = False
    """Stop measuring early, as ``MonteCarloVerifier`` does."""
    trusted: float | None = None
    """Take this difference on trust and measure nothing."""
    weight: float = 1.0
    """lambda."""
    signed: bool = False
    """Keep negative differences."""
    min_z: float = 0.0
    """Least difference in standard errors (Jeffreys)."""
    eligible_max: int = 3
    groups: int = 16
    group_size: int = 8
    updates: int = 100
    rate: float = 8.0
    """Learning rate."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What training gave, one value per seed, shape (N,)."""

    area: Floats
    """Mean of the exact success rate over the updates."""
    final: Floats
    """Mean over the last ten updates."""
    turns: Floats
    """Environment turns, continuations included."""
    success: Floats
    """Exact success rate before each update, shape (updates, N)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batch:
    """Episodes of an update, all seeds at once."""

    features: Floats
    """(N, B, T, A, F)"""
    probabilities: Floats
    """(N, B, T, A)"""
    actions: Ints
    """(N, B, G, T)"""
    values: Floats
    """(N, B, G, T + 1)"""
    rewards: Floats
    """(N, B, G)"""
    start: Floats
    """Exact success rate of the policy on these tasks, shape (N,)."""


def simulate(method: Method, seeds: Sequence[int]) -> Outcome:
    """Train once per seed."""
    episodes, credit = (
        [np.random.default_rng(derive(seed, stream)) for seed in seeds] for stream in (1, 2)
    )  # credit has a stream of its own, so that weight 0 leaves the episodes as they are
    teachers = np.stack([np.random.default_rng(derive(seed, 0)).normal(size=FEATURES) for seed in seeds])
    weights = np.zeros_like(teachers)
    turns, success = np.zeros(len(seeds)), []
    for _ in range(method.updates):
        batch = _play(method, teachers, weights, episodes)
        success.append(batch.start)
        advantages, spent = _advantages(method, batch, credit)
        turns += method.groups * method.group_size * DECISIONS + spent
        chosen = (batch.actions[..., None] == np.arange(ACTIONS)) - batch.probabilities[:, :, None]
        weighted = (advantages[..., None] * chosen).sum(2)
        gradient = np.einsum("nbta,nbtaf->nf", weighted, batch.features)
        weights += method.rate * gradient / advantages[0].size
    curve = np.array(success)
    return Outcome(area=curve.mean(0), final=curve[-10:].mean(0), turns=turns, success=curve)


def _play(method: Method, teachers: Floats, weights: Floats, rngs: Sequence[np.random.Generator]) -> _Batch:
    shape = (method.groups, DECISIONS, ACTIONS, FEATURES)
    features, draws, coins, places = [], [], [], []
    for rng, teacher in zip(rngs, teachers, strict=True):
        features.append(rng.normal(size=shape))
        places.append(Pivots.draw(rng, features[-1] @ teacher))
        draws.append(rng.random((method.groups, method.group_size, DECISIONS)))
        coins.append(rng.random((method.groups, method.group_size)))
    tasks = Pivots(**{name: np.stack([getattr(one, name) for one in places]) for name in ("right", "slip", "pivotal")})
    stacked = np.stack(features)
    logits = np.einsum("nbtaf,nf->nbta", stacked, weights)
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities = odds / odds.sum(-1, keepdims=True)
    reached = np.stack(draws)[..., None] > probabilities.cumsum(-1)[:, :, None]
    actions = np.minimum(reached.sum(-1), ACTIONS - 1)
    values = tasks.values(actions, probabilities)
    return _Batch(
        features=stacked,
        probabilities=probabilities,
        actions=actions,
        values=values,
        rewards=(np.stack(coins) < values[..., -1]).astype(np.float64),
        start=values[:, :, 0, 0].mean(1),
    )


def _advantages(method: Method, batch: _Batch, rngs: Sequence[np.random.Generator]) -> tuple[Floats, Floats]:
    """Advantage of every turn, shape (N, B, G, T), and the turns spent on continuations, shape (N,)."""
    base = batch.rewards - batch.rewards.mean(-1, keepdims=True)
    advantages = np.repeat(base[..., None], DECISIONS, -1)
    if method.selector == "none":
        return advantages, np.zeros(len(rngs))
    if method.selector == "every_turn":
        return _every_turn(method, batch, rngs)
    spent = np.zeros(len(rngs))
    for n, rng in enumerate(rngs):
        groups = np.arange(method.groups)
        # Drawn for every group, so that methods stay paired whichever groups are eligible.
        member = np.where(batch.rewards[n] > 0, rng.random(batch.rewards[n].shape), -1.0).argmax(-1)
        values = batch.values[n][groups, member]
        chance, luck = rng.integers(DECISIONS, size=method.groups), rng.random(method.groups)
        gains = np.diff(values, axis=-1)
        wrong = chance if method.error == "benign" else gains.argmin(-1)
        named = np.where(luck < method.accuracy, gains.argmax(-1), wrong) if method.selector == "judge" else chance
        successes = batch.rewards[n].sum(-1)
        eligible = (successes >= 1) & (successes <= min(method.eligible_max, method.group_size - 1))
        delta, kept, k = _measured(method, values[groups, named], values[groups, named + 1], rng)
        advantages[n][groups, member, named] += method.weight * np.where(eligible & kept, delta, 0.0)
        spent[n] = (eligible * k * (2 * (DECISIONS - named) - 1)).sum()
    return advantages, spent


def _measured(
    method: Method, before: Floats, after: Floats, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.bool_], Ints]:
    """Differences of the success rates as the method sees them, which earn credit, and continuations per arm."""
    nothing = np.zeros(before.shape, np.int64)
    if method.trusted is not None:
        return np.full(before.shape, method.trusted), np.ones(before.shape, np.bool_), nothing
    if method.continuations is None:
        delta = after - before
        return delta, (delta > 0) | method.signed, nothing
    won = rng.random((method.continuations, 2, *before.shape)) < np.stack([before, after])
    k = _stages(won, signed=method.signed) if method.sequential else nothing + method.continuations
    counts = np.take_along_axis(won.cumsum(0), k[None, None] - 1, 0)[0]
    delta = (counts[1] - counts[0]) / k
    shrunk = (counts + 0.5) / (k + 1)
    error = np.sqrt((shrunk * (1 - shrunk) / (k + 1)).sum(0))
    return delta, ((delta > 0) | method.signed) & (np.abs(delta) > method.min_z * error), k


def _stages(won: NDArray[np.bool_], *, signed: bool) -> Ints:
    """Continuations per arm after which a sequential measurement stops, as ``MonteCarloVerifier`` does.

    Args:
        won: Outcomes of K continuations before and after, shape (K, 2, ...).
        signed: Whether a loss is worth measuring in full as well.
    """
    k = np.full(won.shape[2:], len(won))
    stages = [2]
    while 2 * stages[-1] < len(won):
        stages.append(2 * stages[-1])
    for stage in reversed([stage for stage in stages if stage < len(won)]):
        before, after = won[:stage].sum(0)
        alike = (before == after) & ((before == 0) | (before == stage))
        stops = alike if stage < 4 else (before == after if signed else before >= after)
        k = np.where(stops, stage, k)
    return k


def _every_turn(method: Method, batch: _Batch, rngs: Sequence[np.random.Generator]) -> tuple[Floats, Floats]:
    """VinePPO (arXiv 2410.01679): V after minus V before at every turn of every episode; the outcome after the last."""
    k, values = method.continuations, batch.values.copy()
    if k is not None:
        for n, rng in enumerate(rngs):
            values[n] = rng.binomial(k, values[n].clip(0, 1)) / k
    values[..., -1] = batch.rewards
    length = DECISIONS * (DECISIONS + 1) // 2
    per_update = 0 if k is None else method.groups * method.group_size * k * length
    return np.diff(values, axis=-1), np.full(len(rngs), float(per_update))
