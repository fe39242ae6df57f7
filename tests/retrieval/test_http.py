"""The client of retrieval servers, against real ones."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer

from prover.errors import ConfigError, ServiceError
from prover.retrieval import Passage, Retriever
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.http import HttpRetriever
from prover.retrieval.server import RetrievalServer
from prover.retriever_config import Dialect

Open = Callable[..., HttpRetriever]


@pytest.fixture
def client(script: Any) -> Iterator[Open]:
    """Opens clients of the scripted server, with pauses of milliseconds."""
    opened = []

    def open_one(**options: Any) -> HttpRetriever:
        opened.append(HttpRetriever(options.pop("url", script.url), **{"pause_s": 0.002, **options}))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
        one.close()


def found(retriever: HttpRetriever, query: str) -> str:
    """The text of the first passage for a query."""
    return retriever.search([query], 1)[0][0].passage.text


@pytest.mark.parametrize("dialect", ["search_r1", "verl_agent", "rerank"])
def test_our_server_answers_our_client(passages: Sequence[Passage], client: Open, dialect: Dialect) -> None:
    """In every dialect the hits over HTTP are those of the retriever behind the server."""
    local = Bm25Retriever(passages)
    server = RetrievalServer(local, dialect=dialect)
    thread = threading.Thread(target=server.serve)
    thread.start()
    remote = client(url=server.url, dialect=dialect)
    queries = ["old mill of Tesk", "nothing known", "who built bridges", "salt", "old mill of Tesk"]
    assert remote.search(queries, 2) == local.search(queries, 2)
    assert isinstance(remote, Retriever)
    remote.probe("salt")
    with pytest.raises(ServiceError, match="Check that the index"):
        remote.probe("nothing known")
    remote.close()
    server.stop()
    thread.join(20)


def test_a_batch_is_one_request(script: Any, client: Open) -> None:
    """Repetitions are sent once, and no queries are no request."""
    retriever = client()
    assert retriever.search([], 3) == []
    assert [hits[0].passage.text for hits in retriever.search(["a", "b", "a"], 3)] == ["about a", "about b", "about a"]
    assert script.asked == [{"queries": ["a", "b"], "topk": 3, "return_scores": True}]


def test_long_batches_are_cut(script: Any, client: Open) -> None:
    """No request has more than ``max_batch`` queries."""
    queries = [f"q{number}" for number in range(10)]
    assert [hits[0].passage.id for hits in client(max_batch=4).search(queries, 1)] == queries
    assert sorted(len(asked["queries"]) for asked in script.asked) == [2, 4, 4]


def test_one_query_a_request(script: Any, client: Open) -> None:
    """In the dialect of verl-agent a batch fans out."""
    queries = [f"q{number}" for number in range(10)]
    assert [hits[0].passage.id for hits in client(dialect="verl_agent").search([*queries, "q0"], 1)] == [*queries, "q0"]
    assert sorted(asked["query"] for asked in script.asked) == queries


def test_threads_share_requests(script: Any, client: Open) -> None:
    """What many threads ask within the window goes out together, each query once."""
    retriever = client(window_s=1.0)
    together = threading.Barrier(16)

    def ask(number: int) -> str:
        together.wait()
        return found(retriever, f"q{number % 8}")

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(ask, range(16))) == [f"about q{number % 8}" for number in range(16)]
    assert [sorted(asked["queries"]) for asked in script.asked] == [[f"q{number}" for number in range(8)]]


def test_a_query_under_way_is_not_sent_again(script: Any, client: Open) -> None:
    """Who asks for it meanwhile waits for the same answer; another k is another question."""
    script.steps = ["wait"]
    retriever = client(window_s=0)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(found, retriever, "a")
        while not script.asked:
            threading.Event().wait(0.01)
        others = [threads.submit(found, retriever, "a") for _ in range(5)]
        assert len(retriever.search(["a"], 2)) == 1
        script.gate.set()
        assert {answer.result(10) for answer in [first, *others]} == {"about a"}
    assert sorted(asked["topk"] for asked in script.asked) == [1, 2]


@pytest.mark.parametrize("step", [(status, {}, b"busy") for status in (429, 500, 502, 503, 504)] + ["reset"])
def test_what_may_pass_is_tried_again(script: Any, client: Open, step: Any) -> None:
    """Three times, and then the fourth answer is the one."""
    script.steps = [step] * 3
    assert found(client(), "a") == "about a"
    assert len(script.asked) == 4


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        ((429, {}, b"busy"), "rate_limited"),
        ((503, {}, b"busy"), "server"),
        ((504, {}, b"busy"), "timeout"),
        ("reset", "unreachable"),
    ],
)
def test_tries_have_an_end(script: Any, client: Open, step: Any, cause: str) -> None:
    """After that the caller learns why; it is an error, not an empty result, and is not remembered."""
    script.steps = [step] * 3
    retriever = client(retries=2)
    with pytest.raises(ServiceError, match="Asked 3 times") as caught:
        retriever.search(["a"], 3)
    assert caught.value.cause == cause
    assert found(retriever, "a") == "about a"


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        ((400, {}, b"no"), "refused"),
        ((401, {}, b"no"), "unauthorized"),
        ((402, {}, b"no"), "payment"),
        ((404, {}, b"no"), "refused"),
        ((422, {}, b"no"), "refused"),
        ((307, {"Location": "/"}, b""), "malformed"),
        ((200, {}, b"<html>"), "malformed"),
        ((200, {}, b'{"result": []}'), "malformed"),
        ((200, {}, b'{"result": [[{"document": {"contents": "\\"T\\"\\n"}, "score": 1}]]}'), "malformed"),
        ((200, {"Content-Encoding": "gzip"}, b"plain"), "malformed"),
    ],
)
def test_what_will_not_pass_is_not_tried_again(script: Any, client: Open, step: Any, cause: str) -> None:
    """Refusals and replies that nobody can use are told at once."""
    script.steps = [step]
    with pytest.raises(ServiceError, match="Asked once") as caught:
        client().search(["a"], 3)
    assert caught.value.cause == cause
    assert len(script.asked) == 1


def test_retry_after_is_honoured(script: Any, client: Open) -> None:
    """The pause is at least what the server asks for, and none is made that outlasts the deadline."""
    script.steps = [(429, {"Retry-After": "0.3"}, b"")]
    start = time.monotonic()
    assert found(client(), "a") == "about a"
    assert time.monotonic() - start >= 0.3
    script.steps = [(429, {"Retry-After": "3600"}, b"")]
    with pytest.raises(ServiceError, match="Asked once"):
        client().search(["b"], 3)


def test_servers_that_do_not_answer(script: Any, client: Open) -> None:
    """A reply that does not come is a timeout, and one that is late is not waited for."""
    script.steps = ["wait", "wait"]
    with pytest.raises(ServiceError, match=r"ReadTimeout.*Asked 2 times") as caught:
        client(read_s=0.05, retries=1).search(["a"], 3)
    assert caught.value.cause == "timeout"


def test_the_deadline_is_that_of_all_tries(script: Any, client: Open) -> None:
    """However many retries are left."""
    script.steps = ["wait"] * 100
    with pytest.raises(ServiceError) as caught:
        client(read_s=0.05, deadline_s=0.4, retries=100, pause_s=0.01).search(["a"], 3)
    assert caught.value.cause == "timeout"
    assert 1 <= len(script.asked) <= 10


def test_replies_that_trickle(client: Open) -> None:
    """Parts that come in time do not keep a reply alive beyond the deadline."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def trickle() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not stopped.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    thread = threading.Thread(target=trickle)
    thread.start()
    with pytest.raises(ServiceError, match="too long") as caught:
        client(url=f"http://127.0.0.1:{listener.getsockname()[1]}", deadline_s=1.0).search(["a"], 3)
    assert caught.value.cause == "timeout"
    stopped.set()
    thread.join(20)
    listener.close()


