"""The choices of a reply as a trie of tokens: which ids may follow."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from prover.errors import TokenError


class ChoiceTrie:
    """One node: the ids that may come next, and the node behind each.

    Nodes are shared between requests and say the same for ever. A leaf (no ids) ends a reply. A node is made when it is
    first asked for: of all choices of a turn one is taken.
    """

    __slots__ = ("_branches", "_nodes", "_start", "depth", "ids")

    def __init__(self, choices: Sequence[Sequence[int]], start: int = 0) -> None:
        """Build the node behind the first ``start`` tokens that all ``choices`` share."""
        self._start = start
        self._branches: dict[int, list[Sequence[int]]] = {}
        for choice in choices:
            if len(choice) > start:
                self._branches.setdefault(choice[start], []).append(choice)
        self._nodes: dict[int, ChoiceTrie] = {}
        self.ids: tuple[int, ...] = tuple(sorted(self._branches))
        """Ids that may come next, sorted; empty at a leaf."""
        self.depth: int = max(map(len, choices)) - start
        """Tokens of the longest choice from here on."""

    def child(self, id_: int) -> "ChoiceTrie":
        """Node behind one of the ids."""
        if id_ not in self._nodes:
            self._nodes[id_] = ChoiceTrie(self._branches[id_], self._start + 1)
        return self._nodes[id_]


@lru_cache(maxsize=4096)
def choice_trie(choices: tuple[tuple[int, ...], ...], eos_ids: frozenset[int]) -> ChoiceTrie:
    """Root of the trie of ``choices``; the same choices come back every few turns, so tries are remembered.

    Raises:
        TokenError: There is no choice, or a choice does not have exactly one end token, at its end.
    """
    if not choices:
        raise TokenError("expected at least one choice, got none; pass choices=None for free decoding")
    for choice in choices:
        if not choice or choice[-1] not in eos_ids or not eos_ids.isdisjoint(choice[:-1]):
            raise TokenError(
                f"expected choices with one end token ({_listed(eos_ids)}), at their end, got {choice}; "
                "build choices with codec.action"
            )
    return ChoiceTrie(choices)


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
