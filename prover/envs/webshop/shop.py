"""Shop: the immutable catalogue and the pure rules that lead from one session to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import cast

from prover.envs.webshop import page as pages
from prover.envs.webshop.analysis import terms
from prover.envs.webshop.goal import Goal
from prover.envs.webshop.index_cache import SearchIndex
from prover.envs.webshop.page import BACK, BUY, NEXT, PREVIOUS, SUB_PAGES, Page
from prover.envs.webshop.product import Product
from prover.envs.webshop.reward import Reward, Variant, best_options, reward
from prover.envs.webshop.session import PageKind, Session

FOUND = 50
"""Most products that a search finds."""
WINDOW = 10
"""Products on a page of results."""

_SUB_PAGES = {name.lower(): cast("PageKind", name.lower()) for name in SUB_PAGES}


def parse(action: str) -> tuple[str, str] | None:
    """The verb of an action and its argument in lower case; None if it is none. Text behind the bracket is ignored.

    >>> parse("search[Red Shoes] please"), parse("buy now")
    (('search', 'red shoes'), None)
    """
    line = action.partition("\n")[0]
    end = line.rfind("]")
    start = line.rfind("[", 1, max(end - 1, 0))
    return (line[:start], line[start + 1 : end].lower()) if start > 0 else None


class Shop:
    """Products, a search index and goals, shared by all sessions and never changed.

    Args:
        products: what is sold, in the order of their file.
        index: the search index of these products.
        goals: what shoppers are asked for.
    """

    def __init__(self, products: Sequence[Product], index: SearchIndex, goals: Sequence[Goal]) -> None:
        self.products: Mapping[str, Product] = {product.asin: product for product in products}
        self.goals: Mapping[str, Goal] = {goal.id: goal for goal in goals}
        self.ranking = index.ranking
        self._index = index
        # Pages are written from the session alone, so that one search is asked for again and again.
        self.search = lru_cache(maxsize=4096)(self._search)

    def _search(self, query: str) -> tuple[str, ...]:
        """Asins of what a query finds, best first. WebShop's back doors (``<r>``, ``<c>``...) are plain words here."""
        return tuple(asin for asin, _ in self._index.search(terms(query), FOUND))

    def page(self, session: Session) -> Page:
        """The page that a session is on."""
        text = self.goals[session.task].text
        if session.page == "index":
            return pages.index(text)
        if session.page == "results":
            found = self.search(session.query)
            shown = found[(session.number - 1) * WINDOW : session.number * WINDOW]
            return pages.results(text, session.number, len(found), [self.products[asin] for asin in shown])
        product = self.products[session.asin]
        if session.page == "item":
            return pages.item(text, product)
        if session.page == "description":
            return pages.description(text, product)
        if session.page == "features":
            return pages.features(text, product)
        if session.page == "reviews":
            return pages.reviews(text)
        return pages.done(session.asin, session.options, session.reward)

    def step(self, session: Session, action: str, variant: Variant = "original") -> Session:
        """The session after an action. One that means nothing changes nothing but ``invalid``.

        Args:
            session: not done.
            action: ``search[...]``, on any page, or ``click[...]`` of what the page shows.
            variant: how a purchase is rewarded.
        """
        verb, what = parse(action) or ("", "")
        if verb == "search":
            visited = session.visited
            return Session(task=session.task, page="results", query=what, number=1, visited=visited)
        if verb == "click" and what != "search" and what in self.page(session).clickables:
            return self._click(replace(session, invalid=False), what, variant)
        return replace(session, invalid=True)

    def _click(self, session: Session, what: str, variant: Variant) -> Session:
        """The session after a click on something that the page shows. Buttons go before options of the same text."""
        if what == BACK.lower():
            return Session(task=session.task)
        if what == BUY.lower():
            total = self.reward(session, variant).total
            return replace(session, page="done", reward=total)
        if session.page == "results":
            if what in (NEXT.lower(), PREVIOUS.lower()):
                return replace(session, number=session.number + (1 if what == NEXT.lower() else -1))
            asin = next(asin for asin in self.search(session.query) if asin.lower() == what)
            return replace(session, page="item", asin=asin, visited=tuple(sorted({*session.visited, asin})))
        if what == PREVIOUS.lower():
            if session.page == "item":
                return replace(session, page="results", asin="", options=())
            return replace(session, page="item")
        if what in _SUB_PAGES:
            return replace(session, page=_SUB_PAGES[what])
        chosen = {**dict(session.options), self.products[session.asin].option_of(what): what}
        return replace(session, options=tuple(sorted(chosen.items())))

    def reward(self, session: Session, variant: Variant = "original") -> Reward:
        """What buying the session's product with the chosen options is worth."""
        goal = self.goals[session.task]
        wanted, bought = self.products[goal.asin], self.products[session.asin]
        return reward(goal, wanted, bought, dict(session.options), variant)

    def ceiling(self, goal_ids: Sequence[str], variant: Variant = "original", threshold: float = 1.0) -> float:
        """Share of goals that can succeed at all: their own product, bought with the best options, is worth enough.

        Success rates on these goals are read against this. With the ``original`` reward about 6.6 % of WebShop's
        synthetic goals can not be reached; with ``value_match`` all can.
        """
        reached = 0
        for goal_id in goal_ids:
            goal = self.goals[goal_id]
            own = self.products[goal.asin]
            best = reward(goal, own, own, best_options(goal, own, variant), variant)
            reached += best.total >= threshold
        return reached / len(goal_ids)
