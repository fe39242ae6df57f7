"""Brief pages: what a shopper reads, in a third of the words, for policies that read little.

The goal is told on the start page alone, titles are cut, prices are whole dollars, and what every page of a kind has
(its buttons) is not written down. A product's id stands behind what is told of it. Unlike ``text``, the page of a
product shows which options were chosen; it then leaves out the other values of the option.

What can be clicked is the same as ever.
"""

from math import ceil

from prover.envs.webshop.product import Product
from prover.envs.webshop.session import Session
from prover.envs.webshop.shop import WINDOW, Shop

TITLE_WORDS = 8
"""Words that are kept of a title, a description or a feature."""


def brief(shop: Shop, session: Session) -> str:
    """The page that a session is on.

    >>> from prover.envs.webshop.catalogue import open_shop
    >>> shop, splits = open_shop("generated")
    >>> found = shop.step(Session(task=splits.goals["test"][0]), "search[bath towel]")
    >>> brief(shop, found).splitlines()[0]
    'page 1 of 2'
    """
    if session.page == "index":
        return shop.goals[session.task].text
    if session.page == "results":
        found = shop.search(session.query)
        shown = found[(session.number - 1) * WINDOW : session.number * WINDOW]
        lines = [f"page {session.number} of {ceil(len(found) / WINDOW)}"]
        lines += [f"{_offer(shop.products[asin])} {asin.lower()}" for asin in shown]
        return "\n".join(lines)
    product = shop.products[session.asin]
    if session.page == "item":
        return _item(product, dict(session.options))
    if session.page == "description":
        return f"description: {_cut(product.description)}"
    if session.page == "features":
        return "\n".join(["features:", *(_cut(bullet) for bullet in product.bullets)])
    if session.page == "reviews":
        return "reviews: none"
    return f"bought, score {session.reward:.2f}"


def _item(product: Product, chosen: dict[str, str]) -> str:
    lines = [f"item: {_offer(product)}"]
    for name, values in product.options:
        lines.append(f"chosen {name}: {chosen[name]}" if name in chosen else f"{name}: {', '.join(values)}")
    return "\n".join(lines)


def _offer(product: Product) -> str:
    return f"{_cut(product.title)} ${product.price:.0f}"


def _cut(text: str) -> str:
    return " ".join(text.split()[:TITLE_WORDS])
