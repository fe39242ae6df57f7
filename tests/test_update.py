"""The policy update on a tiny real model."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prover.config import OptimConfig
from prover.errors import NumericsError
from prover.objective import TrainRow
from prover.policies.hf import HFPolicy
from prover.records import TokenRow
from prover.update import PolicyUpdate


def train_row(trajectory: int, policy_tokens: int, advantage: float, *, trained: bool = True) -> TrainRow:
    """A prompt of two tokens, then ``policy_tokens`` sampled ones of one turn."""
    length = 2 + policy_tokens
    sampled = np.arange(length) >= 2
    row = TokenRow(
        ids=np.arange(3, 3 + length, dtype=np.int64) % 7 + 3,
        turn_of_token=np.where(sampled, 0, -1),
        loss_mask=sampled & trained,
        logprobs=np.where(sampled, -2.0, 0.0),
        support=(None,) * length,
    )
    return TrainRow(row=row, advantages_T=np.where(row.loss_mask, advantage, 0.0), trajectory=trajectory)


@pytest.fixture
def model(line_policy: Path) -> Any:
    """A fresh copy of the tiny model."""
    return HFPolicy.load(line_policy).model


def step(model: Any, rows: Sequence[TrainRow], **options: Any) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    """Statistics and the change of every weight after one update with plain gradient steps' worth of AdamW."""
    before = copy.deepcopy(model.state_dict())
    update = PolicyUpdate(model, OptimConfig(**options), horizon=16)
    statistics = update.step(rows, seed=0)
    return statistics, {name: value - before[name] for name, value in model.state_dict().items()}


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "dr_grpo"])
def test_microbatches_change_no_result(line_policy: Path, aggregation: str) -> None:
    """One batch or eight micro-batches: the same loss, and gradients equal up to rounding."""
    rows = [train_row(0, 2, 1.0), train_row(1, 8, -1.0), train_row(2, 3, 0.5), train_row(2, 5, 0.5)]
    norms, losses = [], []
    for microbatch in (4, 1):
        statistics, _ = step(HFPolicy.load(line_policy).model, rows, microbatch=microbatch, aggregation=aggregation)
        norms.append(statistics["gradient_norm"])
        losses.append(statistics["loss"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_rows_without_advantage_move_nothing(model: Any) -> None:
    """An update without contrast takes no optimizer step, and its loss is finite."""
    statistics, change = step(model, [train_row(0, 3, 0.0), train_row(1, 4, 0.0)])
    assert all(not torch.any(value) for value in change.values())
    assert statistics["loss"] == 0.0
    assert statistics["trained_tokens"] == 0


def test_masked_rows_count_in_no_denominator(line_policy: Path) -> None:
    """A row whose reply is masked changes neither the gradient nor the denominators."""
    rows = [train_row(0, 2, 1.0), train_row(1, 8, -1.0)]
    alone, _ = step(HFPolicy.load(line_policy).model, rows)
    beside, _ = step(HFPolicy.load(line_policy).model, [*rows, train_row(2, 5, 1.0, trained=False)])
    assert beside["gradient_norm"] == alone["gradient_norm"]


def test_a_positive_advantage_makes_its_tokens_likelier(model: Any) -> None:
    """After a step the tokens of a praised row have a higher log-probability."""
    from prover.objective import token_logprobs

    row = train_row(0, 4, 1.0)
    before = token_logprobs(model, [row.row]).logprobs.sum()
    # Old log-probabilities of the row as they are, so that nothing is clipped away.
    logprobs = np.zeros(len(row.row))
    logprobs[row.row.loss_mask] = token_logprobs(model, [row.row]).logprobs.detach().double().numpy()
    current = TokenRow(
        ids=row.row.ids,
        turn_of_token=row.row.turn_of_token,
        loss_mask=row.row.loss_mask,
        logprobs=logprobs,
        support=row.row.support,
    )
    step(model, [TrainRow(row=current, advantages_T=row.advantages_T, trajectory=0)])
    assert token_logprobs(model, [row.row]).logprobs.sum() > before


def test_minibatches_keep_trajectories_whole(model: Any) -> None:
    """Mini-batches of two trajectories: three optimizer steps for five of them, each row in exactly one."""
    rows = [train_row(index // 2, 2, 1.0) for index in range(10)]
    update = PolicyUpdate(model, OptimConfig(minibatch=2), horizon=16)
    parts = list(update._minibatches(rows, np.random.default_rng(0)))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sorted(id(row) for part in parts for row in part) == sorted(id(row) for row in rows)
    for part in parts:
        assert all(sum(other.trajectory == row.trajectory for other in part) == 2 for row in part)


def test_continuations_are_dealt_out_over_the_steps_of_the_rollouts(model: Any) -> None:
    """Four rollouts in mini-batches of two, and five continuations of two rows: two steps, with two and three."""
    rollouts = [train_row(index, 2, 1.0) for index in range(4)]
    played = [replace(train_row(4 + index // 2, 2, 1.0), continued=True) for index in range(10)]
    update = PolicyUpdate(model, OptimConfig(minibatch=2), horizon=16)
    parts = list(update._minibatches([*rollouts, *played], np.random.default_rng(0)))
    assert [sum(not row.continued for row in part) for part in parts] == [2, 2]
    assert sorted(sum(row.continued for row in part) for part in parts) == [4, 6]
    assert sorted(id(row) for part in parts for row in part) == sorted(id(row) for row in [*rollouts, *played])
    without = list(update._minibatches(rollouts, np.random.default_rng(0)))
    assert [[row for row in part if not row.continued] for part in parts] == without


def test_a_continuation_teaches_by_what_it_sampled_alone(model: Any) -> None:
    """Its gradient is that of -A/n times the sum of the log-probabilities of its n new tokens, whatever came before."""
    ids = [3, 4, 5, 6, 7, 8, 9]
    logits = model(torch.tensor([ids])).logits[0, :-1]
    logp = torch.log_softmax(logits, dim=-1)[range(6), ids[1:]]
    # Ids 5 and 6 are sampled ones of the episode that was branched from; new are 8 and 9, the last two.
    (-0.75 / 2 * (logp[4] + logp[5])).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    new = np.arange(7) >= 5
    row = TokenRow(
        ids=np.array(ids),
        turn_of_token=np.where(new, 4, -1),
        loss_mask=new,
        logprobs=np.array([0.0] * 5 + logp[4:].tolist()),
        support=(None,) * 7,
    )
    # An advantage at tokens before the branching state would be read nowhere.
    continued = TrainRow(row=row, advantages_T=np.full(7, 0.75), trajectory=0, continued=True)
    PolicyUpdate(model, OptimConfig(), horizon=16).accumulate([continued])
    assert any(bool(torch.any(grad)) for grad in expected.values())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-7)


def test_the_kl_term_is_zero_at_the_starting_policy(line_policy: Path) -> None:
    """Before the first step the policy is its own reference, so the divergence is 0; after training it is not."""
    model = HFPolicy.load(line_policy).model
    update = PolicyUpdate(model, OptimConfig(kl=0.1, lr=1e-2), horizon=16)
    rows = [train_row(0, 3, 1.0), train_row(1, 3, -1.0)]
    assert update.step(rows, seed=0)["kl_ref"] == pytest.approx(0.0, abs=1e-6)
    assert update.step(rows, seed=1)["kl_ref"] > 1e-5


def test_the_kl_reference_can_be_given(line_policy: Path) -> None:
    """A resumed run measures the divergence from the policy that it began with: not 0 for other weights."""
    model, start = HFPolicy.load(line_policy).model, HFPolicy.load(line_policy).model
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    update = PolicyUpdate(model, OptimConfig(kl=0.1), horizon=16, reference=start)
    assert update.step([train_row(0, 3, 1.0)], seed=0)["kl_ref"] > 1e-6


def test_a_gradient_that_is_not_finite_is_not_stepped_along(model: Any) -> None:
    """A gradient that overflows stops the run, and the weights stay as they were."""
    before = copy.deepcopy(model.state_dict())
    update = PolicyUpdate(model, OptimConfig(), horizon=16)
    next(model.parameters()).register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(NumericsError, match="expected a finite gradient, got one of norm"):
        update.step([train_row(0, 3, 1.0)], seed=0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
