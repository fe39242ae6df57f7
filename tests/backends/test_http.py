"""The HTTP backend against a real server on loopback that misbehaves on request."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from chat_server import ChatServer, completion, cut, drip, late, reset, say
from structlog.testing import capture_logs

from prover.backend_config import HttpBackendConfig
from prover.backends.build import open_backend
from prover.backends.http import HttpBackend
from prover.chat import Answer, Ask, Message, Tool, ToolCall
from prover.errors import ConfigError, ServiceError
from prover.protocols import Backend
from prover.retry import RetryPolicy

HELLO = Ask(messages=(Message(role="user", content="Say hello."),))
SCHEMA = {"type": "object", "properties": {"start": {"type": "integer"}}, "required": ["start"]}
TOOL = Tool(name="look", description="Looks.", parameters={"type": "object", "properties": {"at": {"type": "string"}}})
KEY = "sk-planted-0123456789abcdef"


def backend(server: ChatServer, **keys: Any) -> HttpBackend:
    """A backend on the server, with short pauses between attempts."""
    found = HttpBackend(HttpBackendConfig(url=server.url, model="m", **keys))
    found._retry = RetryPolicy(retries=keys.get("retries", 3), base_s=0.01, cap_s=0.02)
    return found


def asked(found: Backend, *asks: Ask) -> list[Answer]:
    """Answers to asks that run at once."""

    async def run() -> list[Answer]:
        try:
            return await asyncio.gather(*(found.ask(ask) for ask in asks or (HELLO,)))
        finally:
            await found.aclose()

    return asyncio.run(run())


def failure(found: Backend, ask: Ask = HELLO) -> ServiceError:
    """The error of an ask that has to fail."""
    with pytest.raises(ServiceError) as caught:
        asked(found, ask)
    return caught.value


def test_an_ask_becomes_a_request_and_an_answer(server: ChatServer) -> None:
    """Everything of an ask is sent as the interface wants it, and text, usage and price come back."""
    found = backend(server, price_prompt=100.0, price_reply=1000.0)
    assert isinstance(found, Backend)
    messages = (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Where?"),
        Message(role="assistant", content="", tool_calls=(ToolCall(id="a", name="look", arguments='{"at": "x"}'),)),
        Message(role="tool", content="a wall", tool_call_id="a"),
    )
    ask = Ask(messages=messages, max_tokens=9, temperature=0.5, seed=(1 << 62) + 5)
    (answer,) = asked(found, ask)
    assert (answer.text, answer.finish, answer.tool_calls) == ("hello", "stop", ())
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.calls) == (7, 3, 1)
    assert usage.cost == pytest.approx((7 * 100 + 3 * 1000) / 1e6)
    assert usage.seconds > 0
    assert server.requests == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Where?"},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
                    ],
                },
                {"role": "tool", "content": "a wall", "tool_call_id": "a"},
            ],
            "max_tokens": 9,
            "temperature": 0.5,
            "seed": 5,
        }
    ]
    assert "authorization" not in server.headers[0]
    assert found.name == f"m at {server.url}"


def test_the_config_shapes_the_request(server: ChatServer) -> None:
    """The limit's name, fields of one's own and fields left out reach the server."""
    body = {"seed": None, "chat_template_kwargs": {"enable_thinking": False}}
    asked(backend(server, limit_key="max_completion_tokens", body=body))
    (sent,) = server.requests
    assert sent["max_completion_tokens"] == 512
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert {"max_tokens", "seed"}.isdisjoint(sent)


@pytest.mark.parametrize(
    ("structured", "sent"),
    [
        ("json_schema", {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}),
        ("json_object", {"type": "json_object"}),
        ("none", None),
    ],
)
def test_a_schema_is_asked_for(server: ChatServer, structured: str, sent: Any) -> None:
    """The schema goes as the config says."""
    asked(backend(server, structured=structured), Ask(messages=HELLO.messages, schema=SCHEMA))
    assert server.requests[0].get("response_format") == sent


def test_tools_are_offered_and_called(server: ChatServer) -> None:
    """Tools go without a schema, and calls come back in both spellings of their arguments."""
    calls = [
        {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}},
        {"type": "function", "function": {"name": "look", "arguments": {"at": "y"}}},
    ]
    server.script = [say(completion(None, finish="stop", calls=calls))]
    (answer,) = asked(backend(server), Ask(messages=HELLO.messages, tools=(TOOL,), schema=SCHEMA))
    assert server.requests[0]["tools"] == [
        {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": TOOL.parameters}}
    ]
    assert "response_format" not in server.requests[0]
    assert answer.finish == "tool_calls"
    assert answer.text == ""
    assert answer.tool_calls == (
        ToolCall(id="1", name="look", arguments='{"at": "x"}'),
        ToolCall(id="call_1", name="look", arguments='{"at": "y"}'),
    )


def test_without_tools_the_schema_is_sent(server: ChatServer) -> None:
    """A model that is offered no tools is kept to the schema instead."""
    asked(backend(server, tools="none"), Ask(messages=HELLO.messages, tools=(TOOL,), schema=SCHEMA))
    assert "tools" not in server.requests[0]
    assert server.requests[0]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_schema_is_given_up_once(server: ChatServer, status: int) -> None:
    """A server that knows no schemas is asked without, says so in the log, and is not bothered again."""
    server.script = lambda body: say({"error": "no"}, status) if "response_format" in body else say(completion())
    found = backend(server)
    ask = Ask(messages=HELLO.messages, schema=SCHEMA)
    with capture_logs() as logs:
        first, second = asked(found, ask)[0], asked(found, ask)[0]
    assert (first.text, first.usage.calls, second.usage.calls) == ("hello", 2, 1)
    assert ["response_format" in body for body in server.requests] == [True, False, False]
    assert [(log["event"], log["field"]) for log in logs] == [("backend_refuses", "response_format")]


def test_refused_tools_leave_the_schema(server: ChatServer) -> None:
    """A server without tools is asked without them, and kept to the schema from then on."""
    server.script = lambda body: say({"error": "no"}, 400) if "tools" in body else say(completion())
    found = backend(server)
    ask = Ask(messages=HELLO.messages, tools=(TOOL,), schema=SCHEMA)
    asked(found, ask)
    asked(found, ask)
    assert [("tools" in body, "response_format" in body) for body in server.requests] == [
        (True, False),
        (False, False),
        (False, True),
    ]


def test_a_request_that_is_wrong_anyway_refuses_nothing(server: ChatServer) -> None:
    """Where the request without the schema is refused as well, the schema was not the reason."""
    server.script = [say({"error": "too long"}, 400), say({"error": "too long"}, 400), say(completion())]
    found = backend(server)
    ask = Ask(messages=HELLO.messages, schema=SCHEMA)
    error = failure(found, ask)
    assert error.cause == "refused"
    assert "Asked 2 times" in str(error)
    asked(found, ask)
    assert "response_format" in server.requests[2]


@pytest.mark.parametrize(
    ("act", "timeout_s"),
    [
        (say("", 429), 60.0),
        (say({}, 500), 60.0),
        (say({}, 503), 60.0),
        (say({}, 529), 60.0),
        (reset, 60.0),
        (cut(b"{"), 60.0),
        (late(3.0, reset), 0.6),
    ],
)
def test_what_may_pass_is_tried_again(server: ChatServer, act: Any, timeout_s: float) -> None:
    """Limits, faults of the server, cut and lost connections and timeouts cost attempts, not the answer."""
    server.script = [act, act, say(completion())]
    (answer,) = asked(backend(server, timeout_s=timeout_s))
    assert (answer.text, answer.usage.calls, len(server.requests)) == ("hello", 3, 3)


@pytest.mark.parametrize(
    ("act", "cause", "timeout_s"),
    [
        (say("", 429), "rate_limited", 60.0),
        (say("", 500), "server", 60.0),
        (say("", 504), "timeout", 60.0),
        (reset, "unreachable", 60.0),
        (cut(b'{"choices": ['), "unreachable", 60.0),
        (late(3.0, reset), "timeout", 0.3),
        (drip(b'{"choices": []}', 0.1), "timeout", 0.3),
    ],
)
def test_retries_end(server: ChatServer, act: Any, cause: str, timeout_s: float) -> None:
    """A fault that stays has its cause, after one attempt and the retries."""
    server.script = [act]
    error = failure(backend(server, retries=1, timeout_s=timeout_s))
    assert error.cause == cause
    assert "Asked 2 times" in str(error)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (400, "refused"),
        (401, "unauthorized"),
        (402, "payment"),
        (403, "unauthorized"),
        (404, "refused"),
        (302, "malformed"),
    ],
)
def test_what_stays_wrong_is_asked_once(server: ChatServer, status: int, cause: str) -> None:
    """A wrong request, key, account or address is no better the second time."""
    server.script = [say({"error": {"message": "because"}}, status, {"Location": "http://127.0.0.1:9/"})]
    error = failure(backend(server))
    assert (error.cause, len(server.requests)) == (cause, 1)
    assert f"status {status}" in str(error)
    assert "because" in str(error)


BROKEN: Mapping[str, bytes] = {
    "no JSON": b"hello",
    "nothing": b"",
    "HTML": b"<html><body><h1>Welcome</h1></body></html>",
    "cut JSON": json.dumps(completion()).encode()[:-20],
    "a list": b"[]",
    "no choices": b'{"object": "chat.completion"}',
    "empty choices": b'{"choices": []}',
    "null choices": b'{"choices": null}',
    "no message": b'{"choices": [{"index": 0}]}',
    "no content": json.dumps(completion(None)).encode(),
    "content of a wrong type": json.dumps(completion(3)).encode(),
    "calls of a wrong type": json.dumps(completion("x", calls="look")).encode(),
    "a call without a function": json.dumps(completion("x", calls=[{"id": "1"}])).encode(),
    "a filter": json.dumps(completion("x", finish="content_filter")).encode(),
    "an error with status 200": b'{"error": {"message": "model is loading"}}',
    "bad UTF-8": b'{"choices": [{"message": {"content": "\xff"}}]}',
    "half a character": b'{"choices": [{"message": {"content": "\\ud800"}}]}',
    "a deep nest": b"[" * 100_000,
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_reply_is_malformed(server: ChatServer, body: bytes) -> None:
    """Whatever comes with status 200 and is no message is a failure of its own, asked for once."""
    server.script = [say(body)]
    error = failure(backend(server))
    assert (error.cause, len(server.requests)) == ("malformed", 1)
    assert len(str(error)) < 1000


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (
            completion([{"type": "text", "text": "he"}, {"type": "image"}, {"type": "text", "text": "llo"}]),
            "hello",
            "stop",
        ),
        (completion("", finish="stop"), "", "stop"),
        (completion(None, finish="length"), "", "length"),
        (completion("hel", finish="length"), "hel", "length"),
        (completion("hello", finish=None), "hello", "stop"),
        (completion("hello", finish="eos"), "hello", "stop"),
        ({**completion(), "usage": None}, "hello", "stop"),
        ({**completion(), "usage": {"prompt_tokens": "many", "completion_tokens": -1}}, "hello", "stop"),
        ({**completion(), "usage": {"prompt_tokens": 10**400, "completion_tokens": 10**18}}, "hello", "stop"),
    ],
)
def test_odd_replies_that_are_messages_are_answers(server: ChatServer, body: Any, text: str, finish: str) -> None:
    """Content in parts, cut or empty replies and strange usages are read for what they are."""
    server.script = [say(body)]
    (answer,) = asked(backend(server))
    assert (answer.text, answer.finish) == (text, finish)
    if body["usage"] != completion()["usage"]:
        assert answer.usage.tokens == 0


def test_endless_bodies_are_not_read(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops at the limit."""
    monkeypatch.setattr("prover.backends.http._MOST_BYTES", 1000)
    server.script = [say(completion("x" * 1_000_000))]
    error = failure(backend(server))
    assert error.cause == "malformed"
    assert "at most 1000 bytes" in str(error)


