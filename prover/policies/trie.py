"""The choices of a reply as a trie of tokens: which ids may follow."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from prover.errors import TokenError


class ChoiceTrie:
    """One node: the ids that may come next, and the node behind each.

    Nodes are shared between requests and never change after they were built. A leaf (no ids) ends a reply.
    """

    __slots__ = ("children", "depth", "ids")

    def __init__(self, choices: Sequence[Sequence[int]], start: int = 0) -> None:
        """Build the node behind the first ``start`` tokens that all ``choices`` share."""
        branches: dict[int, list[Sequence[int]]] = {}
        for choice in choices:
            if len(choice) > start:
                branches.setdefault(choice[start], []).append(choice)
        self.ids: tuple[int, ...] = tuple(sorted(branches))
        """Ids that may come next, sorted; empty at a leaf."""
        self.children: dict[int, ChoiceTrie] = {id_: ChoiceTrie(branches[id_], start + 1) for id_ in self.ids}
        """Node behind each id."""
        self.depth: int = 1 + max((child.depth for child in self.children.values()), default=-1)
        """Tokens of the longest choice from here on."""


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
