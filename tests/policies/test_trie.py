"""Tests of the trie of choices."""

import pytest

from prover.errors import TokenError
from prover.policies.trie import choice_trie

EOS = frozenset({0})


def test_children_follow_the_choices() -> None:
    """Each node offers the ids by which some choice goes on, sorted."""
    root = choice_trie(((7, 3, 0), (7, 2, 0), (5, 0)), EOS)
    assert root.ids == (5, 7)
    assert root.child(7).ids == (2, 3)
    assert root.child(7).child(2).ids == (0,)
    assert root.child(5).child(0).ids == ()


def test_depth_is_the_longest_choice() -> None:
    """The root knows how many tokens a reply may take."""
    assert choice_trie(((7, 3, 0), (5, 0)), EOS).depth == 3


def test_equal_choices_share_one_trie() -> None:
    """The same choices come back every few turns and are built once."""
    assert choice_trie(((9, 0), (8, 0)), EOS) is choice_trie(((9, 0), (8, 0)), EOS)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ((), "at least one choice"),
        (((),), "one end token"),
        (((5, 6),), "one end token"),
        (((5, 0), (0, 5, 0)), "one end token"),
    ],
)
def test_choices_without_a_proper_end_are_refused(choices: tuple[tuple[int, ...], ...], message: str) -> None:
    """A choice has exactly one end token, at its end, so that no choice begins another."""
    with pytest.raises(TokenError, match=message):
        choice_trie(choices, EOS)
