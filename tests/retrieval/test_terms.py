"""What of a text can be searched for."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.retrieval.terms import terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("A b c 7", []),
        ("The of AND such", []),
        ("Bridges, BRIDGE bridging", ["bridg", "bridg", "bridg"]),
        ("relational ponies caresses", ["relat", "poni", "caress"]),
        ("1914-1918 x2", ["1914", "1918", "x2"]),
        ("Zürich naïve 東京 Ελλάδα", ["zürich", "naïv", "東京", "ελλάδα"]),
        ("it's O'Hara's", ["hara"]),
    ],
)
def test_words_become_terms(text: str, expected: list[str]) -> None:
    """Case, stop words, single characters and endings go, in all scripts; the order stays."""
    assert terms(text) == expected


@given(text=st.text(st.characters(codec=None)))
def test_any_text_has_terms(text: str) -> None:
    """None of which is empty."""
    assert all(terms(text))


def test_threads_do_not_mix() -> None:
    """The stemmer may be used from many threads at once."""
    texts = [f"{word} rivers" for word in ("running", "ponies", "bridges", "relational")] * 200
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(terms, texts)) == [terms(text) for text in texts]
