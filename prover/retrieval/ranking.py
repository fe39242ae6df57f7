"""The best of many scores."""

import numpy as np
from numpy.typing import NDArray


def best(scores: NDArray[np.float32], k: int, *, above: float = -np.inf) -> NDArray[np.intp]:
    """Places of the ``k`` highest scores above a bound, best first; equal scores in the order of their places.

    Args:
        scores: Scores, shape (N,).
        k: How many at most.
        above: A score must be higher than this.

    >>> best(np.array([1, 3, 0, 3, 2], dtype=np.float32), 3, above=0)
    array([1, 3, 4])
    """
    found = np.flatnonzero(scores > above)
    of_found = scores[found]
    if len(found) > k:
        # All that tie with the k-th stay, so that places decide among them, and not the partition.
        bound = np.partition(of_found, len(found) - k)[len(found) - k]
        found, of_found = found[of_found >= bound], of_found[of_found >= bound]
    return found[np.argsort(-of_found, kind="stable")[:k]]
