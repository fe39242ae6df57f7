"""A chat model behind a server that speaks the chat completions of OpenAI."""

import asyncio
import json
import os
import ssl
import time
from collections.abc import Generator
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import httpx
import numpy as np
import structlog

from prover.backend_config import HttpBackendConfig
from prover.backends.completion import answer_of, format_of, request_of, tools_of
from prover.chat import Answer, Ask
from prover.errors import ConfigError, ServiceError
from prover.retry import RetryPolicy, cause_of, retry_after

_log = structlog.get_logger(__name__)

_MOST_BYTES = 8 << 20
"""Longest body that is read."""
_CONNECT_S = 10.0
_SHOWN = 300
"""Characters of a refusal that are repeated."""


class HttpBackend:
    """Asks one model of a server.

    A request that fails for a reason which may pass (timeout, no connection, 429, 5xx) is repeated after a pause, as
    ``Retry-After`` asks, until the retries or the time of the ask are used up. Where tools are offered, no schema is
    sent: a reply that may be a call of a tool cannot be kept to one. A server that refuses the tools or the schema (400
    or 422) is asked once more without; if it then answers, it is not offered them again.

    The key is read from the environment for every request and kept nowhere. Connections belong to the event loop that
    opened them; another loop gets its own.
    """

    def __init__(self, config: HttpBackendConfig) -> None:
        """Prepare to ask; nothing is sent.

        Raises:
            ConfigError: The address is none, or the environment variable of the key holds no key.
        """
        self.name = f"{config.model} at {config.url}"
        self._config = config
        try:
            self._url = httpx.URL(f"{config.url}/chat/completions")
            _ = self._url.host  # Decoding an international name is what the first request would fail at.
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConfigError(f"Expected the address of a server as url, got {config.url}: {error}.") from None
        self._auth = _Key(config.key_env) if config.key_env else None
        self._retry = RetryPolicy(retries=config.retries)
        self._rng = np.random.default_rng()  # spreads pauses only: it has to differ between processes
        self._refused: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: httpx.AsyncClient | None = None

    async def ask(self, ask: Ask) -> Answer:
        """See ``Backend.ask``."""
        start = time.monotonic()
        end = float("inf") if ask.deadline_s is None else start + ask.deadline_s
        body = request_of(ask, model=self._config.model, limit_key=self._config.limit_key, extra=self._config.body)
        wish = self._wish(ask)
        try:
            answer, sent = await self._ask_with(body, wish, end)
        except _RequestError as failure:
            times = "once" if failure.sent == 1 else f"{failure.sent} times"
            raise ServiceError(f"{failure}. Asked {times}.", failure.cause) from None
        cost = (
            answer.usage.prompt_tokens * self._config.price_prompt
            + answer.usage.completion_tokens * self._config.price_reply
        ) / 1e6
        return replace(answer, usage=replace(answer.usage, calls=sent, seconds=time.monotonic() - start, cost=cost))

    async def aclose(self) -> None:
        """See ``Backend.aclose``; asking again opens new connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    def _wish(self, ask: Ask) -> dict[str, Any]:
        """The one field that goes beyond plain text, if any."""
        if ask.tools and self._config.tools == "native" and "tools" not in self._refused:
            return tools_of(ask)
        if ask.schema is not None and self._config.structured != "none" and "response_format" not in self._refused:
            return format_of(ask.schema, self._config.structured)
        return {}

    async def _ask_with(self, body: dict[str, Any], wish: dict[str, Any], end: float) -> tuple[Answer, int]:
        """An answer and how many requests it took; without the wish if the server refuses it."""
        try:
            return await self._attempts(body | wish, end)
        except _RequestError as refusal:
            if not wish or refusal.status not in (400, 422):
                raise
            try:
                answer, sent = await self._attempts(body, end)
            except _RequestError as failure:
                failure.sent += refusal.sent
                raise
            field = next(iter(wish))
            if field not in self._refused:
                self._refused.add(field)
                _log.warning("backend_refuses", backend=self.name, field=field, because=str(refusal))
            return answer, sent + refusal.sent

    async def _attempts(self, body: dict[str, Any], end: float) -> tuple[Answer, int]:
        """An answer and how many requests it took, after as many as make sense."""
        for attempt in count():
            try:
                return await self._send(body, min(self._config.timeout_s, end - time.monotonic())), attempt + 1
            except _RequestError as failure:
                failure.sent = attempt + 1
                if not self._retry.again(failure.cause, attempt):
                    raise
                left = end - time.monotonic()
                pause = self._retry.delay(attempt, self._rng, retry_after=failure.retry_after, left=left)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("attempts end by themselves")

    async def _send(self, body: dict[str, Any], timeout_s: float) -> Answer:
        """One request, read to its end in time, or a failure that may be shown to anybody."""
        try:
            async with asyncio.timeout(timeout_s):
                status, headers, raw = await self._exchange(body)
        except (TimeoutError, httpx.TimeoutException):
            raise _RequestError(f"{self._asked()} within {timeout_s:.3g} s, got none", "timeout") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            # Not chained: the original may hold headers.
            got = self._harmless(f"{type(error).__name__}: {error}")
            raise _RequestError(
                f"{self._asked()}, got {got}; check the address and the server", "unreachable"
            ) from None
        if status != 200:
            cause = cause_of(status)
            got = self._harmless(raw.decode("utf-8", "replace"))
            raise _RequestError(
                f"{self._asked()}, got status {status}{_ADVICE.get(cause, '')}: {got or 'no body'}",
                cause,
                status=status,
                retry_after=retry_after(headers, time.time()),
            )
        if len(raw) > _MOST_BYTES:
            raise _RequestError(
                f"{self._asked()} of at most {_MOST_BYTES} bytes, got more; lower max_tokens", "malformed"
            )
        try:
            return answer_of(raw)
        except ServiceError as error:
            got = self._harmless(raw.decode("utf-8", "replace"))
            raise _RequestError(f"{self.name}: {error}; the body is {got!r}", error.cause) from None

    async def _exchange(self, body: dict[str, Any]) -> tuple[int, httpx.Headers, bytes]:
        raw = bytearray()
        content, headers = json.dumps(body), {"Content-Type": "application/json"}
        async with self._open().stream(
            "POST", self._url, content=content, headers=headers, auth=self._auth
        ) as response:
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) > _MOST_BYTES:
                    break
        return response.status_code, response.headers, bytes(raw)

    def _open(self) -> httpx.AsyncClient:
        """The client of this event loop. How many connections there are, the caller decides."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop = loop
            self._client = httpx.AsyncClient(
                verify=_tls(),
                timeout=httpx.Timeout(None, connect=_CONNECT_S),
                limits=httpx.Limits(max_connections=None),
            )
        return self._client

    def _asked(self) -> str:
        return f"Expected an answer of {self.name}"

    def _harmless(self, text: str) -> str:
        """What a server or a library says, cut and without the key."""
        if self._auth is not None and (key := self._auth.read()):
            text = text.replace(key, "[key]")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates takes longer than many a request.
    return httpx.create_ssl_context()


_ADVICE = {
    "unauthorized": " (check the key that key_env names)",
    "payment": " (check the account)",
    "rate_limited": " (ask less at once, or later)",
}


class _RequestError(ServiceError):
    """A request that failed, with what decides about another one."""

    def __init__(self, message: str, cause: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message, cause)
        self.status = status
        self.retry_after = retry_after
        self.sent = 1


class _Key(httpx.Auth):
    """Puts the key into a request and nowhere else."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        key = self.read()
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(
                f"Expected a key in the environment variable {variable}, got "
                f"{'characters that no key has' if key else 'none'}. Set it to the key of the service."
            )

    def read(self) -> str:
        """The key as it is now."""
        return os.environ.get(self._variable, "").strip()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """See ``httpx.Auth``."""
        request.headers["Authorization"] = f"Bearer {self.read()}"
        yield request
