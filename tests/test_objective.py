"""Tests of prover.objective."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from prover.errors import ConfigError, NumericsError, TokenError
from prover.objective import (
    TrainRow,
    clipped_surrogate,
    kl_estimate,
    mean_metrics,
    policy_loss,
    row_weights,
    token_logprobs,
)
from prover.records import TokenRow

VOCABULARY = 23
SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "pad_token_id": 0,
    "eos_token_id": 0,
}
RECURRENT = {
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}


def qwen3() -> Any:
    """A tiny Qwen3 whose end token is also its padding token."""
    return hf.Qwen3ForCausalLM(hf.Qwen3Config(**SMALL, tie_word_embeddings=True))


def llama() -> Any:
    """A tiny Llama with an output layer of its own."""
    return hf.LlamaForCausalLM(hf.LlamaConfig(**SMALL, tie_word_embeddings=False))


def qwen3_5() -> Any:
    """A tiny Qwen3.5 with one recurrent and one attention layer."""
    config = hf.Qwen3_5TextConfig(**SMALL, **RECURRENT, layer_types=["linear_attention", "full_attention"])
    return hf.Qwen3_5ForCausalLM(config)


def made(build: Any, seed: int = 0) -> Any:
    """A model with reproducible, well spread weights."""
    model = build().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.15)
    return model


@pytest.fixture(scope="module")
def model() -> Any:
    """A tiny Qwen3."""
    return made(qwen3)


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, Any]:
    """Ground truth that was computed apart from this project."""
    return json.loads((shared / "vectors" / "algorithm_vectors.json").read_text())


def row(
    ids: Sequence[int], mask: Sequence[int], *, support: Any = None, temperature: float = 1.0, logprobs: Any = None
) -> TokenRow:
    """A row whose sampled tokens are all of turn 0 and all trained on."""
    sampled = np.array(mask, dtype=bool)
    return TokenRow(
        ids=np.array(ids, dtype=np.int64),
        turn_of_token=np.where(sampled, 0, -1),
        loss_mask=sampled,
        logprobs=np.zeros(len(ids)) if logprobs is None else np.array(logprobs, dtype=np.float64),
        support=support or (None,) * len(ids),
        temperature=temperature,
    )


def train_row(tokens: TokenRow, advantage: float, trajectory: int, **fields: Any) -> TrainRow:
    """A row with one advantage at all its tokens."""
    return TrainRow(row=tokens, advantages_T=np.full(len(tokens), advantage), trajectory=trajectory, **fields)


def on_policy(model: Any, rows: Sequence[TrainRow]) -> list[TrainRow]:
    """The same rows with the model's own log-probabilities, so that the ratio is 1."""
    for r in rows:
        r.row.logprobs[r.row.loss_mask] = token_logprobs(model, [r.row]).logprobs.detach().numpy()
    return list(rows)


def single(model: Any, tokens: TokenRow) -> list[float]:
    """Log-probabilities of one row alone, the long way: full logits, a softmax over each token's own support."""
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(tokens.ids)[None]).logits[0].double() / tokens.temperature
    values = []
    for place in np.flatnonzero(tokens.loss_mask):
        support = tokens.support[place]
        open_ids = list(range(VOCABULARY)) if support is None else list(support)
        scores = logits[place - 1][open_ids]
        values.append(float(scores.log_softmax(0)[open_ids.index(int(tokens.ids[place]))]))
    return values


def gradient(model: Any, losses: Sequence[torch.Tensor]) -> torch.Tensor:
    """Gradient of a sum of losses, accumulated one after the other."""
    model.zero_grad()
    for loss in losses:
        loss.backward()
    return torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in model.parameters()])


