"""What is said to a chat model and what comes back: records of the ``Backend`` protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish to have a tool called."""

    id: str
    """Name of the call, by which its result refers to it."""
    name: str
    arguments: str
    """JSON as the model wrote it, valid or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls that an assistant's message asks for."""
    tool_call_id: str = ""
    """The call that a tool's message answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model may ask for."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments, an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A conversation that a chat model is to continue with one message."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply should follow. A backend that can constrain to it does; nobody relies on it."""
    max_tokens: int = 512
    """Limit of the reply, in tokens."""
    temperature: float = 0.0
    seed: int = 0
    """Entropy of the sampling, where the backend takes one."""
    deadline_s: float | None = None
    """Longest wait for the answer, retries included, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What answers cost."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    """Requests that were sent, retries included."""
    seconds: float = 0.0
    """Time spent waiting, summed over calls."""
    cost: float = 0.0
    """In the currency of the configured prices; 0 without prices."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            calls=self.calls + other.calls,
            seconds=self.seconds + other.seconds,
            cost=self.cost + other.cost,
        )

    @property
    def tokens(self) -> int:
        """Prompt and reply together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One message of a chat model."""

    text: str
    finish: Literal["stop", "length", "tool_calls"]
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
