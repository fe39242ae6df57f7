"""Where all randomness comes from: integers derived from the run's seed and a path of indices.

No global generator is read or set anywhere in ProVer.
"""

import numpy as np


def derive(seed: int, *path: int) -> int:
    """A 63-bit seed for one place in a run, e.g. ``derive(run_seed, step, group, member, turn)``.

    Distinct paths give independent seeds (``numpy.random.SeedSequence`` spawn keys).

    >>> derive(0, 1, 2) == derive(0, 1, 2), derive(0, 1, 2) == derive(0, 2, 1)
    (True, False)
    """
    words = np.random.SeedSequence(seed, spawn_key=path).generate_state(2, np.uint32)
    return (int(words[0]) << 31) ^ int(words[1])


def generator(seed: int, *path: int) -> np.random.Generator:
    """A generator of its own for one place in a run."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))
