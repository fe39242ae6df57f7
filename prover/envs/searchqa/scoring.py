"""How an answer is scored: exact match, substring match and F1 against any of the gold answers.

``standard`` normalisation is that of SQuAD, which Search-R1 uses: lower case, then without ASCII punctuation, then
without "a", "an" and "the", then with single blanks. It leaves curly quotes, dashes and accents as they are, joins
"well-known" to one word, and makes nothing of the answer "The". ``unicode`` also removes accents and the punctuation
and signs of all scripts, turns dashes and slashes into blanks, joins the groups of a number ("1 000"), and falls back
to the text itself where nothing would be left.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Normalisation = Literal["standard", "unicode"]
"""How texts are made comparable."""
Metric = Literal["em", "sub_em", "f1"]
"""What an answer is worth."""

NORMALISATIONS: tuple[Normalisation, ...] = ("standard", "unicode")
METRICS: tuple[Metric, ...] = ("em", "sub_em", "f1")

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ASCII = str.maketrans("", "", string.punctuation)
_GROUPS = re.compile(r"(?<=\d)[\s,.'\u2019](?=\d{3}(?!\d))")
_CLOSED = frozenset({"yes", "no", "noanswer"})
"""Answers that share no words with others, as in HotpotQA's own F1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What an answer is worth, each 0 to 1."""

    em: float = 0.0
    sub_em: float = 0.0
    f1: float = 0.0


def score(answer: str, golds: Sequence[str], normalisation: Normalisation = "standard") -> Score:
    """The best score that the answer has against any gold answer.

    >>> score("The Eiffel Tower", ["Eiffel Tower", "la tour Eiffel"])
    Score(em=1.0, sub_em=1.0, f1=1.0)
    >>> score("near the Eiffel Tower", ["eiffel tower"])
    Score(em=0.0, sub_em=1.0, f1=0.8)
    """
    normal = _NORMAL[normalisation]
    said, wanted = normal(answer), [normal(gold) for gold in golds]
    return Score(
        em=float(said in wanted),
        sub_em=float(any(gold in said for gold in wanted)),
        f1=max((f1(said, gold) for gold in wanted), default=0.0),
    )


def standard(text: str) -> str:
    """A text in the standard normalisation.

    >>> standard(" The Well-Known  A.B.C. of an Era")
    'wellknown abc of era'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_ASCII)).split())


def unicode(text: str) -> str:
    """A text in the normalisation that knows other scripts.

    >>> unicode("“Café” – 1 000"), unicode("The")
    ('cafe 1000', 'the')
    """
    folded = unicodedata.normalize("NFKD", text).casefold()
    joined = _GROUPS.sub("", folded)
    plain = "".join(_sign(letter) for letter in joined)
    return " ".join(_ARTICLE.sub(" ", plain).split()) or " ".join(folded.split())


_NORMAL: Mapping[Normalisation, Callable[[str], str]] = {"standard": standard, "unicode": unicode}


def _sign(letter: str) -> str:
    """The letter; nothing for accents and punctuation; a blank for what joins two words."""
    kind = unicodedata.category(letter)
    if kind == "Pd" or letter in "/\\":
        return " "
    return "" if kind[0] in "PS" or kind == "Mn" else letter


def f1(said: str, gold: str) -> float:
    """F1 of the words of two normalised texts, each counted as often as it stands there.

    >>> f1("eiffel tower paris", "eiffel tower")
    0.8
    """
    if said != gold and (said in _CLOSED or gold in _CLOSED):
        return 0.0
    words, wanted = said.split(), gold.split()
    shared = sum((Counter(words) & Counter(wanted)).values())
    return 2 * shared / (len(words) + len(wanted)) if shared else 0.0