def test_nobody_listens(client: Open) -> None:
    """Neither a search nor the probe passes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    retriever = client(url=f"http://127.0.0.1:{port}", retries=1)
    for ask in (lambda: retriever.search(["a"], 3), lambda: retriever.probe("a")):
        with pytest.raises(ServiceError, match="server runs") as caught:
            ask()
        assert caught.value.cause == "unreachable"


@pytest.mark.parametrize("retries", [0, 1])
def test_one_query_does_not_spoil_others(script: Any, client: Open, retries: int) -> None:
    """Queries that shared a failed request are asked again alone, so that only the bad one fails."""
    script.spoilt = "bad"
    retriever = client(window_s=1.0, retries=retries)
    together = threading.Barrier(4)

    def ask(query: str) -> str:
        together.wait()
        try:
            return found(retriever, query)
        except ServiceError as error:
            return error.cause

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, ["a", "bad", "b", "c"]))
    assert answers == ["about a", "server", "about b", "about c"]
    assert Counter(len(asked["queries"]) for asked in script.asked) == {4: 1 + retries, 1: 4 + retries}


def test_an_outage_is_told_once(script: Any, client: Open, capsys: pytest.CaptureFixture[str]) -> None:
    """Not by every try, not for one failure, and again when the server has answered meanwhile."""
    retriever = client()
    for query, failures, told in [("a", 1, 0), ("b", 3, 1), ("c", 0, 0), ("d", 2, 1)]:
        script.steps = [(503, {}, b"busy")] * failures
        assert found(retriever, query) == f"about {query}"
        assert capsys.readouterr().out.count("retriever_down") == told


def test_an_outage_fails_all_who_wait(script: Any, client: Open) -> None:
    """Nobody is left waiting."""
    script.steps = [(503, {}, b"busy")] * 100
    retriever = client(window_s=0.2, retries=0)

    def ask(number: int) -> str:
        with pytest.raises(ServiceError) as caught:
            retriever.search([f"q{number}"], 3)
        return caught.value.cause

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(8))) == {"server"}


def test_after_closing_nobody_waits(script: Any, client: Open) -> None:
    """A search on a closed client fails at once, alone or in a batch."""
    for options in ({}, {"dialect": "verl_agent"}):
        retriever = client(**options)
        retriever.close()
        for queries in (["a"], ["a", "b"]):
            with pytest.raises(RuntimeError, match="closed"):
                retriever.search(queries, 3)
    assert script.asked == []


def test_fingerprints() -> None:
    """What the server searches, if it has a name, else where it is; never a password."""
    bare = HttpRetriever("http://here:8000")
    assert bare.fingerprint == HttpRetriever("http://me:secret@here:8000/retrieve").fingerprint
    named = HttpRetriever("http://here:8000", index="wiki-18 e5").fingerprint
    assert named == HttpRetriever("http://there:9000/search", index="wiki-18 e5").fingerprint
    others = [
        HttpRetriever("http://there:8000"),
        HttpRetriever("http://here:8000", index="wiki-18 bm25"),
        HttpRetriever("http://here:8000", dialect="rerank"),
        HttpRetriever("http://here:8000", dialect="rerank", topk_retrieval=50),
    ]
    assert len({bare.fingerprint, named, *(other.fingerprint for other in others)}) == 6


def test_messages_keep_passwords(script: Any, client: Open) -> None:
    """The address in a message has no password."""
    script.steps = [(404, {}, b"no")]
    retriever = client(url=script.url.replace("http://", "http://me:secret@"))
    with pytest.raises(ServiceError, match=r"from http://127") as caught:
        retriever.search(["a"], 3)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://here", "http://", "", "http://here:port"])
def test_addresses_that_are_none(url: str) -> None:
    """The message shows one."""
    with pytest.raises(ConfigError, match="retrieval server"):
        HttpRetriever(url)


def test_nothing_to_return(client: Open) -> None:
    """A search for no passages is a mistake."""
    with pytest.raises(ConfigError, match="k=0"):
        client().search(["a"], 0)


@pytest.mark.parametrize("dialect", ["search_r1", "verl_agent"])
def test_nothing_is_lost_under_load(tmp_path: Path, dialect: Dialect) -> None:
    """64 threads, 5% failures of four kinds and a server that is killed and restarted: every answer is right."""
    words = ["salt", "mill", "bridge", "harbour", "tower", "river", "orchard", "market", "stone", "lamp"]
    passages = [
        Passage(
            id=f"{number:03}", title=f"Place {number}", text=" ".join(words[number % 7 : number % 7 + 3 + number % 4])
        )
        for number in range(200)
    ]
    local = Bm25Retriever(passages)
    done = threading.Semaphore(0)

    def episode(number: int) -> list[bool]:
        answers = []
        for turn in range(5):
            query = f"{words[number % 10]} {words[turn % 10]} place {number}"
            answers.append(remote.search([query], 3) == local.search([query], 3))
            done.release()
        return answers

    with FaultyServer(tmp_path, passages, dialect) as server, ThreadPoolExecutor(64) as threads:
        remote = HttpRetriever(server.url, dialect=dialect, read_s=0.5, retries=999, pause_s=0.05, longest_pause_s=0.3)
        episodes = [threads.submit(episode, number) for number in range(64)]
        for _ in range(100):
            assert done.acquire(timeout=60)
        server.kill()
        server.start()
        assert [answer for one in episodes for answer in one.result(60)] == [True] * (64 * 5)
        remote.close()
        # Alone, the queries make 320 requests; together, at least one for each turn.
        assert sum(server.faults().values()) >= (16 if dialect == "verl_agent" else 1)
