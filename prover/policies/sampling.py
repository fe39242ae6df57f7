"""How tokens are drawn from logits."""

import numpy as np
from numpy.typing import NDArray

from prover.errors import NumericsError


def draw(
    logits: NDArray[np.float32], uniforms: NDArray[np.float64], temperatures: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw one column per row by inverting the cumulative distribution, in float64.

    Each row is drawn for itself: what else is in the batch matters only as far as it moves the fp32 logits (about 1e-6
    between batch shapes), and a draw changes only if its uniform number lies that close to a step of the cumulative
    distribution.

    Args:
        logits: Shape (N, V). To restrict a draw, pass the columns that are allowed: they are renormalised.
        uniforms: Numbers in [0, 1) that decide, shape (N,).
        temperatures: Divide the logits, shape (N,); 0 takes the largest, the limit of the distribution for T -> 0.

    Returns:
        Columns and their log-probabilities under the distributions they were drawn from, shape (N,) each: the
        log-softmax of ``logits / temperature``, and 0 for temperature 0, where all mass is on one column.

    Raises:
        NumericsError: The logits of a row are no distribution (NaN, infinite, or nothing is allowed).
    """
    greedy = temperatures == 0.0
    scores = logits / np.where(greedy, 1.0, temperatures)[:, None]
    largest = scores.max(axis=1)
    if not np.isfinite(largest).all():
        raise NumericsError(
            f"expected logits with a finite maximum, got {largest[~np.isfinite(largest)][0]} in "
            f"{int((~np.isfinite(largest)).sum())} of {len(largest)} rows; if the weights are not finite any more, go "
            "back to an earlier checkpoint"
        )
    scores -= largest[:, None]
    cumulative = np.exp(scores).cumsum(axis=1)
    total = cumulative[:, -1]
    # The first step above the target: a column of probability 0 adds no step and cannot be hit. Rounding may lift the
    # target to the total itself; the last real step then takes it.
    target = np.minimum(uniforms * total, np.nextafter(total, 0.0))
    columns = np.where(greedy, scores.argmax(axis=1), (cumulative <= target[:, None]).sum(axis=1))
    logprobs = scores[np.arange(len(scores)), columns] - np.log(total)
    return columns, np.where(greedy, 0.0, logprobs)
