"""What chat completions of OpenAI look like: an ask as the body of a request, an answer read from the reply."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prover.chat import Answer, Ask, Message, ToolCall, Usage
from prover.errors import ServiceError

SEEDS = 1 << 31
"""Seeds are taken modulo this: servers store them in 32 or 64 bits, with or without a sign."""

_MOST_TOKENS = 1 << 31
"""A larger count is nonsense, which must not end a budget."""


def request_of(ask: Ask, *, model: str, limit_key: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request, without tools and schema.

    Args:
        ask: What to say.
        model: Name of the model.
        limit_key: What the server calls the limit of the reply.
        extra: Fields that come on top; those that are None are left out.
    """
    body = {
        "model": model,
        "messages": [_said(message) for message in ask.messages],
        limit_key: ask.max_tokens,
        "temperature": ask.temperature,
        "seed": ask.seed % SEEDS,
    }
    return {name: value for name, value in {**body, **extra}.items() if value is not None}


def tools_of(ask: Ask) -> dict[str, Any]:
    """The field that offers the tools of ``ask``."""
    return {
        "tools": [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            }
            for tool in ask.tools
        ]
    }


def format_of(schema: Mapping[str, Any], kind: Literal["json_schema", "json_object"]) -> dict[str, Any]:
    """The field that asks for a reply in JSON."""
    if kind == "json_object":
        return {"response_format": {"type": "json_object"}}
    named = {"name": "reply", "schema": dict(schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _said(message: Message) -> dict[str, Any]:
    # Halves of a character, which an observation may hold, are no text that JSON can carry.
    said: dict[str, Any] = {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}
    if message.tool_call_id:
        said["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _object(call.arguments)}}
            for call in message.tool_calls
        ]
    return said


def _object(arguments: str) -> str:
    """Arguments as they were written; ``{}`` for those that are no object, because servers parse them and fail."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


class _Part(BaseModel):
    """What servers send besides is nobody's business."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class _Text(_Part):
    type: str = "text"
    text: str = ""


class _Function(_Part):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Call(_Part):
    id: str | None = None
    function: _Function


class _Message(_Part):
    content: str | list[_Text] | None = None
    tool_calls: list[_Call] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str | None:
        """The parts of the content that are text, joined; None where there is no content at all."""
        if not isinstance(self.content, list):
            return self.content
        return "".join(part.text for part in self.content if part.type == "text")


class _Choice(_Part):
    message: _Message
    finish_reason: str | None = None


class _Reply(_Part):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


def answer_of(raw: bytes) -> Answer:
    """Read the body of a successful response; of the usage, only the tokens are known.

    Content in parts is joined; a call of a tool counts as one whatever the reason to finish that is given with it; what
    was cut by the limit may be empty.

    Raises:
        ServiceError: ``malformed``: it is no JSON, lacks a choice, says nothing, or was withheld by a filter.
    """
    try:
        reply = _Reply.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _malformed(f"{where}: {first['msg']}" if where else first["msg"]) from None
    choice = reply.choices[0]
    message, reason = choice.message, choice.finish_reason
    if reason == "content_filter" or message.refusal:
        raise _malformed("a reply that was withheld (content filter or refusal)")
    calls = tuple(
        ToolCall(
            id=call.id or f"call_{number}",
            name=call.function.name,
            arguments=given if isinstance(given := call.function.arguments, str) else json.dumps(given or {}),
        )
        for number, call in enumerate(message.tool_calls or ())
    )
    text = message.text
    if text is None and not calls and reason != "length":
        raise _malformed("a message without content")
    return Answer(
        text=text or "",
        finish="tool_calls" if calls else "length" if reason == "length" else "stop",
        tool_calls=calls,
        usage=Usage(
            prompt_tokens=_tokens(reply.usage, "prompt_tokens"),
            completion_tokens=_tokens(reply.usage, "completion_tokens"),
        ),
    )


def _tokens(usage: Any, name: str) -> int:
    """A count of the usage; 0 where a server gives none, or nonsense: the answer is good all the same."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if type(count) is int and 0 <= count <= _MOST_TOKENS else 0


def _malformed(got: str) -> ServiceError:
    return ServiceError(f"expected a chat completion with a message, got {got}", "malformed")
