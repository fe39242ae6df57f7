"""A small corpus, a retriever that is watched, and a server that fails as it is told."""

import json
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from prover.errors import ServiceError
from prover.retrieval import Hit, Passage

RIVERS = (
    Passage(id="b", title="Morun", text="The river Morun springs below the old mill of Tesk."),
    Passage(id="a", title="Tesk", text="Tesk is a town with one mill, two bridges and no church."),
    Passage(id="d", title="Salo Beren", text="Salo Beren built both bridges of Tesk and drowned in the Morun."),
    Passage(id="c", title="Vint", text="Vint lies by the sea and trades in salt."),
)


@pytest.fixture
def passages() -> tuple[Passage, ...]:
    """Four passages about places that do not exist."""
    return RIVERS


class Watched:
    """Finds the query itself, with how often the retriever has been asked before, and counts."""

    fingerprint = "watched"

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], int]] = []
        self.closed = 0
        self.failure: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        self.asked.append((tuple(queries), k))
        number = len(self.asked)
        assert self.gate.wait(10)
        if self.failure is not None:
            raise self.failure
        return [
            (Hit(passage=Passage(id=query, title=f"title of {query}", text=f"answer {number}"), score=0.1),)
            for query in queries
        ]

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def watched() -> Watched:
    """A retriever that counts what it is asked."""
    return Watched()


@pytest.fixture
def outage() -> ServiceError:
    """What a retriever raises that has no answer."""
    return ServiceError("expected passages, got nothing", "server")


Step = tuple[int, dict[str, str], bytes] | str
"""Status, headers and body of a reply; or ``reset`` to hang up, ``wait`` for the gate first, then answer."""


class Scripted:
    """A server that answers as told, one step a request, and then as a working one of Search-R1 would."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.asked: list[dict[str, Any]] = []
        self.gate = threading.Event()
        self.spoilt = ""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Reply, self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def next(self, body: bytes) -> Step:
        """What to do with a request."""
        asked = json.loads(body)
        with self._lock:
            self.asked.append(asked)
            step = self.steps.pop(0) if self.steps else ""
        if step == "wait":
            assert self.gate.wait(10)
        elif step:
            return step
        queries = asked["queries"] if "queries" in asked else [asked["query"]]
        if self.spoilt in queries:
            return 500, {}, b"spoilt"
        found = [[{"document": {"id": q, "contents": f'"{q}"\nabout {q}'}, "score": 1.5}] for q in queries]
        return 200, {}, json.dumps({"result": found}).encode()

    def close(self) -> None:
        """Stop serving."""
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class _Reply(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, owner: Scripted, *args: Any) -> None:
        self.owner = owner
        super().__init__(*args)

    def do_POST(self) -> None:
        step = self.owner.next(self.rfile.read(int(self.headers["Content-Length"])))
        if isinstance(step, str):
            self.close_connection = True
            return
        status, headers, body = step
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def script() -> Iterator[Scripted]:
    """A server that fails as it is told."""
    server = Scripted()
    yield server
    server.close()