class Recorder(torch.nn.Module):
    """Wraps a model's base and keeps what it was called with."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.seen: dict[str, Any] = {}

    def forward(self, **inputs: Any) -> Any:
        """Keep the inputs and pass them on."""
        self.seen = inputs
        return self.inner(**inputs)


@pytest.mark.parametrize("build", [qwen3, llama, qwen3_5])
@pytest.mark.filterwarnings("ignore:.*fast path.*")
def test_padding_has_no_effect(build: Any) -> None:
    """Rows of lengths 3, 9 and 17, at three temperatures, give in one batch what each gives alone."""
    model = made(build)
    rng = np.random.default_rng(1)
    rows = [
        row(rng.integers(0, VOCABULARY, n).tolist(), [0, 0] + [1] * (n - 2), temperature=t)
        for n, t in ((3, 0.5), (9, 1.0), (17, 1.5))
    ]
    scored = token_logprobs(model, rows)
    expected = [value for tokens in rows for value in single(model, tokens)]
    np.testing.assert_allclose(scored.logprobs.detach().numpy(), expected, atol=1e-5)
    assert scored.row.tolist() == [0] + [1] * 7 + [2] * 15
    assert scored.place.tolist() == [2, *range(2, 9), *range(2, 17)]


def test_support_and_temperature(model: Any) -> None:
    """A token that was sampled among few ids is scored among those, next to tokens that were free."""
    supports = (None, None, (1, 4, 7), None, (2,), (0, 3, 5, 9))
    rows = [row([4, 4, 7, 1, 2, 0], [0, 0, 1, 1, 1, 1], support=supports, temperature=0.5)]
    scored = token_logprobs(model, rows)
    np.testing.assert_allclose(scored.logprobs.detach().numpy(), single(model, rows[0]), atol=1e-5)
    assert scored.logprobs[2].item() == 0.0
    assert scored.entropy[2].item() == 0.0
    assert 0 < scored.entropy[0].item() <= math.log(3) + 1e-6
    assert torch.isfinite(gradient(model, [scored.logprobs.sum()])).all()


def test_known_logits() -> None:
    """Logits [2, 0] at T = 0.5 give -0.0181 for token 0: the tempered log-probability, neither raw nor raw over T."""
    head = torch.nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[2.0], [0.0]]))

    model = SimpleNamespace(
        config=None,
        parameters=head.parameters,
        get_output_embeddings=lambda: head,
        base_model=lambda input_ids, **_: SimpleNamespace(last_hidden_state=torch.ones(*input_ids.shape, 1)),
    )
    scored = token_logprobs(model, [row([1, 0, 1], [0, 1, 1], temperature=0.5)])
    np.testing.assert_allclose(scored.logprobs.detach().numpy(), [-0.0181, -4.0181], atol=5e-5)
    kept = row([1, 0, 1], [0, 1, 1], temperature=0.5, support=(None, (0,), (0, 1)))
    np.testing.assert_allclose(token_logprobs(model, [kept]).logprobs.detach().numpy(), [0, -4.0181], atol=5e-5)


def test_padding_is_not_read_in_ids() -> None:
    """The end token, equal to the padding token, is attended to; the mask is eight ones and two zeros."""
    model = made(qwen3)
    model.model = recorder = Recorder(model.model)
    rows = [row([4, 4, 1, 0, 5, 2, 2, 0], [0, 0, 1, 1, 0, 0, 1, 1]), row([4] * 10, [0] * 9 + [1])]
    token_logprobs(model, rows)
    assert recorder.seen["attention_mask"].tolist() == [[1] * 8 + [0] * 2, [1] * 10]
    assert recorder.seen["position_ids"].tolist() == [list(range(10))] * 2


def test_scaled_logits_take_the_models_own_way() -> None:
    """A model that changes its logits after the output layer is asked for them itself."""
    model = made(qwen3)
    rows = [row([4, 4, 1, 0], [0, 0, 1, 1]), row([4, 1, 2], [0, 1, 1])]
    plain = token_logprobs(model, rows).logprobs.detach()
    model.config.logit_scale = 1.0
    np.testing.assert_allclose(token_logprobs(model, rows).logprobs.detach(), plain, atol=1e-6)


def test_sampled_but_untrained(model: Any) -> None:
    """``which`` selects all sampled tokens, or only those that are trained on."""
    tokens = dataclasses.replace(row([4, 4, 1, 2], [0, 0, 1, 1]), loss_mask=np.array([False, False, True, False]))
    assert token_logprobs(model, [tokens]).place.tolist() == [2]
    assert token_logprobs(model, [tokens], which="sampled").place.tolist() == [2, 3]


def test_rows_that_do_not_fit(model: Any) -> None:
    """Broken rows are refused with their number and the reason."""
    good = row([4, 4, 1], [0, 0, 1])
    cases = {
        "one length in row 1": dataclasses.replace(good, logprobs=np.zeros(2)),
        "prompt before the first selected token of row 1": row([1, 2], [1, 1]),
        "only sampled tokens to be trained on": dataclasses.replace(good, turn_of_token=np.full(3, -1)),
        "temperature above 0": dataclasses.replace(good, temperature=0.0),
        "token 2 of row 1 in its support, got id 1": dataclasses.replace(good, support=(None, None, (2, 3))),
    }
    for message, bad in cases.items():
        with pytest.raises(TokenError, match=message):
            token_logprobs(model, [good, bad])


def test_clip_vectors(vectors: dict[str, Any]) -> None:
    """Ratio, objective, loss and clipped tokens agree with the vectors."""
    for case in vectors["clipped_loss"]:
        new, old, advantages = (
            torch.tensor(case[name], dtype=torch.float64) for name in ("logp_new", "logp_old", "advantages")
        )
        options = {name: case[name] for name in ("clip_low", "clip_high", "dual_clip")}
        got = clipped_surrogate(new, old, advantages, **options)
        np.testing.assert_allclose(got.ratio, case["ratio"], atol=1e-9)
        np.testing.assert_allclose(got.objective, case["per_token_objective"], atol=1e-9)
        assert -got.objective.mean().item() == pytest.approx(case["loss_token_mean"], abs=1e-9)
        assert got.clipped.tolist() == [bool(flag) for flag in case["clipped_mask"]]


def test_sequence_ratio_vectors(vectors: dict[str, Any]) -> None:
    """GSPO's ratio and clipped objective, and CISPO's weights and loss, agree with the vectors."""
    case = vectors["sequence_ratio_variants"]
    new, old = (torch.tensor(case[name], dtype=torch.float64) for name in ("logp_new", "logp_old"))
    advantages = torch.full((3,), case["advantage"], dtype=torch.float64)
    sequence = torch.zeros(3, dtype=torch.int64)
    got = clipped_surrogate(new, old, advantages, ratio="gspo", clip_low=3e-4, clip_high=4e-4, sequence=sequence)
    np.testing.assert_allclose(got.ratio, [case["gspo_sequence_ratio"]] * 3, atol=1e-9)
    np.testing.assert_allclose(got.objective, [case["gspo_objective_clip_3e-4_4e-4"]] * 3, atol=1e-9)
    got = clipped_surrogate(new, old, advantages, ratio="cispo", clip_high=0.28)
    weights = np.array(case["cispo_weights_high_1.28_low_none"])
    np.testing.assert_allclose(got.objective, weights * np.array(case["logp_new"]), atol=1e-9)
    assert -got.objective.mean().item() == pytest.approx(case["cispo_loss_token_mean_value"], abs=1e-9)


def test_kl_vectors(vectors: dict[str, Any]) -> None:
    """The three KL estimators agree with the vectors."""
    case = vectors["kl_estimators"]
    logp, ref = (torch.tensor(case[name], dtype=torch.float64) for name in ("logp", "logp_ref"))
    for kind in ("k1", "k2", "k3"):
        got = kl_estimate(logp, ref, kind)
        np.testing.assert_allclose(got, case[kind], atol=1e-9)
        assert got.mean().item() == pytest.approx(case["means"][kind], abs=1e-9)
    with pytest.raises(ConfigError, match="k4"):
        kl_estimate(logp, ref, "k4")  # type: ignore[arg-type]  # on purpose


def test_aggregation_vectors(vectors: dict[str, Any]) -> None:
    """Token mean, sequence mean and Dr. GRPO agree with the vectors."""
    case = vectors["loss_aggregation"]
    names = {
        "token_mean": ("token_mean_dapo", "token_mean_b", "token_mean_c"),
        "sequence_mean": ("seq_mean_token_mean_grpo", "seq_mean_token_mean_b", "seq_mean_token_mean_c"),
        "dr_grpo": ("seq_mean_token_sum_norm_dr_grpo_maxlen_8", None, "dr_grpo_maxlen_8_c"),
    }
    for index, key in enumerate(("per_token_objective", "per_token_objective_b", "per_token_objective_c")):
        objectives = case[key]
        rows = [train_row(row([4] + [1] * len(o), [0] + [1] * len(o)), 1.0, i) for i, o in enumerate(objectives)]
        for aggregation, expected in names.items():
            weights = row_weights(rows, aggregation, horizon=8)  # type: ignore[arg-type]  # loop over literals
            loss = -sum(weight * sum(o) for weight, o in zip(weights, objectives, strict=True))
            if expected[index] is not None:
                assert loss == pytest.approx(case[expected[index]], abs=1e-9)


def test_clipping_by_hand() -> None:
    """Ratio 1.5 is held at 1.2 with gradient 0 for A = 1, counts in full for A = -1; ratio 4 meets the dual clip."""
    new = torch.tensor([1.5, 1.5, 4.0], dtype=torch.float64).log().requires_grad_()
    advantages = torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    got = clipped_surrogate(new, torch.zeros(3, dtype=torch.float64), advantages, dual_clip=3.0)
    np.testing.assert_allclose(got.objective.detach(), [1.2, -1.5, -3.0])
    assert got.clipped.tolist() == [True, False, True]
    got.objective.sum().backward()
    assert new.grad is not None
    np.testing.assert_allclose(new.grad, [0, -1.5, 0])


def test_sequence_ratio_keeps_the_gradient_of_its_tokens() -> None:
    """GSPO's token form has gradient ratio * A at each token, with the ratio of the token's own sequence."""
    new = torch.tensor([0.1, 0.3, 0.05], dtype=torch.float64).requires_grad_()
    advantages = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    sequence = torch.tensor([7, 7, 3])
    old = torch.zeros(3, dtype=torch.float64)
    got = clipped_surrogate(new, old, advantages, ratio="gspo", clip_low=0.9, clip_high=0.9, sequence=sequence)
    ratios = np.exp([0.2, 0.2, 0.05])
    np.testing.assert_allclose(got.ratio, ratios)
    got.objective.sum().backward()
    assert new.grad is not None
    np.testing.assert_allclose(new.grad, ratios * advantages.numpy())
    with pytest.raises(ConfigError, match="pass `sequence`"):
        clipped_surrogate(new, old, advantages, ratio="gspo")
    with pytest.raises(ConfigError, match="'token', 'gspo' or 'cispo'"):
        clipped_surrogate(new, old, advantages, ratio="mean")  # type: ignore[arg-type]  # on purpose


def test_cispo_keeps_the_gradient_of_clipped_tokens() -> None:
    """CISPO's gradient at a token of ratio 1.5 is the cut weight 1.28 times A."""
    new = torch.tensor([1.5], dtype=torch.float64).log().requires_grad_()
    got = clipped_surrogate(
        new, torch.zeros(1, dtype=torch.float64), torch.ones(1).double(), ratio="cispo", clip_high=0.28
    )
    got.objective.backward()
    assert new.grad is not None
    assert new.grad.item() == pytest.approx(1.28)
    assert got.clipped.tolist() == [True]


