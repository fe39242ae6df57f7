"""What of a text can be searched for."""

import re
import threading

import Stemmer

_words = re.compile(r"\b\w\w+\b").findall
_STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
"""The English stop words of Lucene."""

_stop = frozenset(_STOP_WORDS.split())

_stemmer = Stemmer.Stemmer("porter")
_lock = threading.Lock()  # A stemmer has one buffer.


def terms(text: str) -> list[str]:
    """Runs of at least two word characters, in lower case, without stop words, reduced by Porter's stemmer.

    >>> terms("The bridges of Tesk were burning, i.e. lost.")
    ['bridg', 'tesk', 'were', 'burn', 'lost']
    """
    words = [word for word in _words(text.lower()) if word not in _stop]
    with _lock:
        stems: list[str] = _stemmer.stemWords(words)
    return stems
