"""Session: all that changes while one shopper is in the shop."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Literal, Self

from prover.errors import SnapshotError

PageKind = Literal["index", "results", "item", "description", "features", "reviews", "done"]
"""The pages of the shop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A shopper's state: a value, never changed, a few hundred bytes as JSON. Nothing in an episode is random."""

    task: str
    """Id of the goal."""
    page: PageKind = "index"
    query: str = ""
    """What was searched for last; empty before the first search."""
    number: int = 0
    """1-based page of results; 0 before the first search."""
    asin: str = ""
    """The product that is looked at or was bought."""
    options: tuple[tuple[str, str], ...] = ()
    """(name, value) of the chosen options, sorted by name."""
    visited: tuple[str, ...] = ()
    """Asins of the products that were opened since the start page, sorted; only ``text_rich`` shows them."""
    reward: float = 0.0
    """What the purchase was worth, 0 to 1."""
    invalid: bool = False
    """Whether the last action meant nothing."""

    @property
    def done(self) -> bool:
        """Whether something was bought, which ends the episode."""
        return self.page == "done"

    @property
    def address(self) -> str:
        """The tail of the page's address in WebShop; ``text_rich`` finds the chosen options in it."""
        words = self.query.replace(" ", "+")
        return f"{self.asin}/{words}/{self.number}/{json.dumps(dict(self.options))}"

    def key(self, visited: bool) -> str:
        """Hash of the state, the same in every process.

        Args:
            visited: whether the products that were opened before are part of the state, as they are where they show.
        """
        state = (self.task, self.page, self.query, self.number, self.asin, self.options, self.visited * visited)
        return blake2b(repr((*state, self.reward)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The session as a dictionary that ``json`` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The session that ``to_json`` gave, after a way through JSON.

        Raises:
            SnapshotError: it is no session.

        >>> Session.from_json(Session(task="t", options=(("size", "5"),)).to_json()).options
        (('size', '5'),)
        """
        try:
            options = tuple((str(name), str(chosen)) for name, chosen in value["options"])
            return cls(**{**value, "options": options, "visited": tuple(value["visited"])})
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"expected a session as Session.to_json gives it, got {value!r} ({error})") from error
