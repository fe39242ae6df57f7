"""Scores, case by case; expected values by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.envs.searchqa.scoring import NORMALISATIONS, Normalisation, Score, f1, score, standard, unicode


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("a an the", ""),
        ("A.B.C.", "abc"),
        ("well-known", "wellknown"),
        ("rock 'n' roll", "rock n roll"),
        ("1,000", "1000"),
        ("1 000", "1 000"),
        ("$5.50!", "550"),
        ("  two \t words\n", "two words"),
        ("theory of a theatre", "theory of theatre"),
        ("“quoted”", "“quoted”"),
        ("1914\u20131918", "1914\u20131918"),
        ("Café", "café"),
        ("STRASSE", "strasse"),
        ("Straße", "straße"),
        ("under_score", "underscore"),
        ("Vitamin A", "vitamin"),
        ("U.S.A", "usa"),
        ("", ""),
    ],
)
def test_standard(text: str, expected: str) -> None:
    """As Search-R1 normalises: lower case, no ASCII punctuation, no articles, single blanks; holes included."""
    assert standard(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("“quoted”", "quoted"),
        ("1914\u20131918", "1914 1918"),
        ("1914-1918", "1914 1918"),
        ("Café", "cafe"),
        ("Straße", "strasse"),
        ("1 000 000", "1000000"),
        ("1,000", "1000"),
        ("1\u00a0000", "1000"),
        ("3 14", "3 14"),
        ("AC/DC", "ac dc"),
        ("№ 5", "no 5"),
        ("The", "the"),
        ("!?", "!?"),
        ("日本、東京", "日本東京"),
    ],
)
def test_unicode(text: str, expected: str) -> None:
    """Accents, quotes, dashes and groups of digits make no difference, and something is always left."""
    assert unicode(text) == expected


@pytest.mark.parametrize(
    ("answer", "golds", "expected"),
    [
        ("Paris", ["Paris"], Score(em=1, sub_em=1, f1=1)),
        ("the city of Paris", ["Paris"], Score(sub_em=1, f1=0.5)),
        ("Paris", ["city of Paris"], Score(f1=0.5)),
        ("London", ["Paris"], Score()),
        ("Comparison", ["paris"], Score(sub_em=1)),
        ("London", ["Paris", "london!"], Score(em=1, sub_em=1, f1=1)),
        ("yes", ["Yes."], Score(em=1, sub_em=1, f1=1)),
        ("yes", ["no"], Score()),
        ("yes it is", ["yes"], Score(sub_em=1)),
        ("no one", ["no"], Score(sub_em=1)),
        ("a b b c", ["b b d"], Score(f1=2 / 3)),
        ("The", ["A"], Score(em=1, sub_em=1)),
        ("Paris", ["The"], Score(sub_em=1)),
        ("Paris", [], Score()),
    ],
)
def test_score(answer: str, golds: list[str], expected: Score) -> None:
    """The best over the gold answers, by hand."""
    found = score(answer, golds)
    assert (found.em, found.sub_em) == (expected.em, expected.sub_em)
    assert found.f1 == pytest.approx(expected.f1)


def test_unicode_score() -> None:
    """Curly quotes and accents cost nothing under the wider normalisation, and everything under the standard one."""
    assert score("“Cafe Zürich”", ["Café Zurich"]) == Score()
    assert score("“Cafe Zürich”", ["Café Zurich"], "unicode") == Score(em=1, sub_em=1, f1=1)
    assert score("A", ["The"], "unicode") == Score()


WORDS = st.lists(st.sampled_from(["the", "red", "Fox", "1,000", "ran", "é", "no", "-"]), min_size=1, max_size=5)


@given(WORDS, WORDS, st.sampled_from(NORMALISATIONS))
def test_order_of_scores(answer: list[str], gold: list[str], normalisation: Normalisation) -> None:
    """An exact match is a substring match; scores lie between 0 and 1; swapping texts keeps F1."""
    one, two = " ".join(answer), " ".join(gold)
    found = score(one, [two], normalisation)
    assert 0 <= found.em <= found.sub_em <= 1
    assert 0 <= found.f1 <= 1
    assert score(two, [one], normalisation).f1 == found.f1
    assert score(one, [one], normalisation).em == 1


def test_f1_counts_words_as_often_as_they_stand() -> None:
    """Two of four words and two of three are shared: 2·2/7."""
    assert f1("b b x y", "b b z") == pytest.approx(4 / 7)
