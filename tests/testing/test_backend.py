"""ScriptedBackend."""

import asyncio

import pytest

from prover.chat import Answer, Ask, Message
from prover.errors import ConfigError, ServiceError
from prover.protocols import Backend
from prover.testing.backend import ScriptedBackend

ASK = Ask(messages=(Message(role="user", content="three words here"),))


def answer(backend: ScriptedBackend) -> Answer:
    """The next answer."""
    return asyncio.run(backend.ask(ASK))


def test_answers_come_in_order() -> None:
    """Texts, whole answers, errors and callables, with the asks kept and words counted as tokens."""
    whole = Answer(text="whole", finish="length")
    backend = ScriptedBackend(["two words", whole, ServiceError("planted", "server"), lambda ask: ask.messages[0].role])
    assert isinstance(backend, Backend)
    first = answer(backend)
    assert (first.text, first.finish) == ("two words", "stop")
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.calls) == (3, 2, 1)
    assert answer(backend) is whole
    with pytest.raises(ServiceError, match="planted"):
        answer(backend)
    assert answer(backend).text == "user"
    assert backend.asks == [ASK] * 4


def test_a_script_ends_or_repeats() -> None:
    """A used-up script is an error unless it repeats; closing is noted."""
    backend = ScriptedBackend(["a"])
    answer(backend)
    with pytest.raises(ConfigError, match="at most 1 asks"):
        answer(backend)
    backend = ScriptedBackend(["a", "b"], repeat=True)
    assert [answer(backend).text for _ in range(3)] == ["a", "b", "a"]
    asyncio.run(backend.aclose())
    assert backend.closed
