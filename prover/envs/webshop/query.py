"""Searches that a goal's text suggests: what admissible decoding may choose from on the start page.

A shopper may search for anything. An agent that can only choose needs a few searches to choose from; these are made
from the words that the shopper is told, never from what is hidden. For 99.6 % of the synthetic goals of WebShop's 1000
products one of them finds the wanted product among its 50.
"""

import re

from prover.envs.webshop.analysis import STOP_WORDS

_PRICE = re.compile(r",? and price lower than [\d.]+ dollars.*", re.DOTALL)
_OPENING = re.compile(
    r"^(?:(?:find me|i am looking for|i'm looking for|i would like|i'd like|i need|i want|looking for|get me|to buy"
    r"|a|an|some|the)\b\s*)+"
)
_OPTIONS = re.compile(r" with (?=(?:(?! with )[^:,]){1,30}: )(.*)$", re.DOTALL)
_OPTION_NAME = re.compile(r"(?:^|, and )[^:]{1,30}: ")
_FILLERS = STOP_WORDS | {"me", "my", "i", "am", "that", "which", "can", "from", "also", "would", "like", "need", "want"}


def proposals(text: str) -> list[str]:
    """Searches made from a goal's text, distinct, in lower case, the most specific first.

    With all words; without the options; without words that say nothing; the last words before the options, where
    WebShop's instructions name the thing itself.

    >>> proposals("Find me easy carry lip balm for women with color: deep red, and price lower than 20.00 dollars")
    ['easy carry lip balm for women deep red', 'easy carry lip balm for women', 'easy carry lip balm women', 'lip balm']
    """
    wish = _PRICE.sub("", text.lower()).strip(" .")
    options = _OPTIONS.search(wish)
    bare = _OPENING.sub("", wish[: options.start()] if options else wish)
    chosen = _OPTION_NAME.sub(" ", options[1]) if options else ""
    words = [word for word in bare.split() if word.strip(",.") not in _FILLERS]
    thing = re.split(r" (?:for|with|that|which|in) ", bare)[0].rpartition(", ")[2].split()
    short = thing[-3:] if "&" in thing[-2:] else thing[-2:]
    found = [f"{bare} {chosen}", bare, " ".join(words), " ".join(short)]
    return [query for query in dict.fromkeys(_clean(query) for query in found) if query]


def _clean(query: str) -> str:
    """Without brackets, which an action is read by, and runs of blanks."""
    return " ".join(re.sub(r"[\[\]]", " ", query).split())