def test_retry_after_is_honoured(server: ChatServer) -> None:
    """The pause is at least as long as the server asks for."""
    server.script = [say("", 429, {"Retry-After": "0.3"}), say(completion())]
    asked(backend(server))
    assert server.times[1] - server.times[0] >= 0.3


def test_no_pause_outlasts_the_deadline(server: ChatServer) -> None:
    """A server that asks for more time than there is gets no second request, and the failure comes at once."""
    server.script = [say("", 429, {"Retry-After": "3600"})]
    error = failure(backend(server), Ask(messages=HELLO.messages, deadline_s=60.0))
    assert error.cause == "rate_limited"
    assert len(server.requests) == 1


def test_the_deadline_ends_all_attempts(server: ChatServer) -> None:
    """An ask that is out of time fails as a timeout, and its late answer is dropped."""
    server.script = [late(5.0, say(completion()))]
    error = failure(backend(server), Ask(messages=HELLO.messages, deadline_s=0.2))
    assert error.cause == "timeout"
    assert len(server.requests) == 1


def test_nobody_there(server: ChatServer) -> None:
    """A closed port is a failure to connect."""
    found = backend(server, retries=1)
    server.close()
    error = failure(found)
    assert error.cause == "unreachable"
    assert "check the address" in str(error)


def test_many_asks_at_once_on_a_bad_day(server: ChatServer) -> None:
    """64 asks of a server where every second request fails are all answered, each with its own answer."""

    def script(body: dict[str, Any]) -> Any:
        faults = [say("", 429, {"Retry-After": "0"}), say("", 500), reset, cut(b"{"), say("", 503)]
        turn = counts[text := body["messages"][0]["content"]]
        counts[text] = turn + 1
        number = int(text)
        return say(completion(f"answer {text}")) if turn >= number % 3 else faults[(number + turn) % len(faults)]

    counts = {str(number): 0 for number in range(64)}
    server.script = script
    asks = [Ask(messages=(Message(role="user", content=str(number)),)) for number in range(64)]
    answers = asked(backend(server), *asks)
    assert [answer.text for answer in answers] == [f"answer {number}" for number in range(64)]
    assert [answer.usage.calls for answer in answers] == [1 + number % 3 for number in range(64)]


