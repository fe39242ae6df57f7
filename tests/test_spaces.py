"""UnicodeText: any text with a length bound."""

import pickle

import gymnasium
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.errors import ConfigError
from prover.spaces import UnicodeText


@pytest.mark.parametrize("text", ["", " ", "go to shelf 1", "größe 日本語 🗝", "\ud800", "\0", "x" * 100_000])
def test_any_text_belongs(text: str) -> None:
    """Blank, empty, any script, lone surrogates and control characters are members."""
    assert text in UnicodeText()


@given(st.text(st.characters()))
def test_every_string_within_the_bound_belongs(text: str) -> None:
    """Membership is a matter of length alone."""
    assert (text in UnicodeText(max_length=8)) == (len(text) <= 8)


@pytest.mark.parametrize("value", [None, 7, b"look", ["look"], "x" * 100_001])
def test_other_values_do_not_belong(value: object) -> None:
    """Anything but a str, and a str past the bound, is refused."""
    assert value not in UnicodeText()


def test_samples_are_seeded_readable_members() -> None:
    """The same seed gives the same texts, all of them members, printable and valid UTF-8; lengths and texts vary."""
    one, two = UnicodeText(seed=5), UnicodeText()
    two.seed(5)
    texts = [one.sample() for _ in range(50)]
    assert texts == [two.sample() for _ in range(50)]
    assert all(text in one and text.replace("\n", "").isprintable() for text in texts)
    assert "".join(texts).encode().decode() == "".join(texts)
    assert len({len(text) for text in texts}) > 10
    assert not "".join(texts).isascii()


def test_samples_keep_a_short_bound() -> None:
    """With a bound of one character, samples are empty or one character long."""
    space = UnicodeText(max_length=1, seed=0)
    assert {len(space.sample()) for _ in range(20)} == {0, 1}


def test_masks_are_refused() -> None:
    """The space has no probabilities to mask."""
    with pytest.raises(ConfigError, match="neither mask nor probability"):
        UnicodeText().sample(mask=[1])


def test_an_empty_bound_is_refused() -> None:
    """A space without any text but the empty one is a mistake."""
    with pytest.raises(ConfigError, match="got 0"):
        UnicodeText(max_length=0)


def test_equality_hash_and_repr_follow_the_bound() -> None:
    """Two spaces are equal when their bounds are; the repr shows it."""
    assert UnicodeText(9) == UnicodeText(9) != UnicodeText(8)
    assert UnicodeText(9) != gymnasium.spaces.Text(9)
    assert len({UnicodeText(9), UnicodeText(9), UnicodeText(8)}) == 2
    assert repr(UnicodeText(9)) == "UnicodeText(max_length=9)"


def test_pickling_keeps_bound_and_generator() -> None:
    """A copy goes on with the same samples."""
    space = UnicodeText(50, seed=1)
    space.sample()
    copy = pickle.loads(pickle.dumps(space))
    assert copy == space
    assert copy.sample() == space.sample()


def test_it_does_not_flatten() -> None:
    """Text becomes no array."""
    assert not UnicodeText().is_np_flattenable
