"""What the engine asks of a decoder: to carry a batch of sequences forward, each from its own place."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prover.policies.prefixes import Prefix


class Rows(Protocol):
    """Sequences in work. Row b has had ``lengths[b]`` tokens; rows differ in length, no padding is ever attended to."""

    lengths: list[int]

    def extend(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Append a chunk of at least one token to each of ``rows``; logits after each chunk, shape (len(rows), V)."""

    def select(self, rows: Sequence[int]) -> "Rows":
        """Only these rows, in this order; a row may be taken several times."""

    def keep(self, row: int) -> Prefix:
        """A copy of the state of a row, for ``Decoder.open``."""


class Decoder(Protocol):
    """Runs a causal language model."""

    truncates: bool
    """Whether a prefix may be used up to any shorter length than it was kept at."""

    def open(self, prefixes: Sequence[Prefix | None], capacity: int) -> Rows:
        """Rows that start from prefixes (None starts empty) and have room for ``capacity`` tokens each."""

    def refresh(self) -> None:
        """The model's parameters have changed; drop what was derived from them."""
