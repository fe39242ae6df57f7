"""The books of a chat model: what was asked, answered and spent, and when it is enough."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import structlog

from prover.chat import Answer, Ask, Usage
from prover.errors import ServiceError
from prover.protocols import Backend

_log = structlog.get_logger(__name__)


class Ledger:
    """Counts asks and holds the budget. May be used from many threads."""

    def __init__(
        self, *, budget_tokens: int | None = None, budget_cost: float | None = None, spent: Usage | None = None
    ) -> None:
        """Open empty books.

        Args:
            budget_tokens: Prompt and reply tokens after which it is enough; None for no limit.
            budget_cost: Money after which it is enough; None for no limit.
            spent: What an interrupted run has used up of the budget already; it is in no other count.
        """
        self._limits = (budget_tokens, budget_cost)
        self._before = spent or Usage()
        self._lock = threading.Lock()
        self._usage = Usage()
        self._failed: Counter[str] = Counter()
        self._asks = self._answered = 0
        self._seconds = 0.0

    @property
    def spent(self) -> Usage:
        """All that counts against the budget."""
        with self._lock:
            return self._before + self._usage

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""
        tokens, cost = self._limits
        spent = self.spent
        return (tokens is not None and spent.tokens >= tokens) or (cost is not None and spent.cost >= cost)

    def answered(self, usage: Usage, seconds: float) -> None:
        """Book an answer that took so long, waiting included."""
        with self._lock:
            self._asks += 1
            self._answered += 1
            self._seconds += seconds
            self._usage += usage

    def failed(self, cause: str, seconds: float) -> None:
        """Book an ask that got no answer."""
        with self._lock:
            self._asks += 1
            self._failed[cause] += 1
            self._seconds += seconds

    def snapshot(self, since: Mapping[str, float] | None = None) -> dict[str, float]:
        """The books as plain numbers, for metrics.

        Args:
            since: An earlier snapshot; what has come since then is returned.

        Returns:
            ``asks``, ``answered``, ``failed``, ``failed_<cause>`` for every cause that occurred, ``calls`` (requests
            behind the answers, retries included), ``prompt_tokens``, ``completion_tokens``, ``seconds`` (summed over
            asks, waiting included) and ``cost``.
        """
        with self._lock:
            usage = self._usage
            found: dict[str, float] = {
                "asks": self._asks,
                "answered": self._answered,
                "failed": self._failed.total(),
                **{f"failed_{cause}": n for cause, n in sorted(self._failed.items())},
                "calls": usage.calls,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "seconds": self._seconds,
                "cost": usage.cost,
            }
        return {name: value - (since or {}).get(name, 0) for name, value in found.items()}


class LedgerBackend:
    """Stands before a backend: bounds the asks that run at once, keeps deadlines, and books all in its ``ledger``."""

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        *,
        concurrency: int = 16,
        deadline_s: float | None = None,
    ) -> None:
        """Stand before ``backend``.

        Args:
            backend: Who answers.
            ledger: Where it is booked, and whose budget holds. At most ``concurrency`` asks can overrun it.
            concurrency: Asks that run at once, in each event loop.
            deadline_s: Longest wait for an answer, the wait for a place included, in seconds; an ask may set a
                shorter one.
        """
        self.name = backend.name
        self.ledger = ledger
        self._backend = backend
        self._concurrency = concurrency
        self._deadline_s = deadline_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(concurrency)
        self._told = False

    async def ask(self, ask: Ask) -> Answer:
        """See ``Backend.ask``. An answer that comes after the deadline is dropped."""
        start = time.monotonic()
        deadline = min((s for s in (ask.deadline_s, self._deadline_s) if s is not None), default=None)
        try:
            async with asyncio.timeout(deadline), self._place():
                self._check_budget()
                left = None if deadline is None else deadline - (time.monotonic() - start)
                answer = await self._backend.ask(replace(ask, deadline_s=left))
        except TimeoutError:
            self.ledger.failed("timeout", time.monotonic() - start)
            limit = "in time" if deadline is None else f"within {deadline:g} s"
            raise ServiceError(
                f"Expected an answer of {self.name} {limit}, got none. Raise deadline_s, or ask less at once.",
                "timeout",
            ) from None
        except ServiceError as error:
            self.ledger.failed(error.cause, time.monotonic() - start)
            raise
        except Exception:
            self.ledger.failed("error", time.monotonic() - start)
            raise
        self.ledger.answered(answer.usage, time.monotonic() - start)
        return answer

    async def aclose(self) -> None:
        """See ``Backend.aclose``."""
        await self._backend.aclose()

    def _place(self) -> asyncio.Semaphore:
        # A semaphore belongs to the event loop in which somebody first waited for it.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._places = loop, asyncio.Semaphore(self._concurrency)
        return self._places

    def _check_budget(self) -> None:
        if not self.ledger.exhausted:
            return
        spent = self.ledger.spent
        if not self._told:
            self._told = True
            _log.error("budget_used_up", backend=self.name, tokens=spent.tokens, cost=spent.cost, asked="no more")
        raise ServiceError(
            f"The budget of {self.name} is used up: {spent.tokens} tokens, cost {spent.cost:g}. It is not asked any "
            "more in this run; raise budget_tokens or budget_cost for another.",
            "budget",
        )
