"""The gradient of training's own objective on some rows, in a form that can be kept.

Tiny models are kept whole; of others a count sketch is (Charikar, Chen and Farach-Colton, 2002; arXiv 0902.2206): each
parameter is added, with a random sign, to a random one of ``SIZE`` places. Inner products of sketches have those of the
gradients as their mean and, relative to the norms, a standard error of 1 / sqrt(SIZE), 0.4%.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prover.objective import TrainRow
from prover.seeds import generator
from prover.update import PolicyUpdate

SIZE = 1 << 16
"""Numbers that are kept of a gradient at most."""
_SEED = 0xC0DE
"""Of the places and signs; one for all gradients that are ever compared."""


def gradient(update: PolicyUpdate, rows: Sequence[TrainRow], size: int = SIZE) -> NDArray[np.float32]:
    """Minus the gradient of the loss on all rows as one mini-batch, the direction of a step; shape (at most size,).

    It is what ``PolicyUpdate`` accumulates before its first step: the clipped surrogate at the weights that sampled the
    rows, where every ratio is 1. There it is linear in the advantages, so that gradients of differences of advantages
    can be added and scaled.

    Args:
        update: Holds the model; no step is taken.
        rows: All rows of a batch. Those whose advantages are 0 count in the weights of the tokens and cost nothing.
        size: Numbers to keep.

    Raises:
        NumericsError: a number at a trained token is not finite.
    """
    parameters = [parameter for parameter in update.model.parameters() if parameter.requires_grad]
    update.optimizer.zero_grad()
    update.accumulate(rows)
    found = sketch([_numbers(parameter) for parameter in parameters], size)
    update.optimizer.zero_grad()
    return -found


def sketch(parts: Sequence[NDArray[np.float32]], size: int) -> NDArray[np.float32]:
    """The parts in a row where they have no more than ``size`` numbers, else their count sketch, shape (size,)."""
    if sum(part.size for part in parts) <= size:
        return np.concatenate(parts)
    total = np.zeros(size)
    for number, part in enumerate(parts):  # One at a time, so that memory does not grow with the model.
        drawn = generator(_SEED, number).integers(2 * size, size=part.size, dtype=np.uint32)
        signs = 1.0 - 2.0 * (drawn & 1)
        total += np.bincount(drawn >> 1, weights=signs * part, minlength=size)
    return total.astype(np.float32)


def _numbers(parameter: Any) -> NDArray[np.float32]:
    """The parameter's gradient, flat; zeros where nothing has reached it."""
    if parameter.grad is None:
        return np.zeros(parameter.numel(), np.float32)
    flat: NDArray[np.float32] = parameter.grad.detach().float().cpu().numpy().ravel()
    return flat
