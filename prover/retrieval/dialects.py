"""What goes over the wire between a retrieval server and its clients, in the three forms that are in use.

``search_r1`` (Search-R1, verl) asks ``{"queries": [...], "topk": k}``, ``verl_agent`` asks ``{"query": "...",
"topk": k}``, one at a time, and ``rerank`` (Search-R1's rerank server) asks ``{"queries": [...], "topk_retrieval": n,
"topk_rerank": k}``. All answer ``{"result": [[{"document": {...}, "score": s}, ...], ...]}``, one inner list for each
query. With ``"return_scores": false`` there are bare documents instead, or bare texts from a rerank server.

A document has ``title`` and ``text``, or ``contents`` with the title in quotes as its first line, or both.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from prover.retrieval.corpus import join_contents, split_contents
from prover.retrieval.retriever import Hit, Passage
from prover.retriever_config import Dialect


class _Document(BaseModel):
    id: str | int | None = None
    title: str | None = None
    text: str | None = None
    contents: str | None = None


class _Row(_Document):
    """A document, or one in its wrapper with a score."""

    model_config = ConfigDict(allow_inf_nan=False)

    document: _Document | str | None = None
    score: float | None = None


class _Reply(BaseModel):
    result: list[list[_Row | str]]


_TopK = Annotated[int, Field(ge=1, le=1000)]
_Queries = Annotated[list[str], Field(max_length=4096)]


class _Many(BaseModel):
    model_config = ConfigDict(strict=True)

    queries: _Queries
    topk: _TopK | None = None
    return_scores: bool = False


class _One(BaseModel):
    model_config = ConfigDict(strict=True)

    query: str
    topk: _TopK | None = None
    return_scores: bool = False


class _Rerank(BaseModel):
    model_config = ConfigDict(strict=True)

    queries: _Queries
    topk_rerank: _TopK | None = None
    return_scores: bool = False


_REQUESTS: dict[Dialect, TypeAdapter[_Many] | TypeAdapter[_One] | TypeAdapter[_Rerank]] = {
    "search_r1": TypeAdapter(_Many),
    "verl_agent": TypeAdapter(_One),
    "rerank": TypeAdapter(_Rerank),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a server is asked."""

    queries: tuple[str, ...]
    k: int | None
    """Passages for each query; None leaves it to the server."""
    scores: bool
    """Whether the answer shall hold scores."""


def ask(dialect: Dialect, queries: Sequence[str], k: int, *, topk_retrieval: int = 10) -> bytes:
    """The body of a request, with scores: Search-R1's server fails without.

    Args:
        dialect: form of the request; ``verl_agent`` takes one query.
        queries: what to search for.
        k: passages for each query.
        topk_retrieval: passages that a rerank server ranks anew.
    """
    body: dict[str, Any]
    if dialect == "verl_agent":
        (query,) = queries
        body = {"query": query, "topk": k}
    elif dialect == "search_r1":
        body = {"queries": list(queries), "topk": k}
    else:
        body = {"queries": list(queries), "topk_retrieval": max(topk_retrieval, k), "topk_rerank": k}
    return json.dumps({**body, "return_scores": True}).encode()


def read_question(dialect: Dialect, body: bytes) -> Question:
    """What a request asks.

    Raises:
        ValueError: It is no request of this dialect; the message says what is wrong.
    """
    try:
        asked = _REQUESTS[dialect].validate_json(body)
    except ValidationError as error:
        raise ValueError(_first(error)) from None
    queries = (asked.query,) if isinstance(asked, _One) else tuple(asked.queries)
    k = asked.topk_rerank if isinstance(asked, _Rerank) else asked.topk
    return Question(queries=queries, k=k, scores=asked.return_scores)


def answer(dialect: Dialect, answers: Sequence[Sequence[Hit]], *, scores: bool) -> bytes:
    """The body of a reply."""
    return json.dumps({"result": [[_row(dialect, hit, scores) for hit in hits] for hits in answers]}).encode()


def _row(dialect: Dialect, hit: Hit, scores: bool) -> Any:
    contents = join_contents(hit.passage)
    document = {"id": hit.passage.id, "title": hit.passage.title, "text": hit.passage.text, "contents": contents}
    if scores:
        return {"document": document, "score": hit.score}
    return contents if dialect == "rerank" else document


def read_answer(body: bytes, queries: int, k: int) -> list[tuple[Hit, ...]]:
    """The hits in a reply, as the server ranked them; ids and scores that it left out are made up.

    Args:
        body: JSON.
        queries: how many were asked.
        k: passages that were asked for; further ones are dropped.

    Raises:
        ValueError: It is no such reply, has another number of results, or a passage without text.
    """
    try:
        reply = _Reply.model_validate_json(body)
    except ValidationError as error:
        raise ValueError(_first(error)) from None
    if len(reply.result) != queries:
        raise ValueError(f"{len(reply.result)} results for {queries} queries")
    return [tuple(_hit(row, place) for place, row in enumerate(rows[:k])) for rows in reply.result]


def _hit(row: _Row | str, place: int) -> Hit:
    scored = _Row(contents=row) if isinstance(row, str) else row
    inner = scored if scored.document is None else scored.document
    document = _Document(contents=inner) if isinstance(inner, str) else inner
    title, text = split_contents(document.contents or "")
    if document.text is not None:
        title, text = title if document.title is None else document.title, document.text
    if not text.strip():
        raise ValueError(f"a passage without text (id {document.id!r}, title {title!r})")
    name = sha256(json.dumps((title, text)).encode()).hexdigest()[:16] if document.id is None else str(document.id)
    score = 1 / (1 + place) if scored.score is None else scored.score
    return Hit(passage=Passage(id=name, title=title, text=text), score=score)


def _first(error: ValidationError) -> str:
    """The first problem, where it is and what is there."""
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "the body"
    return f"{where}: {problem['msg']} (got {str(problem['input'])[:100]!r})"
