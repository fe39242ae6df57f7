"""Requests and replies of the three dialects."""

import json
from typing import Any

import pytest

from prover.retrieval import Hit, Passage
from prover.retrieval.dialects import Question, answer, ask, read_answer, read_question
from prover.retriever_config import Dialect

HITS = (
    Hit(passage=Passage(id="7", title="Tesk", text="A town."), score=2.5),
    Hit(passage=Passage(id="x", title='Say "hi"', text="Two\nlines."), score=0.1),
)


def reply(*results: list[Any]) -> bytes:
    """A body with these results."""
    return json.dumps({"result": list(results)}).encode()


@pytest.mark.parametrize(
    ("dialect", "queries", "expected"),
    [
        ("search_r1", ["a", "b"], {"queries": ["a", "b"], "topk": 3, "return_scores": True}),
        ("verl_agent", ["a"], {"query": "a", "topk": 3, "return_scores": True}),
        ("rerank", ["a"], {"queries": ["a"], "topk_retrieval": 10, "topk_rerank": 3, "return_scores": True}),
    ],
)
def test_what_is_asked(dialect: Dialect, queries: list[str], expected: dict[str, Any]) -> None:
    """The keys of each dialect, always with scores; a server reads what a client writes."""
    body = ask(dialect, queries, 3)
    assert json.loads(body) == expected
    assert read_question(dialect, body) == Question(queries=tuple(queries), k=3, scores=True)


def test_a_rerank_server_finds_at_least_what_it_ranks() -> None:
    """More passages than the first stage finds cannot be ranked."""
    assert json.loads(ask("rerank", ["a"], 12, topk_retrieval=5))["topk_retrieval"] == 12


@pytest.mark.parametrize("dialect", ["search_r1", "verl_agent", "rerank"])
def test_hits_come_back(dialect: Dialect) -> None:
    """A client reads what a server writes; passages survive without scores too, and get ids and falling scores."""
    assert read_answer(answer(dialect, [HITS, ()], scores=True), 2, 3) == [HITS, ()]
    (bare,) = read_answer(answer(dialect, [HITS], scores=False), 1, 3)
    assert [(hit.passage.title, hit.passage.text) for hit in bare] == [("Tesk", "A town."), ('Say "hi"', "Two\nlines.")]
    assert bare[0].score > bare[1].score


def test_bare_rows() -> None:
    """Without scores a document has no wrapper, and a rerank server sends texts alone."""
    document = json.loads(answer("search_r1", [HITS[:1]], scores=False))["result"][0][0]
    assert document == {"id": "7", "title": "Tesk", "text": "A town.", "contents": '"Tesk"\nA town.'}
    assert json.loads(answer("rerank", [HITS[:1]], scores=False))["result"] == [['"Tesk"\nA town.']]


@pytest.mark.parametrize(
    ("row", "title", "text"),
    [
        ({"document": {"id": "1", "contents": '"Tesk"\nA town.'}, "score": 1.0}, "Tesk", "A town."),
        ({"document": {"id": "1", "contents": "Tesk\nA town."}}, "Tesk", "A town."),
        ({"document": {"id": "1", "title": "Tesk", "text": "A town.", "contents": "?"}, "score": 1}, "Tesk", "A town."),
        ({"document": {"id": "1", "text": "A town.", "contents": '"Tesk"\n?'}, "score": 1}, "Tesk", "A town."),
        ({"document": {"id": "1", "text": "A town."}, "score": None}, "", "A town."),
        ({"document": '"Tesk"\nA town.', "score": 1.0}, "Tesk", "A town."),
        ({"id": "1", "contents": '"Tesk"\nA town.'}, "Tesk", "A town."),
        ('"Tesk"\nA town.', "Tesk", "A town."),
        ("A town.", "", "A town."),
    ],
)
def test_forms_of_a_document(row: Any, title: str, text: str) -> None:
    """All forms that servers are known to send."""
    ((hit,),) = read_answer(reply([row]), 1, 3)
    assert (hit.passage.title, hit.passage.text) == (title, text)


def test_ids() -> None:
    """Numbers become text; one that is missing is made of the content, and equal for equal content."""
    rows = [{"id": 12, "text": "a"}, {"text": "a"}, {"text": "b"}, {"text": "a"}]
    number, one, other, same = (hit.passage.id for hit in read_answer(reply(rows), 1, 9)[0])
    assert number == "12"
    assert one == same != other


def test_further_passages_are_dropped() -> None:
    """A server that sends more than was asked for, in its order."""
    ((one, two),) = read_answer(reply([{"text": "a"}, {"text": "b"}, {"text": "c"}]), 1, 2)
    assert (one.passage.text, two.passage.text) == ("a", "b")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>", "JSON"),
        (b"\xff", "JSON"),
        (b"[]", "the body"),
        (b"{}", "result"),
        (b'{"result": null}', "result"),
        (reply([]), "1 results for 2 queries"),
        (reply([], [], []), "3 results for 2 queries"),
        (reply([], [{"document": {"id": "1", "contents": '"Tesk"\n'}, "score": 1}]), "without text"),
        (reply([], [{"document": {"id": "1", "text": " \n"}, "score": 1}]), "without text"),
        (reply([], [{"document": {"passage": "A town."}, "score": 1}]), "without text"),
        (reply([], [{"score": 1}]), "without text"),
        (reply([], [""]), "without text"),
        (reply([], [None]), "result"),
        (reply([], [{"document": {"text": "a"}, "score": float("nan")}]), "result"),
    ],
)
def test_replies_that_nobody_can_use(body: bytes, problem: str) -> None:
    """Wrong fields and empty passages are errors, not empty observations."""
    with pytest.raises(ValueError, match=problem):
        read_answer(body, 2, 3)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("search_r1", {"query": "a"}),
        ("search_r1", {"queries": "a"}),
        ("search_r1", {"queries": [1]}),
        ("search_r1", {"queries": ["a"], "topk": 0}),
        ("search_r1", {"queries": ["a"], "topk": 1001}),
        ("search_r1", {"queries": ["a"] * 4097}),
        ("verl_agent", {"queries": ["a"]}),
        ("rerank", {"queries": ["a"], "topk_rerank": "3"}),
        ("rerank", []),
    ],
)
def test_requests_that_nobody_can_answer(dialect: Dialect, body: Any) -> None:
    """Other dialects, other types and too much are refused."""
    with pytest.raises(ValueError, match="got"):
        read_question(dialect, json.dumps(body).encode())


def test_what_a_request_may_leave_out() -> None:
    """The number of passages is the server's, and there are no scores, as with Search-R1's server."""
    assert read_question("search_r1", b'{"queries": []}') == Question(queries=(), k=None, scores=False)
    assert read_question("verl_agent", b'{"query": "a", "topk": null}').k is None
