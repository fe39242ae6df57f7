"""Word boundaries."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.envs.webshop.wordbreak import MAX_LENGTH, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" -- / ()", []),
        ("well-known t-shirt", ["well", "known", "t", "shirt"]),
        ("size:small", ["size:small"]),
        ("size: small", ["size", "small"]),
        ("3.5 1,000 2;3 a,b", ["3.5", "1,000", "2;3", "a", "b"]),
        ("women's 'quoted' can't.", ["women's", "quoted", "can't"]),
        ("e.g. www.shop.com", ["e.g", "www.shop.com"]),
        ("foo_bar _x_ __", ["foo_bar", "_x_"]),
        ("12x16 4k", ["12x16", "4k"]),
        ("東京タワー", ["東", "京", "タワー"]),
        ("ひらがな", ["ひ", "ら", "が", "な"]),
        ("한국어 제품", ["한국어", "제품"]),
        ("ภาษาไทย x", ["ภาษาไทย", "x"]),
        ("★new★ ❤️ 👍🏽 ©", ["★", "new", "★", "❤️", "👍🏽", "©"]),
        ("👨\u200d💼x", ["👨\u200d💼", "x"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("#\u20e3 #1", ["#\u20e3", "1"]),
        ("ש\"ש ש'", ['ש"ש', "ש'"]),
        ("cafe\u0301s", ["cafe\u0301s"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    """Words begin and end where UAX #29 and UTS #51 say."""
    assert words(text) == expected


def test_long_words_are_cut() -> None:
    """A word of 600 letters comes in pieces of 255, 255 and 90."""
    assert list(map(len, words("x" * 600))) == [MAX_LENGTH, MAX_LENGTH, 90]


def test_runs_that_are_no_words() -> None:
    """Characters that join words are passed over where there are none, however many there are."""
    assert words("_" * 50_000 + " a_ __b__ _\u0301_ _\u200d\U0001f44d") == ["a_", "__b__", "\u200d\U0001f44d"]


@given(st.text())
def test_any_text(text: str) -> None:
    """Words are parts of the text, in order, and hold all its letters and digits."""
    at, found = 0, words(text)
    for word in found:
        at = text.index(word, at) + len(word)
    kept = "".join(found)
    for letter in text:
        if unicodedata.category(letter) in ("Lu", "Ll", "Nd"):
            assert letter in kept
