"""Brief pages: what a shopper reads, in a quarter of the words, for small policies.

A policy of a million parameters can choose and copy, but hardly compare a page of titles with a goal. So brief pages do
the comparing, with nothing but the texts that the shopper sees: of a title (a description, a feature) they keep the
words that the goal has too, and their number; of an option the values that the goal's text names, where it names any.
The goal itself is told on the start page alone, and the buttons that every page of a kind has are not written down. A
product's id stands behind what is told of it, chosen options are shown, and whatever stands behind ``pick`` can be
clicked.

Which clicks a page takes is the same as ever, and so is what they lead to.
"""

import re
from functools import lru_cache
from math import ceil

from prover.envs.webshop.analysis import STOP_WORDS, terms
from prover.envs.webshop.product import Product
from prover.envs.webshop.session import Session
from prover.envs.webshop.shop import WINDOW, Shop

_PICK = "pick"


def brief(shop: Shop, session: Session) -> str:
    """The page that a session is on.

    >>> from prover.envs.webshop.catalogue import open_shop
    >>> shop, splits = open_shop("generated")
    >>> found = shop.step(Session(task=splits.goals["test"][0]), "search[bath towel]")
    >>> brief(shop, found).splitlines()[0]
    'page 1 of 2'
    """
    goal = shop.goals[session.task].text.lower()
    if session.page == "index":
        return shop.goals[session.task].text
    if session.page == "results":
        found = shop.search(session.query)
        shown = found[(session.number - 1) * WINDOW : session.number * WINDOW]
        lines = [f"page {session.number} of {ceil(len(found) / WINDOW)}"]
        lines += [f"{_offer(shop.products[asin], goal)} {_PICK} {asin.lower()}" for asin in shown]
        return "\n".join(lines)
    product = shop.products[session.asin]
    if session.page == "item":
        return _item(product, dict(session.options), goal)
    if session.page == "description":
        return f"description: {_shared(product.description, goal)}"
    if session.page == "features":
        return "\n".join(["features:", *(_shared(bullet, goal) for bullet in product.bullets)])
    if session.page == "reviews":
        return "reviews: none"
    return f"bought, score {session.reward:.2f}"


def _item(product: Product, chosen: dict[str, str], goal: str) -> str:
    lines = [f"item: {_offer(product, goal)}"]
    for name, values in product.options:
        named = [value for value in values if _names(goal, value)]
        picks = [f"{_PICK} {value}" for value in named or values]
        lines.append(f"{name}: {', '.join(picks)}" if name not in chosen else f"{name}: chosen {chosen[name]}")
    return "\n".join(lines)


def _offer(product: Product, goal: str) -> str:
    return f"{_shared(product.title, goal)} ${product.price:.0f}"


@lru_cache(maxsize=1 << 16)
def _shared(text: str, goal: str) -> str:
    """The words of a text that a goal has too, up to their endings, and before them their number."""
    wanted = _stems(goal)
    words = [word for word in dict.fromkeys(re.findall(r"\w+", text.lower())) if wanted.intersection(terms(word))]
    return " ".join([str(len(words)), *words])


@lru_cache(maxsize=1 << 12)
def _stems(goal: str) -> frozenset[str]:
    return frozenset(terms(goal)) - STOP_WORDS


@lru_cache(maxsize=1 << 16)
def _names(goal: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", goal) is not None
