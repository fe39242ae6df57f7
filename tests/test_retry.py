"""Retries: what is worth another attempt, and how long to wait."""

import email.utils
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prover.errors import ConfigError
from prover.retry import RETRIED, RetryPolicy, cause_of, retry_after

CAUSES = {"timeout", "unreachable", "rate_limited", "server", "unauthorized", "payment", "refused", "malformed"}


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529, 408])
def test_what_may_pass_is_retried(status: int) -> None:
    """Limits, faults of the server and timeouts are tried again, until the retries are used up."""
    policy = RetryPolicy(retries=2)
    assert [policy.again(cause_of(status), attempt) for attempt in range(4)] == [True, True, False, False]


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 301])
def test_what_stays_wrong_is_not_retried(status: int) -> None:
    """A wrong request, a wrong key and an empty account are no better the second time."""
    assert not RetryPolicy().again(cause_of(status), 0)


def test_causes_are_told_apart() -> None:
    """Each status has the cause under which failures are counted."""
    assert [cause_of(status) for status in (401, 403, 402, 429, 404, 500, 504, 529)] == [
        "unauthorized",
        "unauthorized",
        "payment",
        "rate_limited",
        "refused",
        "server",
        "timeout",
        "server",
    ]


def test_without_a_connection_or_in_time_there_is_another_attempt() -> None:
    """Failures without any status are retried as well; an exhausted budget and a malformed reply are not."""
    assert {cause for cause in (*CAUSES, "budget") if RetryPolicy().again(cause, 0)} == RETRIED
    assert {"timeout", "unreachable"} < RETRIED


@given(status=st.integers(-1, 1000))
def test_every_status_has_a_cause(status: int) -> None:
    """No number that a server sends is without a cause."""
    assert cause_of(status) in CAUSES


@given(attempt=st.integers(0, 10**6), seed=st.integers(0, 100))
def test_pauses_grow_up_to_the_cap(attempt: int, seed: int) -> None:
    """A pause is never longer than base * 2**attempt nor than the cap."""
    policy = RetryPolicy(retries=3, base_s=0.5, cap_s=30.0)
    pause = policy.delay(attempt, np.random.default_rng(seed))
    assert pause is not None
    assert 0 <= pause <= min(30.0, 0.5 * 2 ** min(attempt, 10))


def test_pauses_are_spread() -> None:
    """Full jitter: 2,000 pauses after the third attempt are uniform over 0..2 s, mean 1 s and variance 1/3."""
    rng = np.random.default_rng(0)
    pauses = np.array([RetryPolicy(base_s=0.5).delay(2, rng) for _ in range(2000)])
    assert pauses.min() < 0.01
    assert 1.99 < pauses.max() <= 2.0
    assert pauses.mean() == pytest.approx(1.0, abs=0.05)
    assert pauses.var() == pytest.approx(1 / 3, abs=0.03)


@given(asked=st.floats(0, 1e6), attempt=st.integers(0, 20))
def test_what_the_server_asks_is_waited(asked: float, attempt: int) -> None:
    """A pause is never shorter than what the server asks, and the jitter comes on top."""
    policy = RetryPolicy()
    pause = policy.delay(attempt, np.random.default_rng(0), retry_after=asked)
    assert pause is not None
    assert asked <= pause <= asked + min(policy.cap_s, 0.5 * 2**attempt)


@given(asked=st.none() | st.floats(0, 100), left=st.floats(-1, 100), attempt=st.integers(0, 9))
def test_no_pause_outlasts_the_deadline(asked: float | None, left: float, attempt: int) -> None:
    """Where the pause would end after the deadline there is none: the caller gives up at once."""
    pause = RetryPolicy().delay(attempt, np.random.default_rng(1), retry_after=asked, left=left)
    assert pause is None or pause < left
    if asked is not None and asked >= left:
        assert pause is None


def test_retry_after_in_seconds() -> None:
    """Whole numbers, and fractions that some servers send; names of headers have no case."""
    assert retry_after({"Retry-After": "2"}, 0.0) == 2.0
    assert retry_after({"retry-after": " 0.25 "}, 0.0) == 0.25
    assert retry_after({"RETRY-AFTER": "0"}, 0.0) == 0.0


def test_retry_after_as_a_date() -> None:
    """A date is counted from now; one that has passed asks for nothing."""
    noon = datetime(2026, 5, 4, 12, 0, tzinfo=UTC).timestamp()
    assert retry_after({"Retry-After": "Mon, 04 May 2026 12:01:30 GMT"}, noon) == 90.0
    assert retry_after({"Retry-After": "Mon, 04 May 2026 11:59:00 GMT"}, noon) == 0.0
    assert retry_after({"Retry-After": "Mon, 04 May 2026 12:01:30"}, noon) == 90.0


@given(now=st.integers(0, 2**32), later=st.integers(0, 10**6))
def test_dates_round_trip(now: int, later: int) -> None:
    """Any date that HTTP can write is understood to the second."""
    text = email.utils.formatdate(now + later, usegmt=True)
    assert retry_after({"Retry-After": text}, float(now)) == later


@given(text=st.text(max_size=40))
@example("")
@example(".")
@example("-3")
@example("1e3")
@example("٣")
@example("nan")
@example("Mon, 99 Foo 2026 25:61:61 GMT")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
def test_nonsense_asks_for_nothing(text: str) -> None:
    """Whatever stands in the header, the answer is a number of seconds, at least 0, or none."""
    found = retry_after({"Retry-After": text}, 0.0)
    assert found is None or found >= 0
    assert retry_after({}, 0.0) is None


@pytest.mark.parametrize(
    "wrong", [{"retries": -1}, {"base_s": 0.0}, {"base_s": 9.0, "cap_s": 1.0}, {"cap_s": float("inf")}]
)
def test_impossible_policies_are_refused(wrong: dict[str, float]) -> None:
    """Negative retries and pauses without bounds are mistakes of a config."""
    with pytest.raises(ConfigError, match="Expected at least 0 retries"):
        RetryPolicy(**wrong)  # type: ignore[arg-type]  # wrong on purpose
