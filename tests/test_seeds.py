"""Seeds: repeatable, and apart from each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prover.seeds import derive, generator

PATHS = st.lists(st.integers(0, 2**31), max_size=4).map(tuple)


@given(seed=st.integers(0, 2**63 - 1), path=PATHS)
def test_seeds_have_63_bits(seed: int, path: tuple[int, ...]) -> None:
    """A derived seed is a valid seed itself, everywhere."""
    found = derive(seed, *path)
    assert 0 <= found < 2**63
    assert derive(seed, *path) == found
    assert 0 <= derive(found, 1) < 2**63


def test_places_of_a_run_have_different_seeds() -> None:
    """No two of 40,000 places and their prefixes share a seed, whether derived at once or step by step."""
    run = 7
    places = [(step, group, member) for step in range(20) for group in range(40) for member in range(40)]
    at_once = [derive(run, *place) for place in places]
    nested = [derive(derive(run, step), group, member) for step, group, member in places[:8000]]
    prefixes = [derive(run, step) for step in range(20)]
    seeds = [*at_once, *nested, *prefixes, derive(run)]
    assert len(set(seeds)) == len(seeds)


def test_bits_of_seeds_are_balanced() -> None:
    """Each of the 63 bits is set in about half of 4,000 seeds."""
    seeds = [derive(0, place) for place in range(4000)]
    shares = [sum(seed >> bit & 1 for seed in seeds) / 4000 for bit in range(63)]
    assert min(shares) > 0.45
    assert max(shares) < 0.55


def test_generators_are_their_own() -> None:
    """Equal places draw equal numbers, other places others, and numpy's global generator is left alone."""
    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # the state is a tuple
    assert generator(0, 1).random() == generator(0, 1).random()
    assert len({generator(*place).random() for place in [(0,), (1,), (0, 0), (0, 1), (0, 0, 0)]}) == 5
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # as above