def two_trajectories(model: Any) -> list[TrainRow]:
    """A: 2 tokens with advantage +1. B: 8 tokens with advantage -1. Ratio 1."""
    a = train_row(row([4, 4, 1, 0], [0, 0, 1, 1]), 1.0, 0)
    b = train_row(row([4, 4, 2, 3, 5, 7, 2, 3, 5, 0], [0, 0] + [1] * 8), -1.0, 1)
    return on_policy(model, [a, b])


@pytest.mark.parametrize(("aggregation", "expected"), [("token_mean", 0.6), ("sequence_mean", 0.0), ("dr_grpo", 0.375)])
def test_micro_batches_do_not_matter(model: Any, aggregation: Any, expected: float) -> None:
    """One batch, two micro-batches and their other order give one loss and one gradient."""
    rows = two_trajectories(model)
    weights = row_weights(rows, aggregation, horizon=8)
    whole = policy_loss(model, rows, weights)
    parts = [policy_loss(model, rows[i : i + 1], weights[i : i + 1]) for i in (0, 1)]
    assert whole.value.item() == pytest.approx(expected, abs=1e-6)
    assert sum(part.value.item() for part in parts) == pytest.approx(expected, abs=1e-6)
    reference = gradient(model, [whole.value])
    for order in (parts, [policy_loss(model, rows[i : i + 1], weights[i : i + 1]) for i in (1, 0)]):
        np.testing.assert_allclose(gradient(model, [part.value for part in order]), reference, atol=1e-6)
    assert mean_metrics(parts) == pytest.approx(mean_metrics([whole]), abs=1e-6)


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "dr_grpo"])
def test_a_trajectory_in_two_rows_counts_once(model: Any, aggregation: Any) -> None:
    """Cutting a trajectory into one row per turn changes neither the weights of its tokens nor those of others."""
    whole = [train_row(row([4, 1, 2, 5, 3], [0, 1, 1, 0, 1]), 1.0, 0), train_row(row([4, 1], [0, 1]), -1.0, 1)]
    cut = [
        train_row(row([4, 1, 2], [0, 1, 1]), 1.0, 0),
        train_row(row([4, 1, 2, 5, 3], [0, 0, 0, 0, 1]), 1.0, 0),
        whole[1],
    ]
    weights, of_cut = (row_weights(rows, aggregation, horizon=8) for rows in (whole, cut))
    assert of_cut.tolist() == [weights[0], weights[0], weights[1]]
    losses = [
        policy_loss(model, on_policy(model, rows), w).value.item() for rows, w in ((whole, weights), (cut, of_cut))
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_weights_by_hand() -> None:
    """Two trajectories of 2 and 8 tokens, and one without a trained token, which does not count."""
    rows = [
        train_row(row([4, 1, 0], [0, 1, 1]), 1.0, 5),
        train_row(row([4] + [1] * 8, [0] + [1] * 8), -1.0, 6),
        train_row(row([4, 4], [0, 0]), 0.0, 7),
    ]
    assert row_weights(rows).tolist() == [0.1] * 3
    assert row_weights(rows, "sequence_mean").tolist() == [1 / 4, 1 / 16, 1 / 2]
    assert row_weights(rows, "dr_grpo", horizon=10).tolist() == [0.05] * 3
    with pytest.raises(ConfigError, match="horizon"):
        row_weights(rows, "dr_grpo")
    with pytest.raises(ConfigError, match="'token_mean'"):
        row_weights(rows, "mean")  # type: ignore[arg-type]  # on purpose


def test_nothing_to_train_on(model: Any) -> None:
    """Empty and fully masked rows give loss 0 and no gradient, alone and beside others."""
    empty = [train_row(row([], []), 1.0, 0), train_row(row([4, 4], [0, 0]), 1.0, 1)]
    loss = policy_loss(model, empty, row_weights(empty))
    assert (loss.value.item(), loss.tokens) == (0.0, 0)
    assert not gradient(model, [loss.value]).any()
    assert mean_metrics([loss]) == {}
    rows = two_trajectories(model)
    weights = row_weights([*rows, *empty])
    both = policy_loss(model, [*empty, *rows], np.roll(weights, 2))
    assert both.value.item() == pytest.approx(0.6, abs=1e-6)
    assert torch.isfinite(gradient(model, [both.value])).all()


def test_masked_places_are_never_read(model: Any) -> None:
    """NaN in the log-probability and the advantage of untrained tokens changes nothing."""
    rows = two_trajectories(model)
    spoilt = []
    for r in rows:
        holes = np.where(r.row.loss_mask, 0.0, np.nan)
        tokens = dataclasses.replace(r.row, logprobs=r.row.logprobs + holes)
        spoilt.append(dataclasses.replace(r, row=tokens, advantages_T=r.advantages_T + holes))
    weights = row_weights(rows)
    clean, dirty = (gradient(model, [policy_loss(model, r, weights).value]) for r in (rows, spoilt))
    assert torch.equal(clean, dirty)


@pytest.mark.parametrize("field", ["logprobs", "advantages"])
def test_a_nan_at_a_trained_place_stops_the_step(model: Any, field: str) -> None:
    """The message names the number that is wrong, the token and the row."""
    rows = two_trajectories(model)
    if field == "logprobs":
        rows[1].row.logprobs[5] = np.nan
    else:
        rows[1].advantages_T[5] = np.inf
    with pytest.raises(NumericsError, match=f"finite .*{field[:3]}.* at token 5 of row 1"):
        policy_loss(model, rows, row_weights(rows))


def test_a_broken_model_stops_the_step() -> None:
    """Weights that are not finite are noticed before a step is taken."""
    broken = made(qwen3)
    rows = two_trajectories(broken)
    with torch.no_grad():
        broken.model.norm.weight[0] = torch.nan
    with pytest.raises(NumericsError, match="new log-probabilities"):
        policy_loss(broken, rows, row_weights(rows))


def test_ratio_is_one_with_unchanged_weights(model: Any) -> None:
    """On-policy the ratio is 1, nothing is clipped, and the metrics say so."""
    rows = two_trajectories(model)
    metrics = mean_metrics([policy_loss(model, rows, row_weights(rows))])
    assert metrics["ratio"] == pytest.approx(1, abs=1e-5)
    assert (metrics["ratio_outside"], metrics["clipped"]) == (0, 0)
    assert metrics["kl_old"] == pytest.approx(0, abs=1e-6)
    assert 0 < metrics["entropy"] <= math.log(VOCABULARY)


def test_metrics_of_stale_rows(model: Any) -> None:
    """Rows sampled by another policy show in ratio, clip share and KL."""
    rows = two_trajectories(model)
    rows[1].row.logprobs[2] -= math.log(2)
    metrics = mean_metrics([policy_loss(model, rows, row_weights(rows))])
    assert metrics["ratio"] == pytest.approx(1.1, abs=1e-5)
    assert metrics["ratio_outside"] == pytest.approx(0.1)
    assert metrics["clipped"] == 0
    assert metrics["kl_old"] == pytest.approx((1 - math.log(2)) / 10, abs=1e-5)


def test_kl_term(model: Any) -> None:
    """Coefficient times the mean k3 is added to the loss; a missing reference is refused."""
    rows = two_trajectories(model)
    weights = row_weights(rows)
    shifted = [dataclasses.replace(r, ref_logprobs_T=r.row.logprobs - 0.5) for r in rows]
    loss = policy_loss(model, shifted, weights, kl_weight=0.1)
    k3 = math.exp(-0.5) - 1 + 0.5
    assert loss.value.item() == pytest.approx(0.6 + 0.1 * k3, abs=1e-5)
    assert mean_metrics([loss])["kl_ref"] == pytest.approx(k3, abs=1e-5)
    with pytest.raises(TokenError, match="reference log-probabilities in row 0"):
        policy_loss(model, rows, weights, kl_weight=0.1)


def test_loss_refuses(model: Any) -> None:
    """Weights and advantages must fit the rows."""
    rows = two_trajectories(model)
    with pytest.raises(TokenError, match="one weight per row"):
        policy_loss(model, rows, np.ones(1))
    rows[0] = dataclasses.replace(rows[0], advantages_T=np.ones(2))
    with pytest.raises(TokenError, match="expected 4 advantages in row 0, got 2"):
        policy_loss(model, rows, np.ones(2))


def test_a_step_moves_the_probabilities(model: Any) -> None:
    """Gradient descent makes tokens of advantage +1 likelier and those of -1 less likely."""
    model = made(qwen3, seed=3)
    rows = two_trajectories(model)
    policy_loss(model, rows, row_weights(rows)).value.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.05 * parameter.grad
    after = token_logprobs(model, [r.row for r in rows])
    change = after.logprobs.detach().numpy() - np.concatenate([r.row.logprobs[r.row.loss_mask] for r in rows])
    assert change[:2].sum() > 0
    assert change[2:].sum() < 0
