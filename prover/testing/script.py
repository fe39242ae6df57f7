"""Scripts: what a double answers, item by item."""

from collections.abc import Sequence
from typing import Any

from prover.errors import ConfigError


def item_of(replies: Sequence[Any], number: int, *, repeat: bool, asks: str) -> Any:
    """Item ``number`` of a script, which starts again at its end if it is to ``repeat``.

    Args:
        replies: the script.
        number: 0-based.
        repeat: whether the script has no end.
        asks: what the items are replies to, for the message.

    Raises:
        ConfigError: the script is used up.
    """
    if not replies or (number >= len(replies) and not repeat):
        raise ConfigError(
            f"expected at most {len(replies)} {asks}, as many as the script has replies, got one more; "
            "give more replies or repeat=True"
        )
    return replies[number % len(replies)]


def said(item: Any, asked: Any) -> Any:
    """What an item answers: callables are given what was asked, exceptions are raised."""
    answer = item(asked) if callable(item) else item
    if isinstance(answer, BaseException):
        raise answer
    return answer
