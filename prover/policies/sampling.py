"""How one token is drawn from one row of logits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def draw(
    logits: NDArray[np.float32], uniform: float, temperature: float, allowed: Sequence[int] | None = None
) -> tuple[int, float]:
    """Draw a token by inverting the cumulative distribution, in float64.

    The result is a function of these arguments alone, so a reply depends on the batch only as far as the fp32 logits do
    (about 1e-6 between batch shapes): the id differs only if ``uniform`` lies that close to a step of the cumulative
    distribution.

    Args:
        logits: Raw logits of one position, shape (V,).
        uniform: Number in [0, 1) that decides.
        temperature: Divides the logits; 0 takes the largest, the limit of the distribution for T -> 0.
        allowed: Ids that may be drawn, renormalised among themselves; None for the whole vocabulary.

    Returns:
        The id and its log-probability under the distribution that it was drawn from: the log-softmax of
        ``logits / temperature`` over the allowed ids (0 for temperature 0, where all mass is on one id).
    """
    scores = (logits if allowed is None else logits[np.asarray(allowed)]).astype(np.float64)
    if temperature == 0.0:
        index, logprob = int(scores.argmax()), 0.0
    else:
        scores /= temperature
        scores -= scores.max()
        cumulative = np.exp(scores).cumsum()
        total = cumulative[-1]
        # The first step above the target: an id of probability 0 adds no step and cannot be hit. Rounding may lift the
        # target to the total itself; the last real step then takes it.
        index = int(np.searchsorted(cumulative, min(uniform * total, np.nextafter(total, 0.0)), side="right"))
        logprob = float(scores[index] - np.log(total))
    return (index if allowed is None else int(allowed[index])), logprob
