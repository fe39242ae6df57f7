"""One policy update: mini-batches of trajectories, micro-batches within them, AdamW."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from prover.config import OptimConfig
from prover.errors import NumericsError
from prover.objective import Loss, TrainRow, mean_metrics, policy_loss, row_weights, token_logprobs
from prover.seeds import generator


class PolicyUpdate:
    """Trains a model in place on the rows of one update after another.

    Args:
        model: a Hugging Face causal language model.
        config: learning rate, clipping, aggregation, KL, mini- and micro-batches.
        horizon: most tokens that a trajectory can sample; the constant length of ``dr_grpo``.
        reference: what the KL term is measured against; ``model`` as it is now when left out. A copy is kept.
    """

    def __init__(self, model: Any, config: OptimConfig, *, horizon: int, reference: Any = None) -> None:
        self.model = model
        self.config = config
        self.horizon = horizon
        self.names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self._parameters, lr=config.lr, betas=config.betas, weight_decay=config.weight_decay
        )
        start = model if reference is None else reference
        self._reference = copy.deepcopy(start).eval() if config.kl > 0 else None

    def step(self, rows: Sequence[TrainRow], *, seed: int) -> dict[str, float | None]:
        """Optimize on the rows of one update; returns means over the trained tokens and the gradient's norm.

        Means are None when nothing was trained.

        Trajectories are drawn into mini-batches from ``seed``. How a mini-batch is cut into micro-batches changes
        memory and speed, never its loss: every token's weight is fixed by the whole mini-batch.

        Raises:
            NumericsError: a number at a trained token or the gradient is not finite; that step is not taken.
        """
        config, losses, norms = self.config, list[Loss](), list[float]()
        if self._reference is not None:
            rows = self._with_reference(rows)
        for epoch in range(config.epochs):
            for minibatch in self._minibatches(rows, generator(seed, epoch)):
                found = self.accumulate(minibatch)
                losses += found
                if any(loss.tokens for loss in found):
                    norms.append(float(torch.nn.utils.clip_grad_norm_(self._parameters, config.grad_clip)))
                    if not math.isfinite(norms[-1]):
                        raise NumericsError(
                            f"expected a finite gradient, got one of norm {norms[-1]}; the step was not taken, lower "
                            "optim.lr or look for extreme advantages"
                        )
                    self.optimizer.step()
                self.optimizer.zero_grad()
        return {
            **dict.fromkeys(("ratio", "ratio_outside", "clipped", "kl_old", "entropy")),
            **mean_metrics(losses),
            "loss": sum(float(loss.value) for loss in losses) / max(1, len(norms)),
            "gradient_norm": float(np.mean(norms)) if norms else 0.0,
            "trained_tokens": sum(loss.tokens for loss in losses),
        }

    def accumulate(self, minibatch: Sequence[TrainRow]) -> list[Loss]:
        """Add the gradient of a mini-batch to that of the parameters; takes no step.

        Rows that cannot move the policy cost no forward pass.

        Raises:
            NumericsError: a number at a trained token is not finite.
        """
        config = self.config
        weights = row_weights(minibatch, config.aggregation, horizon=self.horizon)
        pairs = [
            (row, float(weight))
            for row, weight in zip(minibatch, weights, strict=True)
            if row.row.loss_mask.any() and (config.kl > 0 or np.any(row.advantages_T[row.row.loss_mask]))
        ]
        # Rows of like length share a micro-batch, so that little of it is padding.
        pairs.sort(key=lambda pair: len(pair[0].row))
        losses = []
        for start in range(0, len(pairs), config.microbatch):
            part = pairs[start : start + config.microbatch]
            loss = policy_loss(
                self.model,
                [row for row, _ in part],
                np.array([weight for _, weight in part]),
                clip_low=config.clip_low,
                clip_high=config.clip_high,
                dual_clip=config.dual_clip,
                kl_weight=config.kl,
            )
            loss.value.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            losses.append(replace(loss, value=loss.value.detach()))
        return losses

    def _minibatches(self, rows: Sequence[TrainRow], rng: np.random.Generator) -> Iterator[list[TrainRow]]:
        """All rows once, in mini-batches of whole trajectories; the last one may be smaller when members were lost.

        Continuations are dealt out over the mini-batches of the rollouts and make none of their own.
        """
        if self.config.minibatch is None:
            yield list(rows)
            return
        rollouts = sorted({row.trajectory for row in rows if not row.continued})
        continuations = sorted({row.trajectory for row in rows if row.continued})
        order, deal = rng.permutation(len(rollouts)), rng.permutation(len(continuations))
        starts = range(0, len(order), self.config.minibatch)
        for number, start in enumerate(starts):
            chosen = {rollouts[index] for index in order[start : start + self.config.minibatch]}
            chosen |= {continuations[index] for index in deal[number :: len(starts)]}
            yield [row for row in rows if row.trajectory in chosen]

    def _with_reference(self, rows: Sequence[TrainRow]) -> list[TrainRow]:
        """The rows with log-probabilities under the model that the run started from."""
        found = []
        for start in range(0, len(rows), self.config.microbatch):
            part = rows[start : start + self.config.microbatch]
            with torch.no_grad():
                scored = token_logprobs(self._reference, [row.row for row in part])
            logprobs = scored.logprobs.double().cpu().numpy()
            for index, row in enumerate(part):
                reference = np.zeros(len(row.row))
                mine = scored.row == index
                reference[scored.place[mine]] = logprobs[mine]
                found.append(replace(row, ref_logprobs_T=reference))
        return found
