"""A retrieval server as a retriever: for corpora that do not fit here, or that several machines share."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import count

import httpx
import numpy as np
import structlog

from prover.errors import ConfigError, ServiceError
from prover.retrieval.dialects import ask, read_answer
from prover.retrieval.flights import Flights
from prover.retrieval.retriever import Hit
from prover.retriever_config import Dialect
from prover.retry import RetryPolicy, cause_of, retry_after

_log = structlog.get_logger(__name__)

_MOST_BYTES = 64 << 20
"""Longest reply that is read."""
_OF_ONE = frozenset({"malformed", "refused", "server"})
"""Causes by which one query may spoil a request that it shares with others."""

_Key = tuple[str, int]
"""A query and k."""


class _RequestError(Exception):
    """An attempt failed."""

    def __init__(self, message: str, cause: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.wait_s = wait_s
        """Seconds that the server asks to wait."""


class HttpRetriever:
    """Asks a server, from many threads at once.

    Queries that come within a few milliseconds share one request, where the dialect takes several; a query that is
    under way is not sent again. A request that fails for a passing cause (no connection, connection lost, timeout, 429,
    5xx) is repeated after a pause, as ``Retry-After`` asks; 500 too, since a search changes nothing. When a shared
    request fails for what may be the fault of one query, each of its queries is asked again alone.

    Args:
        url: of the server; ``/retrieve`` is added where it has no path.
        dialect: what the server is asked and answers.
        index: names what the server searches; the fingerprint is made of it, or of the URL where it is empty.
        topk_retrieval: passages that a rerank server ranks anew.
        connect_s: seconds to wait for a connection.
        read_s: seconds to wait for (the next part of) an answer.
        pool_s: seconds to wait for a free connection of the pool.
        deadline_s: seconds that a request may take with all its attempts.
        retries: further attempts.
        pause_s: longest pause before the first of them; it doubles with each.
        longest_pause_s: where that ends.
        connections: connections at most.
        window_s: seconds for which a query waits for others.
        max_batch: queries of one request at most.

    Raises:
        ConfigError: the URL is none of HTTP, or the pauses make no sense.
    """

    def __init__(
        self,
        url: str,
        *,
        dialect: Dialect = "search_r1",
        index: str = "",
        topk_retrieval: int = 10,
        connect_s: float = 5.0,
        read_s: float = 30.0,
        pool_s: float = 30.0,
        deadline_s: float = 120.0,
        retries: int = 3,
        pause_s: float = 0.5,
        longest_pause_s: float = 30.0,
        connections: int = 64,
        window_s: float = 0.002,
        max_batch: int = 512,
    ) -> None:
        self._url = _address(url)
        self._shown = str(self._url.copy_with(username=None, password=None))
        self._dialect: Dialect = dialect
        self._topk_retrieval = topk_retrieval
        self._waits = {"connect": connect_s, "read": read_s, "write": read_s, "pool": pool_s}
        self._deadline_s = deadline_s
        self._retry = RetryPolicy(retries=retries, base_s=pause_s, cap_s=longest_pause_s)
        self._rng = np.random.default_rng()  # Spreads pauses only: it has to differ between processes.
        self._window_s = window_s
        self._max_batch = 1 if dialect == "verl_agent" else max_batch
        stages = f" {topk_retrieval}" if dialect == "rerank" else ""
        self.fingerprint = sha256(f"http {index or self._shown} {dialect}{stages}".encode()).hexdigest()[:32]
        self._client = httpx.Client(
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            headers={"Content-Type": "application/json"},
        )
        self._connections = connections
        self._flights: Flights[_Key, tuple[Hit, ...]] = Flights()
        self._lock = threading.Lock()
        self._waiting: dict[int, list[_Key]] = {}
        self._down = False

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """What the server finds; no request without a query.

        Raises:
            ServiceError: There is no usable answer to one of the queries after all attempts.
        """
        if k < 1:
            raise ConfigError(f"Expected to search for at least 1 passage, got k={k}.")
        keys = [(query, k) for query in queries]
        asked, mine = self._flights.join(keys)
        if mine and self._max_batch == 1:
            self._see_to(mine)
        elif mine:
            self._gather(mine, k)
        return [asked[key].result() for key in keys]

    def probe(self, query: str) -> None:
        """Ask one real question, to be done before a run depends on the server.

        Raises:
            ServiceError: The server does not answer in this dialect, or finds nothing at all.
        """
        if not self.search([query], 1)[0]:
            raise ServiceError(
                f"Expected a passage for {query!r} from {self._shown}, got none. Check that the index of the server is "
                "loaded, or probe with a question about what it holds.",
                "malformed",
            )

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self._client.close()

    def _gather(self, keys: list[_Key], k: int) -> None:
        """Join those who wait to be sent; the first of them waits for others and then sees to all."""
        with self._lock:
            waiting = self._waiting.setdefault(k, [])
            leads = not waiting
            waiting.extend(keys)
        if leads:
            try:
                time.sleep(self._window_s)
            finally:
                with self._lock:
                    together = self._waiting.pop(k)
                self._see_to(together)

    def _see_to(self, keys: list[_Key]) -> None:
        """Land or fail every key."""
        batches = [keys[start : start + self._max_batch] for start in range(0, len(keys), self._max_batch)]
        spoilt = [key for keys in self._send(batches) for key in keys]
        self._send([[key] for key in spoilt])

    def _send(self, batches: list[list[_Key]]) -> list[list[_Key]]:
        """A request for each batch, side by side."""
        if len(batches) <= 1:
            return [self._deliver(keys) for keys in batches]
        with ThreadPoolExecutor(min(len(batches), self._connections)) as threads:
            return list(threads.map(self._deliver, batches))

    def _deliver(self, keys: list[_Key]) -> list[_Key]:
        """Land or fail the keys of one request, except for those that are returned: these are to be asked alone."""
        try:
            answers = self._ask([query for query, _ in keys], keys[0][1])
        except BaseException as error:
            if len(keys) > 1 and isinstance(error, ServiceError) and error.cause in _OF_ONE:
                return keys
            for key in keys:
                self._flights.fail(key, error)
            if not isinstance(error, Exception):
                raise
            return []
        for key, answer in zip(keys, answers, strict=True):
            self._flights.land(key, answer)
        return []

    def _ask(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The answers to one request, after as many attempts as make sense."""
        body = ask(self._dialect, queries, k, topk_retrieval=self._topk_retrieval)
        end = time.monotonic() + self._deadline_s
        for attempt in count():
            try:
                answers = self._attempt(body, len(queries), k, end)
                self._down = False
                return answers
            except _RequestError as failure:
                again = self._retry.again(failure.cause, attempt)
                left = end - time.monotonic()
                pause = self._retry.delay(attempt, self._rng, retry_after=failure.wait_s, left=left) if again else None
                if pause is None:
                    times = "once" if attempt == 0 else f"{attempt + 1} times"
                    raise ServiceError(f"{failure} Asked {times}.", failure.cause) from None
                if attempt and not self._down:
                    self._down = True  # Said once, not by every thread.
                    _log.warning("retriever_down", url=self._shown, cause=failure.cause, because=str(failure))
            time.sleep(pause)
        raise AssertionError("attempts end by themselves")

    def _attempt(self, body: bytes, queries: int, k: int, end: float) -> list[tuple[Hit, ...]]:
        expected = f"Expected passages for {queries} queries from {self._shown}"
        left = max(end - time.monotonic(), 1e-3)
        timeout = httpx.Timeout(**{name: min(wait, left) for name, wait in self._waits.items()})
        try:
            with self._client.stream("POST", self._url, content=body, timeout=timeout) as response:
                status, headers = response.status_code, response.headers
                content = bytearray()
                for part in response.iter_bytes():
                    content += part
                    if time.monotonic() > end:  # The timeout is that of one part.
                        raise httpx.ReadTimeout("the whole reply took too long")
                    if len(content) > _MOST_BYTES:
                        raise _RequestError(f"{expected}, got a reply of over {_MOST_BYTES >> 20} MiB.", "malformed")
        except httpx.TimeoutException as error:
            raise _RequestError(
                f"{expected}, got {type(error).__name__} ({error}). Is it overloaded?", "timeout"
            ) from None
        except httpx.TransportError as error:
            got = f"{type(error).__name__}: {error}"
            raise _RequestError(f"{expected}, got {got}. Check that the server runs.", "unreachable") from None
        except httpx.DecodingError as error:
            raise _RequestError(f"{expected}, got a reply that cannot be unpacked: {error}.", "malformed") from None
        if status != 200:
            said = bytes(content[:200]).decode("utf-8", "replace")
            wait_s = retry_after(headers, time.time())
            raise _RequestError(f"{expected}, got status {status}: {said}.", cause_of(status), wait_s)
        try:
            return read_answer(bytes(content), queries, k)
        except ValueError as error:
            raise _RequestError(f"{expected} (dialect {self._dialect}), got {error}.", "malformed") from None


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"Expected the URL of a retrieval server, got {url!r}: {error}.") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise ConfigError(f"Expected the URL of a retrieval server, e.g. http://127.0.0.1:8000, got {url!r}.")
    return address.copy_with(path="/retrieve") if address.path in ("", "/") else address
