"""Expert: a scripted shopper, for demonstrations.

It searches with the words of the goal, pages through the results, and rewords the search when they do not hold what
it looks for. It recognises the wanted product when it sees it, which no agent is told; when no search finds it, it
takes the product whose title has the most of the goal's words. Then it chooses options and buys.

Other hands may act in between: it looks at where it stands, and carries on from there.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from prover.envs.webshop.analysis import terms
from prover.envs.webshop.page import BACK, BUY, NEXT, PREVIOUS
from prover.envs.webshop.reward import Variant, best_options
from prover.envs.webshop.session import Session
from prover.envs.webshop.shop import FOUND, WINDOW, Shop

_PAGES = 2
"""Pages of results that it reads before it rewords its search."""
_SPECIFIC = 0.75
"""How often it takes the most specific search of those that it has not tried; else any of them."""


class Expert:
    """Plays one episode.

    Args:
        shop: The shop.
        rng: Draws which search is tried first.
        current: Tells where the shopper stands now.
        variant: How purchases are rewarded.
    """

    def __init__(
        self, shop: Shop, rng: np.random.Generator, current: Callable[[], Session], variant: Variant = "original"
    ) -> None:
        self._shop, self._rng, self._current, self._variant = shop, rng, current, variant
        self._tried: set[str] = set()  # searches
        self._settled = ""  # the product that it takes for want of the right one

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next action.

        Args:
            observation: The answer to the last action, whoever gave it.
            info: Its ``admissible_actions`` hold the searches to choose from, on the start page.
        """
        now = self._current()
        goal = self._shop.goals[now.task]
        wanted = self._settled or goal.asin
        if now.page == "index":
            return self._search(list(info["admissible_actions"]), wanted)
        if now.page == "results":
            return self._read(now, wanted)
        if now.asin != wanted:
            return f"click[{PREVIOUS.lower()}]"
        chosen = dict(now.options)
        best = best_options(goal, self._shop.products[wanted], self._variant)
        missing = [value for name, value in best.items() if chosen.get(name) != value]
        if now.page != "item":
            return f"click[{PREVIOUS.lower()}]"
        return f"click[{missing[0]}]" if missing else f"click[{BUY.lower()}]"

    def _search(self, admissible: list[str], wanted: str) -> str:
        """A search that was not tried, or, when all were, one whose results hold the best-looking product."""
        searches = [action for action in admissible if action.startswith("search[")]
        fresh = [action for action in searches if action not in self._tried]
        if not fresh:
            self._settle(searches)
            return max(searches, key=lambda action: self._settled in self._shop.search(action[7:-1])[: _PAGES * WINDOW])
        specific = self._rng.random() < _SPECIFIC
        action = max(fresh, key=len) if specific else fresh[int(self._rng.integers(len(fresh)))]
        self._tried.add(action)
        return action

    def _read(self, now: Session, wanted: str) -> str:
        """Open the wanted product, turn the page, or go back to search in other words."""
        found = self._shop.search(now.query)
        if wanted in found[(now.number - 1) * WINDOW : now.number * WINDOW]:
            return f"click[{wanted.lower()}]"
        last = FOUND // WINDOW if self._settled else _PAGES
        if now.number < last and len(found) > now.number * WINDOW:
            return f"click[{NEXT.lower()}]"
        return f"click[{BACK.lower()}]"

    def _settle(self, searches: list[str]) -> None:
        goal = self._shop.goals[self._current().task]
        words = set(terms(goal.text))
        seen = [asin for action in searches for asin in self._shop.search(action[7:-1])[: _PAGES * WINDOW]]
        looks = {asin: len(words & set(terms(self._shop.products[asin].title))) for asin in seen}
        self._settled = max(looks, key=lambda asin: looks[asin], default=goal.asin)
