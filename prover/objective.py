"""From tokens and advantages to a loss: log-probabilities, ratio, clipping, KL, aggregation.

A token's weight in the loss is fixed by ``row_weights`` from the WHOLE mini-batch. The loss of a micro-batch is then a
plain weighted sum, and micro-batches add up to the mini-batch however it is cut. Untrained tokens are left out by
selection, never multiplied by 0 (0 x NaN is NaN).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prover.errors import ConfigError, NumericsError, TokenError
from prover.records import TokenRow

Ratio = Literal["token", "gspo", "cispo"]
Aggregation = Literal["token_mean", "sequence_mean", "dr_grpo"]
Kl = Literal["k1", "k2", "k3"]

_LOGIT_RULES = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier")
"""Config entries of models that change logits after the output layer; those go through their own forward."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainRow:
    """A token row that is ready to be trained on."""

    row: TokenRow
    advantages_T: NDArray[np.float64]  # noqa: N815 - shape suffix
    """Advantage of each token; read at trained tokens only, shape (T,)."""
    trajectory: int
    """Number of the row's trajectory in the mini-batch; rows of one trajectory share one weight."""
    ref_logprobs_T: NDArray[np.float64] | None = None  # noqa: N815 - shape suffix
    """Log-probabilities under the reference model where a KL term is used, shape (T,)."""
    continued: bool = False
    """Whether this is a continuation that the verifier played: a trajectory of its own, beside those of the groups."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """Log-probabilities of the N selected tokens of some rows, in the order of rows, then of tokens."""

    logprobs: Tensor
    """Under the distribution that the tokens were sampled from: temperature and support applied. fp32, (N,)."""
    entropy: Tensor
    """Entropy of that distribution, without gradient, (N,)."""
    row: NDArray[np.int64]
    """Index of the token's row, (N,)."""
    place: NDArray[np.int64]
    """Index of the token in its row, (N,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surrogate:
    """The policy-gradient objective per token; to be maximised."""

    objective: Tensor
    """Differentiable, (N,)."""
    ratio: Tensor
    """Importance ratio, without gradient, (N,)."""
    clipped: Tensor
    """Where clipping took effect, so that the gradient is 0 (for ``cispo``: where the weight was cut), bool (N,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loss:
    """Loss of a micro-batch, and sums over its trained tokens from which ``mean_metrics`` makes means."""

    value: Tensor
    """To be minimised; the values of all micro-batches add up to the mini-batch's."""
    tokens: int
    """Number of trained tokens, N."""
    sums: Mapping[str, float] = field(default_factory=dict)


def token_logprobs(model: Any, rows: Sequence[TokenRow], *, which: Literal["trained", "sampled"] = "trained") -> Scored:
    """Log-probabilities of the trained (or all sampled) tokens of some rows, in one right-padded forward pass.

    Each token is scored under exactly the distribution that it was drawn from: logits over the row's temperature,
    normalised over the ids in its ``support`` where that is given. The output layer runs only at the places that
    predict a selected token. Attention mask and positions come from the rows' lengths, never from ids.

    Args:
        model: a Hugging Face causal language model.
        rows: rows without a selected token are skipped.
        which: ``trained`` selects by ``loss_mask``, ``sampled`` by ``turn_of_token``.

    Raises:
        TokenError: a row does not fit together, begins with a selected token, or was sampled greedily.
    """
    wanted = [_selected(row, index, which) for index, row in enumerate(rows)]
    used = [index for index, places in enumerate(wanted) if places.size]
    row_N = np.repeat(np.arange(len(rows), dtype=np.int64), [places.size for places in wanted])  # noqa: N806 - shape suffix
    place_N = np.concatenate([*wanted, np.empty(0, np.int64)])  # noqa: N806 - shape suffix
    if not used:
        return Scored(logprobs=torch.zeros(0, requires_grad=True), entropy=torch.zeros(0), row=row_N, place=place_N)
    device = next(model.parameters()).device
    line_of_row = {index: line for line, index in enumerate(used)}
    line_N = torch.tensor([line_of_row[index] for index in row_N.tolist()], device=device)  # noqa: N806 - shape suffix
    batch = _padded([rows[index].ids for index in used], device)
    logits = _logits(model, batch, line_N, torch.from_numpy(place_N - 1).to(device)).float()
    temperature = torch.tensor([row.temperature for row in rows], device=device)[torch.from_numpy(row_N).to(device)]
    logits = logits / temperature[:, None]
    ids = np.concatenate([rows[index].ids[wanted[index]] for index in used])
    supports = [rows[index].support[place] for index, place in zip(row_N.tolist(), place_N.tolist(), strict=True)]
    logprobs, entropy = _normalised(logits, ids, supports, row_N, place_N)
    return Scored(logprobs=logprobs, entropy=entropy, row=row_N, place=place_N)


def clipped_surrogate(
    logp_new: Tensor,
    logp_old: Tensor,
    advantages: Tensor,
    *,
    ratio: Ratio = "token",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
    sequence: Tensor | None = None,
) -> Surrogate:
    """PPO's clipped objective per token (arXiv 1707.06347) and two relatives; all tensors have shape (N,).

    * ``token``: min(r A, clip(r, 1 - clip_low, 1 + clip_high) A); unequal clips are DAPO's clip-higher (2503.14476).
      With ``dual_clip`` c > 1 it is at least c A where A < 0 (1912.09729).
    * ``gspo``: the same with the ratio of the token's whole sequence, exp(mean log-ratio), in GSPO's token form that
      allows advantages to differ inside a sequence (2507.18071). ``sequence`` numbers each token's sequence.
    * ``cispo``: min(r, 1 + clip_high) A log p with the weight held constant, so that no token loses its gradient
      (2506.13585); ``clip_low`` plays no part.
    """
    log_ratio = logp_new - logp_old
    if ratio == "cispo":
        exact = log_ratio.detach().exp()
        cut = exact.clamp(max=1 + clip_high)
        return Surrogate(objective=cut * advantages * logp_new, ratio=exact, clipped=exact > cut)
    if ratio == "gspo":
        if sequence is None:
            raise ConfigError("expected the sequence of each token for ratio 'gspo', got none; pass `sequence`")
        log_ratio = _sequence_means(log_ratio.detach(), sequence) + logp_new - logp_new.detach()
    elif ratio != "token":
        raise ConfigError(f"expected ratio 'token', 'gspo' or 'cispo', got {ratio!r}")
    exact = log_ratio.exp()
    plain = exact * advantages
    bounded = exact.clamp(1 - clip_low, 1 + clip_high) * advantages
    objective = torch.minimum(plain, bounded)
    clipped = bounded < plain
    if dual_clip is not None:
        floor = torch.where(advantages < 0, dual_clip * advantages, objective)
        clipped = clipped | (floor > objective)
        objective = torch.maximum(objective, floor)
    return Surrogate(objective=objective, ratio=exact.detach(), clipped=clipped)


def kl_estimate(logp: Tensor, logp_ref: Tensor, kind: Kl = "k3") -> Tensor:
    """Per-token estimate of KL(policy || reference) from samples of the policy, with x = logp - logp_ref.

    ``k1`` = x, ``k2`` = x^2 / 2, ``k3`` = exp(-x) - 1 + x (J. Schulman, "Approximating KL divergence"). As a loss on
    on-policy samples, only k2 has the gradient of the KL itself; that of k1 is 0 on average; k3 is GRPO's choice.
    """
    x = logp - logp_ref
    if kind == "k1":
        return x
    if kind == "k2":
        return x.square() / 2
    if kind == "k3":
        return torch.expm1(-x) + x
    raise ConfigError(f"expected kl 'k1', 'k2' or 'k3', got {kind!r}")


def row_weights(
    rows: Sequence[TrainRow], aggregation: Aggregation = "token_mean", *, horizon: int | None = None
) -> NDArray[np.float64]:
    """Weight in the loss of every trained token of each row, shape (B,), from ALL rows of the mini-batch.

    * ``token_mean``: 1 / trained tokens of the mini-batch (DAPO): every token counts the same.
    * ``sequence_mean``: 1 / (trajectories x trained tokens of the token's trajectory) (GRPO): every trajectory counts
      the same, so a token of a long failure is punished less.
    * ``dr_grpo``: 1 / (trajectories x ``horizon``), a constant (Dr. GRPO, arXiv 2503.20783).

    A sequence is a trajectory, in however many rows it is kept. Trajectories without a trained token do not count.
    Compute the weights before rows are left out because their advantages are 0.

    Raises:
        ConfigError: an unknown aggregation, or ``dr_grpo`` without a horizon.
    """
    counts = np.array([int(r.row.loss_mask.sum()) for r in rows], dtype=np.int64)
    of_trajectory: dict[int, int] = {}
    for r, count in zip(rows, counts.tolist(), strict=True):
        of_trajectory[r.trajectory] = of_trajectory.get(r.trajectory, 0) + count
    trajectories = max(sum(count > 0 for count in of_trajectory.values()), 1)
    if aggregation == "token_mean":
        return np.full(len(rows), 1 / max(int(counts.sum()), 1))
    if aggregation == "sequence_mean":
        return np.array([1 / (trajectories * max(of_trajectory[r.trajectory], 1)) for r in rows], dtype=np.float64)
    if aggregation == "dr_grpo":
        if horizon is None or horizon < 1:
            raise ConfigError(
                f"expected a horizon in tokens for 'dr_grpo', got {horizon}; set the longest reply budget"
            )
        return np.full(len(rows), 1 / (trajectories * horizon))
    raise ConfigError(f"expected aggregation 'token_mean', 'sequence_mean' or 'dr_grpo', got {aggregation!r}")


def policy_loss(
    model: Any,
    rows: Sequence[TrainRow],
    weights_B: NDArray[np.float64],  # noqa: N803 - shape suffix
    *,
    ratio: Ratio = "token",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
    kl: Kl = "k3",
    kl_weight: float = 0.0,
) -> Loss:
    """Loss of a micro-batch: minus the weighted sum of (surrogate - kl_weight * KL) over its trained tokens.

    With ``gspo`` all rows of a trajectory must be in one micro-batch, since their ratio is common.

    Args:
        model: a Hugging Face causal language model.
        rows: the micro-batch.
        weights_B: ``row_weights`` of these rows, computed on the whole mini-batch, shape (B,).
        ratio: see ``clipped_surrogate``, as for the clips.
        clip_low: how far the ratio may fall below 1.
        clip_high: how far it may rise above 1.
        dual_clip: bound for negative advantages.
        kl: see ``kl_estimate``.
        kl_weight: coefficient of the KL term; above 0 every row needs ``ref_logprobs_T``.

    Raises:
        NumericsError: a number at a trained token is not finite; the message names the row.
        TokenError: shapes differ.
    """
    if len(rows) != len(weights_B):
        raise TokenError(f"expected one weight per row, got {len(weights_B)} for {len(rows)} rows")
    for index, r in enumerate(rows):
        if len(r.advantages_T) != len(r.row):
            raise TokenError(f"expected {len(r.row)} advantages in row {index}, got {len(r.advantages_T)}")
    scored = token_logprobs(model, [r.row for r in rows])
    new, where = scored.logprobs, (scored.row, scored.place)
    if new.numel() == 0:
        return Loss(value=new.sum(), tokens=0)
    _check_finite("new log-probabilities", new, where)
    old = _gather("old log-probabilities", [r.row.logprobs for r in rows], where, new)
    advantages = _gather("advantages", [r.advantages_T for r in rows], where, new)
    trajectory = torch.tensor([r.trajectory for r in rows], device=new.device)[_index(scored.row, new)]
    surrogate = clipped_surrogate(
        new,
        old,
        advantages,
        ratio=ratio,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        sequence=trajectory,
    )
    objective = surrogate.objective
    measured = {
        "ratio": surrogate.ratio,
        "ratio_outside": (surrogate.ratio - 1).abs() > 0.1,
        "clipped": surrogate.clipped,
        "kl_old": kl_estimate(old, new.detach()),
        "entropy": scored.entropy,
    }
    if kl_weight > 0:
        ref = _gather("reference log-probabilities", [_reference(r, index) for index, r in enumerate(rows)], where, new)
        penalty = kl_estimate(new, ref, kl)
        measured["kl_ref"] = penalty.detach()
        objective = objective - kl_weight * penalty
    _check_finite("objective", objective, where)
    weights = torch.as_tensor(weights_B, dtype=new.dtype, device=new.device)[_index(scored.row, new)]
    sums = torch.stack([value.double().sum() for value in measured.values()]).tolist()
    return Loss(value=-(weights * objective).sum(), tokens=new.numel(), sums=dict(zip(measured, sums, strict=True)))


def mean_metrics(losses: Sequence[Loss]) -> dict[str, float]:
    """Means over all trained tokens of some micro-batches; empty when there were none.

    ``ratio``, ``ratio_outside`` (share outside [0.9, 1.1]), ``clipped`` (share), ``kl_old`` (k3 of the policy that
    sampled against the new one), ``entropy``, and ``kl_ref`` where a KL term was used.
    """
    tokens = sum(loss.tokens for loss in losses)
    names = [name for loss in losses for name in loss.sums]
    return {name: sum(loss.sums.get(name, 0.0) for loss in losses) / tokens for name in dict.fromkeys(names)}


def _selected(row: TokenRow, index: int, which: str) -> NDArray[np.int64]:
    """Places of the row's selected tokens, after a check that the row fits together."""
    lengths = {len(row.ids), len(row.turn_of_token), len(row.loss_mask), len(row.logprobs), len(row.support)}
    if len(lengths) != 1:
        raise TokenError(f"expected fields of one length in row {index}, got lengths {sorted(lengths)}")
    places = np.flatnonzero(row.loss_mask if which == "trained" else row.turn_of_token >= 0)
    if places.size == 0:
        return places
    if places[0] == 0:
        raise TokenError(f"expected a prompt before the first selected token of row {index}, got none")
    if (row.turn_of_token[places] < 0).any():
        raise TokenError(f"expected only sampled tokens to be trained on, got others in row {index}")
    if not row.temperature > 0:
        raise TokenError(
            f"expected a temperature above 0 in row {index}, got {row.temperature}; greedy replies have no ratio"
        )
    return places


def _padded(ids: Sequence[NDArray[np.int64]], device: torch.device) -> dict[str, Tensor]:
    """Right-padded model inputs; causal models never look at what stands to the right."""
    longest = max(len(row) for row in ids)
    batch = np.zeros((len(ids), longest), np.int64)
    for line, row in enumerate(ids):
        batch[line, : len(row)] = row
    lengths = np.array([len(row) for row in ids])
    places = np.arange(longest)
    mask = (places < lengths[:, None]).astype(np.int64)
    positions = np.broadcast_to(places, batch.shape).copy()
    return {
        "input_ids": torch.from_numpy(batch).to(device),
        "attention_mask": torch.from_numpy(mask).to(device),
        "position_ids": torch.from_numpy(positions).to(device),
    }


def _logits(model: Any, batch: dict[str, Tensor], line: Tensor, place: Tensor) -> Tensor:
    """Logits at the given places only, (N, V). The output layer is most of a small model's work."""
    head, backbone = model.get_output_embeddings(), model.base_model
    plain = not any(getattr(model.config, name, None) for name in _LOGIT_RULES)
    if plain and backbone is not model and isinstance(head, torch.nn.Linear):
        hidden = backbone(**batch, use_cache=False).last_hidden_state
        picked: Tensor = head(hidden[line, place])
        return picked
    kept, where = torch.unique(place, return_inverse=True)
    logits: Tensor = model(**batch, use_cache=False, logits_to_keep=kept).logits
    return logits[line, where]


def _normalised(
    logits: Tensor,
    ids: NDArray[np.int64],
    supports: Sequence[tuple[int, ...] | None],
    row: NDArray[np.int64],
    place: NDArray[np.int64],
) -> tuple[Tensor, Tensor]:
    """Log-probability of each id and entropy, over the id's support or the whole vocabulary, both (N,)."""
    limited = np.array([support is not None for support in supports])
    chosen = _index(ids, logits)
    if not limited.any():
        return _over(logits, chosen)
    widest = max(len(support) for support in supports if support is not None)
    allowed = np.zeros((int(limited.sum()), widest), np.int64)
    real = np.zeros(allowed.shape, np.bool_)
    column = np.empty(len(allowed), np.int64)
    for line, n in enumerate(np.flatnonzero(limited).tolist()):
        support = supports[n]
        if support is None or int(ids[n]) not in support:
            raise TokenError(
                f"expected token {place[n]} of row {row[n]} in its support, got id {ids[n]}; keep the open ids"
            )
        allowed[line, : len(support)] = support
        real[line, : len(support)] = True
        column[line] = support.index(int(ids[n]))
    inside = torch.from_numpy(np.flatnonzero(limited)).to(logits.device)
    narrow = logits[inside].gather(1, _index(allowed, logits))
    narrow = narrow.masked_fill(~torch.from_numpy(real).to(logits.device), -torch.inf)
    logprobs, entropy = _over(narrow, _index(column, logits))
    if limited.all():
        return logprobs, entropy
    outside = torch.from_numpy(np.flatnonzero(~limited)).to(logits.device)
    free, free_entropy = _over(logits[outside], chosen[outside])
    order = torch.argsort(torch.cat([inside, outside]))
    return torch.cat([logprobs, free])[order], torch.cat([entropy, free_entropy])[order]


def _over(logits: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    """Log-softmax at one column of each line, and the entropy of the line."""
    logprobs = logits.log_softmax(-1)
    with torch.no_grad():
        entropy = torch.special.entr(logprobs.exp()).sum(-1)
    return logprobs.gather(1, column[:, None])[:, 0], entropy


def _sequence_means(values: Tensor, sequence: Tensor) -> Tensor:
    """Mean of the values of each sequence, at each of its tokens, (N,)."""
    _, inverse, counts = torch.unique(sequence, return_inverse=True, return_counts=True)
    sums = torch.zeros(counts.shape, dtype=values.dtype, device=values.device).index_add_(0, inverse, values)
    means: Tensor = sums / counts
    return means[inverse]


def _gather(
    name: str, arrays: Sequence[NDArray[np.float64]], where: tuple[NDArray[np.int64], NDArray[np.int64]], like: Tensor
) -> Tensor:
    """Values at the selected tokens, checked to be finite."""
    starts = np.cumsum([0, *(len(array) for array in arrays)])
    values = np.concatenate(arrays)[starts[where[0]] + where[1]]
    tensor = torch.as_tensor(values, dtype=like.dtype, device=like.device)
    _check_finite(name, tensor, where)
    return tensor


def _reference(row: TrainRow, index: int) -> NDArray[np.float64]:
    if row.ref_logprobs_T is None or len(row.ref_logprobs_T) != len(row.row):
        got = None if row.ref_logprobs_T is None else len(row.ref_logprobs_T)
        raise TokenError(f"expected {len(row.row)} reference log-probabilities in row {index} for the KL, got {got}")
    return row.ref_logprobs_T


def _check_finite(name: str, values: Tensor, where: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
    bad = torch.nonzero(~torch.isfinite(values.detach()))
    if bad.numel():
        n = int(bad[0, 0])
        raise NumericsError(
            f"expected finite {name} at trained tokens, got {values[n].item()} at token {where[1][n]} of row "
            f"{where[0][n]} ({len(bad)} such tokens); the step was not taken"
        )


def _index(values: NDArray[np.int64], like: Tensor) -> Tensor:
    return torch.from_numpy(values).to(like.device)
