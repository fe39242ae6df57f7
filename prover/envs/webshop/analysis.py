"""How a text becomes search terms: Lucene's English analysis."""

from prover.envs.webshop.porter import stem
from prover.envs.webshop.wordbreak import words

STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    )
)
"""Lucene's English stop words."""

_APOSTROPHES = "'\u2019\uff07"


def terms(text: str) -> list[str]:
    """Words of a text, without possessive s, in lower case, without stop words, stemmed; in order.

    >>> terms("The women's running shoes, and it's in Burgundy")
    ['women', 'run', 'shoe', 'burgundi']
    """
    found = []
    for word in words(text):
        if len(word) > 1 and word[-1] in "sS" and word[-2] in _APOSTROPHES:
            word = word[:-2]
        word = word.lower()
        if word not in STOP_WORDS:
            found.append(stem(word))
    return found
