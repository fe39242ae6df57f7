"""Gradients of the objective, whole and sketched."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from prover.config import OptimConfig
from prover.diagnosis.gradients import gradient, sketch
from prover.objective import TrainRow
from prover.records import TokenRow
from prover.update import PolicyUpdate


class TwoParameters(torch.nn.Module):
    """A language model of two words whose logits are its two parameters, whatever came before."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor([np.log(3.0), 0.0], dtype=torch.float32))
        self.config = SimpleNamespace()
        self.base_model = self

    def get_output_embeddings(self) -> None:
        return None

    def forward(self, input_ids: torch.Tensor, logits_to_keep: torch.Tensor, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(logits=self.logits.expand(len(input_ids), len(logits_to_keep), 2))


def row(word: int, advantage: float, trajectory: int) -> TrainRow:
    """A prompt of one token and one sampled word, of probability 3/4 or 1/4."""
    tokens = TokenRow(
        ids=np.array([0, word]),
        turn_of_token=np.array([-1, 0]),
        loss_mask=np.array([False, True]),
        logprobs=np.array([0.0, np.log([0.75, 0.25][word])]),
        support=(None, None),
    )
    return TrainRow(row=tokens, advantages_T=np.array([0.0, advantage]), trajectory=trajectory)


@pytest.fixture
def update() -> PolicyUpdate:
    """Of the model with two parameters."""
    return PolicyUpdate(TwoParameters(), OptimConfig(), horizon=4)


def test_the_gradient_is_that_of_the_objective(update: PolicyUpdate) -> None:
    """Log-probabilities of words 0 and 1 have gradients (1/4, -1/4) and (-3/4, 3/4); advantages 2 and -1, mean of two.

    (2 (1/4, -1/4) - (-3/4, 3/4)) / 2 = (5/8, -5/8).
    """
    assert gradient(update, [row(0, 2.0, 0), row(1, -1.0, 1)]).tolist() == pytest.approx([0.625, -0.625], abs=1e-6)


def test_rows_without_an_advantage_count_in_the_mean(update: PolicyUpdate) -> None:
    """Three tokens share the weight, though two of them have no gradient: 2 (1/4, -1/4) / 3."""
    rows = [row(0, 2.0, 0), row(1, 0.0, 1), row(1, 0.0, 2)]
    assert gradient(update, rows).tolist() == pytest.approx([1 / 6, -1 / 6], abs=1e-6)


def test_the_gradient_is_linear_in_the_advantages(update: PolicyUpdate) -> None:
    """GRPO's rows plus four times a credit's are the gradient of both at once."""
    base, credit = [row(0, 0.75, 0), row(1, -0.25, 1)], [row(0, 0.5, 0), row(1, 0.0, 1)]
    both = [row(0, 0.75 + 4 * 0.5, 0), row(1, -0.25, 1)]
    added = gradient(update, base) + 4 * gradient(update, credit)
    assert gradient(update, both).tolist() == pytest.approx(added.tolist(), abs=1e-6)


def test_no_step_is_taken_and_nothing_is_left(update: PolicyUpdate) -> None:
    """Parameters are as before, and one gradient does not reach into the next."""
    before = update.model.logits.detach().clone()
    first = gradient(update, [row(0, 1.0, 0)])
    assert torch.equal(update.model.logits, before)
    assert gradient(update, [row(0, 1.0, 0)]).tolist() == first.tolist()
    assert gradient(update, [row(0, 0.0, 0)]).tolist() == [0.0, 0.0]


def test_small_gradients_are_kept_whole() -> None:
    """Parts in a row, as long as there is room."""
    parts = [np.array([1.0, 2.0], np.float32), np.array([3.0], np.float32)]
    assert sketch(parts, 3).tolist() == [1, 2, 3]


def test_sketches_keep_inner_products() -> None:
    """Of 20,000 numbers in 4,096 places: within four standard errors, 4 / 64, of the product of the norms."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=20_000)
    pair = [(common + rng.normal(size=20_000)).astype(np.float32) for _ in range(2)]
    first, second = (sketch([vector[:5000], vector[5000:]], 4096) for vector in pair)
    norms = float(np.linalg.norm(pair[0]) * np.linalg.norm(pair[1]))
    assert first.shape == (4096,)
    assert float(first @ second) / norms == pytest.approx(float(pair[0] @ pair[1]) / norms, abs=4 / 64)


def test_sketches_are_linear() -> None:
    """The sketch of a sum is the sum of the sketches, so that parts can be added after they were sketched."""
    rng = np.random.default_rng(1)
    pair = [rng.normal(size=300).astype(np.float32) for _ in range(2)]
    together = sketch([pair[0] + 4 * pair[1]], 64)
    assert together.tolist() == pytest.approx((sketch([pair[0]], 64) + 4 * sketch([pair[1]], 64)).tolist(), abs=1e-4)
