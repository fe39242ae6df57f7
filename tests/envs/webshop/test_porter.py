"""The stemmer."""

import pytest

from prover.envs.webshop.porter import stem


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *(("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("caress", "caress")),
        *(("feed", "feed"), ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor")),
        *(("sing", "sing"), ("conflated", "conflat"), ("troubled", "troubl"), ("sized", "size"), ("hopping", "hop")),
        *(("falling", "fall"), ("hissing", "hiss"), ("fizzed", "fizz"), ("failing", "fail"), ("filing", "file")),
        *(("happy", "happi"), ("sky", "sky"), ("relational", "relat"), ("conditional", "condit")),
        *(("vileli", "vile"), ("analogousli", "analog"), ("sensibiliti", "sensibl"), ("triplicate", "triplic")),
        *(("electrical", "electr"), ("hopeful", "hope"), ("goodness", "good"), ("revival", "reviv")),
        *(("allowance", "allow"), ("adjustable", "adjust"), ("replacement", "replac"), ("adoption", "adopt")),
        *(("probate", "probat"), ("rate", "rate"), ("cease", "ceas"), ("controll", "control"), ("roll", "roll")),
    ],
)
def test_examples_of_the_paper(word: str, expected: str) -> None:
    """Words of Porter's paper, through all steps."""
    assert stem(word) == expected


@pytest.mark.parametrize(("word", "expected"), [("technology", "technolog"), ("assembly", "assembl")])
def test_later_rules(word: str, expected: str) -> None:
    """The two rules that Porter added later are there."""
    assert stem(word) == expected


@pytest.mark.parametrize("word", ["", "a", "is", "ös", "★", "12", "東"])
def test_short_and_other_words(word: str) -> None:
    """Words of at most two letters stay as they are, whatever they are made of."""
    assert stem(word) == word
