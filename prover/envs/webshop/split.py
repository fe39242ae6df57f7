"""Which goals are trained on and which are tested on.

``by_product`` shares no product between its splits and is the one to report. ``paper`` is WebShop's own (goals 0-499
test, 500-1499 dev, the rest train, after a shuffle with seed 233), ``verl`` that of verl-agent on the same shuffle
(0-499 test, the rest train); both share most of their products. Goals whose text occurs in a split that is tested on
are left out of the others, and a split that still shares an id or a text with another is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.random import RandomState

from prover.envs.webshop.goal import Goal
from prover.errors import DataError

Scheme = Literal["by_product", "paper", "verl"]
"""How goals are divided."""

SCHEMES: tuple[Scheme, ...] = ("by_product", "paper", "verl")
SHUFFLE_SEED = 233
"""WebShop's."""

_TEST, _DEV = 500, 1500  # ends of the splits of ``paper``; ``verl`` has no dev
_TEST_SHARE, _DEV_SHARE = 0.15, 0.10  # of the products, in ``by_product``


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """A division of goals."""

    scheme: Scheme
    goals: Mapping[str, tuple[str, ...]]
    """Split -> ids of its goals, in a shuffled order that is always the same."""
    left_out: tuple[str, ...]
    """Ids of goals in no split: their texts are those of goals that are tested on."""

    def digest(self, split: str) -> str:
        """Hash of a split's ids and their order: two runs with equal hashes used the same goals."""
        return blake2b("\n".join(self.goals[split]).encode(), digest_size=8).hexdigest()


def divide(goals: Sequence[Goal], scheme: Scheme) -> Splits:
    """Divide goals into splits.

    Raises:
        DataError: a split comes out empty, or two splits overlap.
    """
    names = {"by_product": _by_product, "paper": _paper, "verl": _verl}[scheme](goals)
    texts = {goal.id: plain(goal.text) for goal in goals}
    tested: set[str] = set()
    kept: dict[str, tuple[str, ...]] = {}
    left_out: list[str] = []
    # What is tested on stays whole; a text that it holds goes from dev and train.
    for split in ("test", "dev", "train"):
        if split not in names:
            continue
        kept[split] = tuple(name for name in names[split] if texts[name] not in tested)
        left_out += [name for name in names[split] if texts[name] in tested]
        tested |= {texts[name] for name in kept[split]}
        if not kept[split]:
            raise DataError(
                f"expected goals in split {split!r} of {scheme!r}, got none of {len(goals)}; {scheme!r} needs more "
                "goals, so take splits='by_product', or more products"
            )
    refuse_overlap({split: [(name, texts[name]) for name in kept[split]] for split in kept})
    return Splits(scheme=scheme, goals=kept, left_out=tuple(left_out))


def refuse_overlap(splits: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Check that no two splits share a goal.

    Args:
        splits: split -> (id, text) of its goals.

    Raises:
        DataError: some splits share an id or a text; the message counts them.
    """
    names, found = list(splits), []
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            ids = {name for name, _ in splits[first]} & {name for name, _ in splits[second]}
            texts = {plain(text) for _, text in splits[first]} & {plain(text) for _, text in splits[second]}
            if ids or texts:
                example = sorted(ids or texts)[0]
                found.append(f"{first!r} and {second!r} {len(ids)} ids and {len(texts)} texts, e.g. {example!r}")
    if found:
        raise DataError(
            f"expected splits to share no goal, got shared by {'; by '.join(found)}: leave these out of one of them"
        )


def plain(text: str) -> str:
    """A goal's text without capitals and runs of blanks, as it is compared."""
    return " ".join(text.lower().split())


def shuffled(n: int, seed: int) -> list[int]:
    """The order in which ``random.seed(seed); random.shuffle(list(range(n)))`` of CPython leaves its list.

    >>> shuffled(5, 233)
    [2, 0, 3, 4, 1]
    """
    # A list as the seed makes numpy's Mersenne Twister start as CPython's does; a number or an array would not.
    bits = _Words(RandomState([seed]))
    order = list(range(n))
    for last in range(n - 1, 0, -1):
        width = (last + 1).bit_length()
        draw = next(bits) >> (32 - width)
        while draw > last:
            draw = next(bits) >> (32 - width)
        order[last], order[draw] = order[draw], order[last]
    return order


class _Words(Iterator[int]):
    """32 random bits at a time."""

    def __init__(self, source: RandomState) -> None:
        self._source = source
        self._waiting: list[int] = []

    def __next__(self) -> int:
        if not self._waiting:
            self._waiting = self._source.randint(0, 1 << 32, size=1024, dtype=np.uint32).tolist()[::-1]
        return self._waiting.pop()


def _shuffled_ids(goals: Sequence[Goal]) -> list[str]:
    return [goals[place].id for place in shuffled(len(goals), SHUFFLE_SEED)]


def _paper(goals: Sequence[Goal]) -> dict[str, list[str]]:
    ids = _shuffled_ids(goals)
    return {"test": ids[:_TEST], "dev": ids[_TEST:_DEV], "train": ids[_DEV:]}


def _verl(goals: Sequence[Goal]) -> dict[str, list[str]]:
    ids = _shuffled_ids(goals)
    return {"test": ids[:_TEST], "train": ids[_TEST:]}


def _by_product(goals: Sequence[Goal]) -> dict[str, list[str]]:
    """Products in the order of the hash of their asins: the first ones are tested on."""
    products = sorted({goal.asin for goal in goals}, key=_hash)
    test, dev = (max(1, round(share * len(products))) for share in (_TEST_SHARE, _DEV_SHARE))
    place = {asin: number for number, asin in enumerate(products)}
    found: dict[str, list[str]] = {"test": [], "dev": [], "train": []}
    for goal in sorted(goals, key=lambda goal: _hash(goal.id)):
        number = place[goal.asin]
        found["test" if number < test else "dev" if number < test + dev else "train"].append(goal.id)
    return found


def _hash(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=8).digest()