def test_concurrency_is_what_the_config_says(server: ChatServer) -> None:
    """Of 64 asks at once, the server never has more than 5 in work, and all are answered and booked."""
    server.script = [late(0.01, say(completion()))]
    found = open_backend({"url": server.url, "model": "m", "concurrency": 5, "price_reply": 1000.0})
    answers = asked(found, *[HELLO] * 64)
    assert [answer.text for answer in answers] == ["hello"] * 64
    assert 1 < server.most_at_once <= 5
    books = found.ledger.snapshot()
    assert (books["asks"], books["answered"], books["calls"], books["prompt_tokens"]) == (64, 64, 64, 64 * 7)
    assert books["cost"] == pytest.approx(64 * 3 * 1000 / 1e6)


def test_asks_that_time_out_leave_room_for_others(server: ChatServer) -> None:
    """After 64 asks whose deadline passed, the same backend answers again."""
    server.script = lambda body: late(0.5, say(completion())) if body["seed"] else say(completion())
    found = backend(server)

    async def run() -> tuple[list[Any], Answer]:
        late_asks = [Ask(messages=HELLO.messages, seed=1, deadline_s=0.05) for _ in range(64)]
        failed = await asyncio.gather(*(found.ask(ask) for ask in late_asks), return_exceptions=True)
        answer = await found.ask(HELLO)
        await found.aclose()
        await found.aclose()
        return failed, answer

    failed, answer = asyncio.run(run())
    assert {error.cause for error in failed} == {"timeout"}
    assert answer.text == "hello"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_second_event_loop_is_served(server: ChatServer) -> None:
    """A backend outlives the loop that it was used in, closed or not."""
    found = backend(server)
    server.script = [say(completion(), headers={"Connection": "close"})]
    assert asyncio.run(found.ask(HELLO)).text == "hello"
    assert asyncio.run(found.ask(HELLO)).text == "hello"
    assert asked(found)[0].text == "hello"
    asyncio.run(found.aclose())
    assert asked(found)[0].text == "hello"


