"""Chat completions: what is sent, what is read."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prover.backends.completion import answer_of, format_of, request_of, tools_of
from prover.chat import Ask, Message, Tool, ToolCall, Usage
from prover.errors import ServiceError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
GOOD: dict[str, Any] = {
    "choices": [
        {
            "message": {
                "content": "hi",
                "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
}


def read(raw: bytes) -> str:
    """What comes of a body: the reason to finish, or the cause of the failure."""
    try:
        return answer_of(raw).finish
    except ServiceError as error:
        return error.cause


def test_a_reply_is_read() -> None:
    """Text, calls, usage and the reason to finish."""
    answer = answer_of(json.dumps(GOOD).encode())
    assert (answer.text, answer.finish) == ("hi", "tool_calls")
    assert answer.tool_calls == (ToolCall(id="1", name="look", arguments="{}"),)
    assert answer.usage == Usage(prompt_tokens=5, completion_tokens=2)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all parts of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, part in inner for found in places(part, (*path, key)))]


@given(path=st.sampled_from(places(GOOD)[1:]), part=JSON)
def test_no_reply_breaks_the_reader(path: tuple[Any, ...], part: Any) -> None:
    """With any JSON in any place, there is an answer with text or a failure with a cause, and nothing else."""
    body = json.loads(json.dumps(GOOD))
    place = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = part
    assert read(json.dumps(body).encode()) in {"stop", "length", "tool_calls", "malformed"}


@given(raw=st.binary(max_size=60), at=st.integers(0, 150))
def test_no_bytes_break_the_reader(raw: bytes, at: int) -> None:
    """Bytes of any kind, alone or in the middle of a good reply."""
    good = json.dumps(GOOD).encode()
    for body in (raw, good[:at] + raw + good[at:], good[:at]):
        assert read(body) in {"stop", "length", "tool_calls", "malformed"}


@given(text=st.text(), arguments=st.text())
def test_every_ask_can_be_sent(text: str, arguments: str) -> None:
    """Whatever stands in a message or in a model's arguments, the request is JSON that servers can parse."""
    call = ToolCall(id="1", name="look", arguments=arguments)
    messages = (Message(role="user", content=text), Message(role="assistant", content=text, tool_calls=(call,)))
    ask = Ask(messages=messages, seed=2**31 + 3)
    sent = json.loads(json.dumps(request_of(ask, model="m", limit_key="n", extra={"top_p": 1, "temperature": None})))
    assert sent["messages"][0]["content"].encode() == text.encode("utf-8", "replace")
    assert isinstance(json.loads(sent["messages"][1]["tool_calls"][0]["function"]["arguments"]), dict)
    assert (sent["n"], sent["seed"], sent["top_p"]) == (512, 3, 1)
    assert "temperature" not in sent


def test_wishes_have_their_fields() -> None:
    """Tools and formats as the interface names them."""
    ask = Ask(messages=(), tools=(Tool(name="t", description="d", parameters={"type": "object"}),))
    function = {"name": "t", "description": "d", "parameters": {"type": "object"}}
    assert tools_of(ask) == {"tools": [{"type": "function", "function": function}]}
    assert format_of({"a": 1}, "json_object") == {"response_format": {"type": "json_object"}}
    assert format_of({"a": 1}, "json_schema")["response_format"]["json_schema"]["schema"] == {"a": 1}
