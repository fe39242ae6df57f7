"""A retrieval server: any retriever of this process, for clients that speak one of the three dialects.

``POST /retrieve`` searches, ``GET /health`` says what is served. Made of the standard library: a thread for each
connection, which is kept alive between requests.
"""

import json
import signal
import socket
import sys
import threading
import traceback
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast, get_args

import structlog

from prover.errors import ConfigError, ServiceError
from prover.retrieval.build import open_retriever
from prover.retrieval.corpus import read_corpus
from prover.retrieval.dialects import answer, read_question
from prover.retrieval.retriever import Retriever
from prover.retriever_config import Dialect, ServedConfig

_log = structlog.get_logger(__name__)

_MOST_BYTES = 8 << 20
"""Longest request that is read."""
_IDLE_S = 60.0
"""Seconds after which a silent connection is closed."""
_DRAIN_S = 10.0
"""Seconds that requests in flight have to end when the server stops."""


class RetrievalServer:
    """Serves a retriever until it is stopped.

    Args:
        retriever: what searches.
        host: address to listen at.
        port: port to listen at; 0 takes a free one, see ``url``.
        dialect: what is asked and answered.
        k: passages for requests that do not say how many.

    Raises:
        ConfigError: there is no listening at that address.
    """

    def __init__(
        self,
        retriever: Retriever,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        dialect: Dialect = "search_r1",
        k: int = 3,
    ) -> None:
        self.retriever = retriever
        self.dialect: Dialect = dialect
        self.k = k
        self.stopping = False
        self._in_flight = 0
        self._idle = threading.Condition()
        try:
            self._listener = _Listener((host, port), Handler, self)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"Expected to listen at {host}:{port}, got {error}. Choose another port, or 0 for a free one."
            ) from error
        self.url = f"http://{host}:{self._listener.server_port}"

    def serve(self) -> None:
        """Answer until ``stop`` is called; requests in flight are answered first."""
        try:
            self._listener.serve_forever(poll_interval=0.1)
            with self._idle:
                self._idle.wait_for(lambda: not self._in_flight, _DRAIN_S)
        finally:
            self._listener.server_close()

    def stop(self) -> None:
        """Let ``serve`` end; may be called from a signal handler."""
        self.stopping = True
        # `shutdown` waits for the thread that serves, which may be the one that handles the signal.
        threading.Thread(target=self._listener.shutdown, daemon=True).start()

    def reply(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a request; never raises."""
        try:
            question = read_question(self.dialect, body)
        except ValueError as error:
            return 422, _detail(f"no request of dialect {self.dialect}: {error}")
        try:
            found = self.retriever.search(question.queries, question.k or self.k)
            return 200, answer(self.dialect, found, scores=question.scores)
        except ServiceError as error:
            return 503, _detail(str(error))
        except Exception as error:
            _log.error("search_failed", error=traceback.format_exc())
            return 500, _detail(f"{type(error).__name__}: {error}")

    def __enter__(self) -> "RetrievalServer":
        with self._idle:
            self._in_flight += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._idle:
            self._in_flight -= 1
            self._idle.notify_all()


class _Listener(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], owner: RetrievalServer) -> None:
        self.owner = owner
        super().__init__(address, handler)

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
        """Report what went wrong, unless the client just went away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "prover"
    sys_version = ""
    timeout = _IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1  # Head and body leave together.
    server: _Listener

    def do_GET(self) -> None:
        """Health."""
        owner = self.server.owner
        if self.path != "/health":
            self._send(404, _detail("there are POST /retrieve and GET /health"))
            return
        health = {"status": "ok", "dialect": owner.dialect, "fingerprint": owner.retriever.fingerprint}
        self._send(200, json.dumps(health).encode())

    def do_POST(self) -> None:
        """Search."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self._refuse(411, "a request needs its Content-Length")
        elif int(length) > _MOST_BYTES:
            self._refuse(413, f"a request has at most {_MOST_BYTES} bytes")
        else:
            body = self.rfile.read(int(length))
            if len(body) < int(length):
                self.close_connection = True  # The client went away.
            elif self.path != "/retrieve":
                self._send(404, _detail("there are POST /retrieve and GET /health"))
            else:
                with self.server.owner as owner:
                    self._send(*owner.reply(body))

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet: a run sends thousands of requests."""

    def _refuse(self, status: int, detail: str) -> None:
        """Refuse a request whose body is not read: the connection cannot be used again."""
        self.close_connection = True
        self._send(status, _detail(detail))

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.server.owner.stopping or self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def serve(config: ServedConfig, *, host: str, port: int, dialect: str, k: int) -> None:
    """Open a retriever, say where it is served, and serve it until SIGTERM or SIGINT; for the main thread.

    Raises:
        ConfigError: there is no such dialect, or no listening at that address; or as ``open_retriever``.
        DataError: as ``read_corpus`` and ``open_retriever``.
    """
    if dialect not in get_args(Dialect):
        raise ConfigError(f"Expected a dialect among {', '.join(get_args(Dialect))}, got {dialect!r}.")
    passages = None if config.corpus is None else read_corpus(config.corpus)
    with closing(open_retriever(config.retriever, passages)) as retriever:
        server = RetrievalServer(retriever, host=host, port=port, dialect=cast("Dialect", dialect), k=k)
        for wanted in (signal.SIGTERM, signal.SIGINT):
            signal.signal(wanted, lambda *_: server.stop())
        what = "passages of another server" if passages is None else f"{len(passages):,} passages"
        print(f"serving {what} in dialect {dialect} at {server.url}/retrieve", flush=True)
        server.serve()


def _detail(text: str) -> bytes:
    return json.dumps({"detail": text}).encode()