def test_halves_of_characters_are_sent_as_question_marks(server: ChatServer) -> None:
    """Text that JSON cannot carry does not stop a request."""
    asked(backend(server), Ask(messages=(Message(role="user", content="a\ud800b é"),)))
    assert server.requests[0]["messages"][0]["content"] == "a?b é"


def test_arguments_that_are_no_object_are_not_sent(server: ChatServer) -> None:
    """What a model wrote instead of arguments would make servers fail; they get an empty object."""
    calls = tuple(ToolCall(id=str(n), name="look", arguments=a) for n, a in enumerate(["{", "[]", '{"a": 1}']))
    asked(backend(server), Ask(messages=(Message(role="assistant", content="", tool_calls=calls),)))
    sent = server.requests[0]["messages"][0]["tool_calls"]
    assert [call["function"]["arguments"] for call in sent] == ["{}", "{}", '{"a": 1}']


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key, in the environment."""
    monkeypatch.setenv("PLANTED_KEY", f"{KEY}\n")
    return KEY


def chain(error: BaseException | None) -> str:
    """All that an error and those behind it show."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    return "".join(texts)


FAULTS: list[Callable[[], Any]] = [
    lambda: say({"error": f"Incorrect API key: {KEY}"}, 401),
    lambda: say(f"{'x' * 290}{KEY}", 500),
    lambda: say(f"<html>{'y' * 50}{KEY}</html>"),
    lambda: say({"error": f"no {KEY}"}, 400),
    lambda: reset,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_key_goes_to_the_server_and_nowhere_else(
    server: ChatServer, key: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], fault: Any
) -> None:
    """Neither the object, its name, its errors, all logs, nor the output hold the key or half of it."""
    caplog.set_level(logging.DEBUG)
    found = backend(server, key_env="PLANTED_KEY", retries=1)
    asked(found)
    assert server.headers[0]["authorization"] == f"Bearer {key}"
    server.script = [fault()]
    with capture_logs() as logs:
        error = failure(found, Ask(messages=HELLO.messages, schema=SCHEMA))
    shown = "".join(
        [
            chain(error),
            repr(found),
            str(vars(found)),
            str(vars(found._auth)),
            found.name,
            caplog.text,
            str(logs),
            *capsys.readouterr(),
        ]
    )
    assert key[:12] not in shown


def test_a_key_is_needed_where_one_is_named(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key, and what can be none, are refused before anything is asked, without repeating them."""
    monkeypatch.delenv("PLANTED_KEY", raising=False)
    with pytest.raises(ConfigError, match="PLANTED_KEY, got none"):
        backend(server, key_env="PLANTED_KEY")
    monkeypatch.setenv("PLANTED_KEY", "two words\n")
    with pytest.raises(ConfigError, match="characters that no key has") as caught:
        backend(server, key_env="PLANTED_KEY")
    assert "words" not in str(caught.value)


def test_a_host_that_is_none_is_refused() -> None:
    """What no client can call is a mistake of the config."""
    with pytest.raises(ConfigError, match="Expected the address of a server"):
        HttpBackend(HttpBackendConfig(url="http://[1:2]/v1", model="m"))
    with pytest.raises(ConfigError, match="Expected the address of a server"):
        HttpBackend(HttpBackendConfig(url="http://xn--zz/v1", model="m"))
