"""UnicodeText: a Gymnasium space for any text with a length bound."""

from typing import Any

import gymnasium
import numpy as np

from prover.errors import ConfigError

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789éüñßøåçąžλπωжяш日本語中文한글😀🗝"
_PAUSES = "    .,;:!?'\"-()\n"
_SAMPLE_LENGTH = 64


class UnicodeText(gymnasium.Space[str]):
    """Every ``str`` of at most ``max_length`` characters: blank, empty, any script, lone surrogates included.

    ``gymnasium.spaces.Text`` lists its characters and checks each one: it refuses a blank by default, takes seconds to
    build for all of Unicode and milliseconds to check a long passage. Here only type and length are looked at.

    >>> space = UnicodeText(max_length=20)
    >>> "go to shelf 1" in space, "" in space, "Übergröße ✓" in space, "x" * 21 in space, 7 in space
    (True, True, True, False, False)
    """

    def __init__(self, max_length: int = 100_000, *, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 1:
            raise ConfigError(f"expected max_length of at least 1 character, got {max_length}; give a larger bound")
        self.max_length = max_length
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: text does not become an array."""
        return False

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a ``str`` of at most ``max_length`` characters; takes the same time for every length."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Readable text of several scripts, 0 to 64 characters long (fewer where the bound is lower).

        Raises:
            ConfigError: a mask or probabilities are given; the space has none.
        """
        if mask is not None or probability is not None:
            raise ConfigError("expected neither mask nor probability, got one; call sample() without arguments")
        length = int(self.np_random.integers(min(self.max_length, _SAMPLE_LENGTH) + 1))
        pause = self.np_random.random(length) < 1 / 6
        draws = self.np_random.random(length)
        return "".join(
            pool[int(draw * len(pool))]
            for pool, draw in zip((_PAUSES if p else _LETTERS for p in pause), draws, strict=True)
        )

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))
