"""A server on loopback that speaks chat completions and misbehaves as a script says."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Act = Callable[[BaseHTTPRequestHandler], None]
"""What the server does with one request."""


def completion(
    content: Any = "hello", *, finish: str | None = "stop", calls: Any = None, prompt: int = 7, reply: int = 3
) -> dict[str, Any]:
    """A chat completion as servers send it."""
    return {
        "id": "x",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "tool_calls": calls},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply},
    }


def say(body: Any, status: int = 200, headers: dict[str, str] | None = None, *, kind: str = "application/json") -> Act:
    """Answer with a status, headers and a body; what is no text or bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(raw)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)

    return act


def late(seconds: float, then: Act) -> Act:
    """Wait before something else."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        then(handler)

    return act


def cut(body: bytes) -> Act:
    """Promise more than is sent, then close."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body) + 1000))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    return act


def reset(handler: BaseHTTPRequestHandler) -> None:
    """Reset the connection without an answer."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def drip(body: bytes, pause: float) -> Act:
    """Send byte by byte."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for byte in body:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(pause)

    return act


class ChatServer:
    """Answers one request after another with the acts of a script, the last one for ever.

    A script may also be a function from the request's body to an act.
    """

    def __init__(self) -> None:
        self.script: Sequence[Act] | Callable[[dict[str, Any]], Act] = [say(completion())]
        self.requests: list[dict[str, Any]] = []
        """Bodies, in the order of arrival."""
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Clients that hang up are what is tested."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the interface begins."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self.times.append(time.monotonic())
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            act = self.script(body) if callable(self.script) else self.script[min(number, len(self.script) - 1)]
            act(handler)
        finally:
            with self._lock:
                self._at_once -= 1
