"""The ledger and who stands before a backend with it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from structlog.testing import capture_logs

from prover.backends.ledger import Ledger, LedgerBackend
from prover.chat import Answer, Ask, Message, Usage
from prover.errors import ServiceError
from prover.protocols import Backend

ASK = Ask(messages=(Message(role="user", content="x"),))
USED = Usage(prompt_tokens=60, completion_tokens=40, calls=2, seconds=0.5, cost=0.25)


class Scripted:
    """Answers with the items of a script: an answer, an error to raise, or a number of seconds to wait first."""

    name = "scripted"

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.asks: list[Ask] = []
        self.at_once = self.most_at_once = self.closed = 0

    async def ask(self, ask: Ask) -> Answer:
        self.asks.append(ask)
        item = self.script[min(len(self.asks), len(self.script)) - 1]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(item if isinstance(item, float) else 0)
        finally:
            self.at_once -= 1
        if isinstance(item, BaseException):
            raise item
        return Answer(text="yes", finish="stop", usage=USED)

    async def aclose(self) -> None:
        self.closed += 1


def outcome(backend: Backend, ask: Ask = ASK) -> str:
    """What an ask comes to: its text, or the cause of its failure."""
    try:
        return asyncio.run(backend.ask(ask)).text
    except ServiceError as error:
        return error.cause


def counts(ledger: Ledger) -> dict[str, float]:
    """The books without the time."""
    return {name: value for name, value in ledger.snapshot().items() if name != "seconds"}


def test_all_is_booked() -> None:
    """Answers with their usage, failures by cause, and errors that are none of a service."""
    inner = Scripted(None, ServiceError("x", "server"), ServiceError("x", "server"), KeyError("bug"), None)
    ledger = Ledger()
    backend = LedgerBackend(inner, ledger)
    assert isinstance(backend, Backend)
    assert backend.name == "scripted"
    assert [outcome(backend) for _ in range(3)] == ["yes", "server", "server"]
    with pytest.raises(KeyError, match="bug"):
        outcome(backend)
    assert outcome(backend) == "yes"
    assert counts(ledger) == {
        "asks": 5,
        "answered": 2,
        "failed": 3,
        "failed_error": 1,
        "failed_server": 2,
        "calls": 4,
        "prompt_tokens": 120,
        "completion_tokens": 80,
        "cost": 0.5,
    }
    asyncio.run(backend.aclose())
    assert inner.closed == 1


def test_what_came_since() -> None:
    """Two snapshots give the figures of the time between them."""
    ledger = Ledger()
    ledger.answered(USED, 1.0)
    before = ledger.snapshot()
    ledger.failed("timeout", 2.0)
    ledger.answered(USED, 4.0)
    since = ledger.snapshot(before)
    assert (since["asks"], since["answered"], since["failed"], since["failed_timeout"]) == (2, 1, 1, 1)
    assert (since["prompt_tokens"], since["cost"], since["seconds"]) == (60, 0.25, 6.0)


@pytest.mark.parametrize("budget", [{"budget_tokens": 250}, {"budget_cost": 0.7}])
def test_a_budget_ends_it(budget: dict[str, Any]) -> None:
    """Of answers of 100 tokens and 0.25, the third reaches the limit; then nobody is asked, and one line says so."""
    inner = Scripted(None)
    backend = LedgerBackend(inner, Ledger(**budget))
    with capture_logs() as logs:
        assert [outcome(backend) for _ in range(6)] == ["yes"] * 3 + ["budget"] * 3
    assert len(inner.asks) == 3
    assert [(log["event"], log["log_level"], log["tokens"]) for log in logs] == [("budget_used_up", "error", 300)]
    assert counts(backend.ledger)["failed_budget"] == 3


def test_a_budget_holds_across_runs() -> None:
    """What an interrupted run has spent counts, and stands in no figure of the new one."""
    ledger = Ledger(budget_tokens=150, spent=USED)
    backend = LedgerBackend(Scripted(None), ledger)
    assert [outcome(backend), outcome(backend)] == ["yes", "budget"]
    assert (ledger.spent.tokens, counts(ledger)["prompt_tokens"]) == (200, 60)


def test_at_most_those_in_flight_overrun_the_budget() -> None:
    """Of 64 asks at once with a budget for one, as many are sent as may run at once."""
    inner = Scripted(None)
    backend = LedgerBackend(inner, Ledger(budget_tokens=100), concurrency=4)

    async def run() -> list[Any]:
        return await asyncio.gather(*(backend.ask(ASK) for _ in range(64)), return_exceptions=True)

    found = asyncio.run(run())
    assert sum(isinstance(item, Answer) for item in found) == len(inner.asks) == 4
    assert {item.cause for item in found if isinstance(item, ServiceError)} == {"budget"}


def test_places_are_bounded_in_every_loop() -> None:
    """No more asks than allowed run at once, in a second event loop as well."""
    inner = Scripted(0.001)
    backend = LedgerBackend(inner, Ledger(), concurrency=3)

    async def run() -> None:
        await asyncio.gather(*(backend.ask(ASK) for _ in range(20)))

    asyncio.run(run())
    asyncio.run(run())
    assert inner.most_at_once == 3
    assert counts(backend.ledger)["answered"] == 40


def test_a_deadline_counts_the_wait_for_a_place() -> None:
    """Behind an ask that takes for ever, the next one fails in time without being sent."""
    inner = Scripted(60.0)
    backend = LedgerBackend(inner, Ledger(), concurrency=1, deadline_s=0.05)

    async def run() -> list[Any]:
        return await asyncio.gather(backend.ask(ASK), backend.ask(ASK), return_exceptions=True)

    found = asyncio.run(run())
    assert [error.cause for error in found] == ["timeout", "timeout"]
    assert "within 0.05 s" in str(found[0])
    assert len(inner.asks) <= 2
    assert counts(backend.ledger)["failed_timeout"] == 2


def test_the_shorter_deadline_holds_and_is_passed_on() -> None:
    """The backend learns how much time is left, of the ask's limit or the config's."""
    inner = Scripted(None)
    backend = LedgerBackend(inner, Ledger(), deadline_s=50.0)
    for given in (None, 20.0, 80.0):
        outcome(backend, Ask(messages=ASK.messages, deadline_s=given))
    limits = [50.0, 20.0, 50.0]
    assert all(0 < (ask.deadline_s or 0) <= limit for ask, limit in zip(inner.asks, limits, strict=True))
    assert (inner.asks[2].deadline_s or 0) > 20.0
    outcome(LedgerBackend(inner, Ledger()))
    assert inner.asks[3].deadline_s is None


def test_a_timeout_of_the_backend_itself_is_one() -> None:
    """A custom backend that lets a TimeoutError out is booked and told as a timeout, deadline or not."""
    assert outcome(LedgerBackend(Scripted(TimeoutError()), Ledger())) == "timeout"


def test_threads_lose_no_count() -> None:
    """8 threads book 500 answers each."""
    ledger = Ledger()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: [ledger.answered(USED, 1.0) for _ in range(500)], range(8)))
    assert counts(ledger)["answered"] == 4000
    assert counts(ledger)["prompt_tokens"] == 240_000
