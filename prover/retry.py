"""When a request to a service is sent again, and after what pause. Nothing here waits, sends or keeps time."""

import email.utils
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC

import numpy as np

from prover.errors import ConfigError

RETRIED = frozenset({"timeout", "unreachable", "rate_limited", "server"})
"""Causes of ``ServiceError`` that may pass by themselves; a wrong key or an empty account does not."""

_TIMEOUTS = frozenset({408, 504})
_CAUSES = {401: "unauthorized", 403: "unauthorized", 402: "payment", 429: "rate_limited"}


def cause_of(status: int) -> str:
    """The cause, as ``ServiceError`` counts it, of an HTTP status that is no success.

    >>> cause_of(429), cause_of(503), cause_of(404)
    ('rate_limited', 'server', 'refused')
    """
    if status in _TIMEOUTS:
        return "timeout"
    if status in _CAUSES:
        return _CAUSES[status]
    if 400 <= status < 500:
        return "refused"
    # Redirects and what is no HTTP status at all are answers that nobody can use.
    return "server" if 500 <= status < 600 else "malformed"


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server asks to wait (RFC 9110, 10.2.3): a number of seconds or a date.

    Args:
        headers: Headers of the response; the case of names does not matter.
        now: Seconds since 1970, from which a date is counted.

    Returns:
        At least 0; None where the header is missing or says neither.
    """
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    # Some servers send fractions, which the RFC does not know.
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # A date of HTTP is one of Greenwich even where it names no zone.
    date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is repeated and how long the pauses are: exponential back-off with full jitter."""

    retries: int = 3
    """Repetitions after the first attempt."""
    base_s: float = 0.5
    """Longest pause after the first attempt, in seconds; it doubles with every further one."""
    cap_s: float = 30.0
    """Longest pause at all, unless the server asks for a longer one, in seconds."""

    def __post_init__(self) -> None:
        if self.retries < 0 or not 0 < self.base_s <= self.cap_s < float("inf"):
            raise ConfigError(
                f"Expected at least 0 retries and 0 < base_s <= cap_s, got {self.retries}, {self.base_s} and "
                f"{self.cap_s}. Set pauses in seconds."
            )

    def again(self, cause: str, attempt: int) -> bool:
        """Whether to try again after attempt number ``attempt`` (0-based) failed for ``cause``."""
        return cause in RETRIED and attempt < self.retries

    def delay(
        self,
        attempt: int,
        rng: np.random.Generator,
        *,
        retry_after: float | None = None,
        left: float | None = None,
    ) -> float | None:
        """The pause after attempt number ``attempt`` (0-based) failed, in seconds.

        Uniform between 0 and ``min(cap_s, base_s * 2**attempt)``, so that clients which failed together do not come
        back together; what the server asks for is waited for first, however long.

        Args:
            attempt: Number of the attempt that failed.
            rng: Where the jitter is drawn from.
            retry_after: Seconds that the server asks to wait, see :func:`retry_after`.
            left: Seconds until the deadline.

        Returns:
            None where the pause would outlast the deadline: another attempt could not be answered in time.
        """
        jitter = rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** min(attempt, 64)))
        pause = jitter + (retry_after or 0.0)
        return None if left is not None and pause >= left else pause
