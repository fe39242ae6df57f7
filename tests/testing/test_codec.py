"""ToyCodec: ids that can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.protocols import Codec
from prover.testing import ToyCodec


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("a", [1]),
        ("b", [2]),
        ("ab", [3]),
        ("ba", [2, 1]),
        ("aab abc", [1, 3, 5, 3, 4]),
        ("\0", [6]),  # the first character that is not named
        ("é", [130 + 0xC3 - 0x80, 130 + 0xA9 - 0x80]),
    ],
)
def test_ids_are_the_longest_matches(text: str, ids: list[int]) -> None:
    """The vocabulary is eos=0, a=1, b=2, ab=3, c=4, blank=5, the rest of ASCII, then bytes."""
    assert ToyCodec().encode(text) == ids


@given(st.text(st.characters()))
def test_every_text_survives(text: str) -> None:
    """Decoding what was encoded gives the text back, lone surrogates too, with ids inside the vocabulary."""
    codec = ToyCodec()
    ids = codec.action(text)
    assert codec.decode(ids) == text
    assert all(0 <= token < 258 == codec.vocab_size for token in ids)
    assert [token for token in ids if token in codec.eos_ids] == [0]


@given(st.lists(st.integers(0, 257)))
def test_decoding_is_total(ids: list[int]) -> None:
    """Any ids have a text."""
    assert isinstance(ToyCodec().decode(ids), str)


def test_two_ways_to_sample_one_text() -> None:
    """The ids [1, 2] and [3] both say ``ab``."""
    assert ToyCodec().decode([1, 2]) == ToyCodec().decode([3, 0]) == "ab"


def test_a_conversation_is_written_with_lines_and_a_mark() -> None:
    """Opening and replies end with the mark after which the policy writes; a cut reply is closed first."""
    codec = ToyCodec()
    assert isinstance(codec, Codec)
    assert codec.decode(codec.opening("", "c")) == "c\n>"
    assert codec.decode(codec.opening("be brief", "c")) == "be brief\nc\n>"
    assert codec.reply("c", closed=True) == codec.encode("\nc\n>")
    assert codec.reply("c", closed=False) == [0, *codec.encode("\nc\n>")]
