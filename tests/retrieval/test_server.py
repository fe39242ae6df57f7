"""The retrieval server, over real connections."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from prover.cli import main
from prover.errors import ConfigError, ServiceError
from prover.retrieval import Hit, Passage
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.corpus import read_corpus
from prover.retrieval.server import RetrievalServer

SEARCH = {"queries": ["salt"], "topk": 1, "return_scores": True}


@pytest.fixture
def server(passages: Sequence[Passage]) -> Iterator[RetrievalServer]:
    """A server of the small corpus."""
    server = RetrievalServer(Bm25Retriever(passages), k=2)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server
    server.stop()
    thread.join(20)
    assert not thread.is_alive()


def connect(url: str) -> http.client.HTTPConnection:
    """A connection to a server."""
    return http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)


def post(connection: http.client.HTTPConnection, body: Any, path: str = "/retrieve") -> tuple[int, Any]:
    """Status and body of the answer to a request."""
    connection.request("POST", path, json.dumps(body) if not isinstance(body, bytes) else body)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_it_searches(server: RetrievalServer) -> None:
    """Many requests go over one connection; a request may leave the number of passages to the server."""
    connection = connect(server.url)
    for _ in range(3):
        status, answer = post(connection, SEARCH)
        assert (status, answer["result"][0][0]["document"]["title"]) == (200, "Vint")
        assert connection.sock is not None
    assert len(post(connection, {"queries": ["Tesk"]})[1]["result"][0]) == 2
    assert post(connection, {"queries": []}) == (200, {"result": []})
    connection.close()


def test_health(server: RetrievalServer) -> None:
    """It says what is served."""
    connection = connect(server.url)
    connection.request("GET", "/health")
    health = json.loads(connection.getresponse().read())
    assert health == {"status": "ok", "dialect": "search_r1", "fingerprint": server.retriever.fingerprint}
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    assert (response.status, "GET /health" in response.read().decode()) == (404, True)
    connection.close()


def test_what_is_refused(server: RetrievalServer) -> None:
    """Other paths and dialects; the connection stays of use."""
    connection = connect(server.url)
    assert post(connection, SEARCH, "/search")[0] == 404
    status, answer = post(connection, {"query": "salt"})
    assert (status, "no request of dialect search_r1: queries" in answer["detail"]) == (422, True)
    assert post(connection, b"\xff{")[0] == 422
    assert post(connection, SEARCH)[0] == 200
    connection.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST /retrieve HTTP/1.1\r\nHost: x\r\n\r\n", 411),
        ("POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 411),
        ("POST /retrieve HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (f"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 40}\r\n\r\n", 413),
        ("DELETE /retrieve HTTP/1.1\r\nHost: x\r\n\r\n", 501),
    ],
)
def test_bodies_have_a_bound(server: RetrievalServer, head: str, status: int) -> None:
    """Nothing is read of a request that is too long or does not say how long it is; the connection is closed."""
    with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])), timeout=20) as raw:
        raw.sendall(head.encode())
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_a_client_that_goes_away(server: RetrievalServer, capfd: pytest.CaptureFixture[str]) -> None:
    """Half a request disturbs nobody and is not reported."""
    with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1]))) as raw:
        raw.sendall(b"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    connection = connect(server.url)
    assert post(connection, SEARCH)[0] == 200
    connection.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("failure", "status"), [(ServiceError("no passages", "timeout"), 503), (ZeroDivisionError("by zero"), 500)]
)
def test_failures_have_a_status(watched: Any, failure: Exception, status: int) -> None:
    """A failed search is never an empty result."""
    watched.failure = failure
    server = RetrievalServer(watched)
    thread = threading.Thread(target=server.serve)
    thread.start()
    connection = connect(server.url)
    assert post(connection, SEARCH)[0] == status
    connection.close()
    server.stop()
    thread.join(20)


def test_stopping_answers_what_is_in_flight(watched: Any) -> None:
    """A search that has begun is answered, and the connection then closed; new ones are refused."""
    server = RetrievalServer(watched)
    thread = threading.Thread(target=server.serve)
    thread.start()
    watched.gate.clear()
    connection = connect(server.url)
    connection.request("POST", "/retrieve", json.dumps(SEARCH))
    while not watched.asked:
        threading.Event().wait(0.01)
    server.stop()
    threading.Event().wait(0.2)
    assert thread.is_alive()
    watched.gate.set()
    response = connection.getresponse()
    assert (response.status, response.headers["Connection"]) == (200, "close")
    connection.close()
    thread.join(20)
    with pytest.raises(ConnectionError):
        connect(server.url).connect()


def test_a_port_that_is_taken(server: RetrievalServer, watched: Any) -> None:
    """The message names it."""
    port = int(server.url.rsplit(":", 1)[1])
    with pytest.raises(ConfigError, match=f"listen at 127.0.0.1:{port}"):
        RetrievalServer(watched, port=port)
    with pytest.raises(ConfigError, match="70000"):
        RetrievalServer(watched, port=70_000)


def test_slow_searches_do_not_block_others(passages: Sequence[Passage]) -> None:
    """Each connection has its thread."""
    gate = threading.Event()

    class Slow(Bm25Retriever):
        def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
            assert queries[0] != "slow" or gate.wait(20)
            return super().search(queries, k)

    server = RetrievalServer(Slow(passages))
    thread = threading.Thread(target=server.serve)
    thread.start()
    slow, quick = connect(server.url), connect(server.url)
    slow.request("POST", "/retrieve", json.dumps({"queries": ["slow"]}))
    assert post(quick, SEARCH)[0] == 200
    gate.set()
    assert slow.getresponse().status == 200
    slow.close()
    quick.close()
    server.stop()
    thread.join(20)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_command(tmp_path: Path, stop: signal.Signals) -> None:
    """It serves a corpus in one of the dialects until it is told to stop, and then exits with 0."""
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "title": "Vint", "text": "Trades in salt."}\n')
    words = ["serve-retriever", str(tmp_path), "--port", "0", "--dialect", "verl_agent"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from prover.cli import main; main()", *words],
        stdout=subprocess.PIPE,
        text=True,
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": ""},
    )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
        connection = connect(line.split()[-1].removesuffix("/retrieve"))
        status, answer = post(connection, {"query": "salt", "return_scores": True})
        assert (status, answer["result"][0][0]["document"]["id"]) == (200, "1")
        connection.close()
        process.send_signal(stop)
        assert process.wait(20) == 0


def test_a_config_names_corpus_and_retriever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A YAML file says what is served and how it is searched."""
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "title": "Vint", "text": "Trades in salt."}\n')
    (tmp_path / "served.yaml").write_text(
        f"corpus: {tmp_path}\nretriever: {{kind: bm25, b: 0.4, index_folder: {tmp_path / 'cache'}}}\n"
    )
    opened: list[RetrievalServer] = []
    monkeypatch.setattr(RetrievalServer, "serve", lambda server: opened.append(server))
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as ended:
        main(["serve-retriever", str(tmp_path / "served.yaml"), "--port", "0", "--topk", "5"])
    assert ended.value.code == 0
    for wanted, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
        signal.signal(wanted, handler)
    (server,) = opened
    assert (server.k, server.dialect) == (5, "search_r1")
    assert server.retriever.fingerprint == Bm25Retriever(read_corpus(tmp_path), b=0.4).fingerprint
    server._listener.server_close()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["missing.yaml"], "no config file"),
        (["missing.jsonl", "--dialect", "verl"], "search_r1, verl_agent, rerank"),
    ],
)
def test_mistakes_of_the_command(
    tmp_path: Path, words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing corpus or config and an unknown dialect exit with 2."""
    with pytest.raises(SystemExit) as ended:
        main(["serve-retriever", str(tmp_path / words[0]), *words[1:]])
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
