"""The best of many scores."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prover.retrieval.ranking import best

SCORES = st.lists(st.integers(0, 5), max_size=40)


@given(scores=SCORES, k=st.integers(1, 50))
def test_the_best_come_first_and_ties_in_their_order(scores: list[int], k: int) -> None:
    """The same as sorting everything by score and place."""
    wanted = sorted((-score, place) for place, score in enumerate(scores) if score > 0)[:k]
    found = best(np.array(scores, dtype=np.float32), k, above=0)
    assert list(found) == [place for _, place in wanted]


@given(scores=SCORES, k=st.integers(1, 50))
def test_without_a_bound_all_count(scores: list[int], k: int) -> None:
    """Scores of zero and below are found too."""
    assert len(best(np.array(scores, dtype=np.float32) - 3, k)) == min(k, len(scores))
