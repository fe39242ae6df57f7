"""Conversations with a chat model: what it is shown, what is read in its replies, what they cost."""

import asyncio
from typing import Any

import pytest

from prover.chat import Answer, Ask, Usage
from prover.config import load_config
from prover.errors import ConfigError, ServiceError
from prover.formats import Bare, ReAct, TextFormat
from prover.policies.api import ApiPlayer, ApiPolicy


class Scripted:
    """A backend that answers with texts or raises errors, one after another."""

    name = "scripted"

    def __init__(self, *replies: str | Answer | Exception) -> None:
        self.replies = list(replies)
        self.asks: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        self.asks.append(ask)
        reply = self.replies[(len(self.asks) - 1) % len(self.replies)]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Answer):
            return reply
        return Answer(text=reply, finish="stop", usage=Usage(prompt_tokens=5, completion_tokens=2, calls=1))

    async def aclose(self) -> None:
        pass


def talk(player: ApiPlayer, *observations: str, info: dict[str, Any] | None = None) -> list[tuple[str, str, Any]]:
    """Text, action and complaint of each reply."""

    async def run() -> list[tuple[str, str, Any]]:
        found = [await player.act(observation, info or {}) for observation in observations]
        return [(text, parsed.action, parsed.invalid) for text, parsed in found]

    return asyncio.run(run())


def policy(backend: Scripted, text_format: TextFormat | None = None, **options: Any) -> ApiPolicy:
    """A policy on a scripted backend."""
    return ApiPolicy(backend=backend, text_format=text_format or Bare(), **options)


def shown(ask: Ask) -> list[tuple[str, str]]:
    """Role and content of what was sent, the system message left out."""
    return [(message.role, message.content) for message in ask.messages[1:]]


def test_the_conversation_grows() -> None:
    """Each ask holds all that was said before, under one system message that shows how to write an action."""
    backend = Scripted("Thought: hm.\nAction: right", "no action at all")
    player = policy(backend, ReAct()).begin(0)
    assert talk(player, "one", "two") == [
        ("Thought: hm.\nAction: right", "right", None),
        ("no action at all", "", "format: no line begins with 'Action:'"),
    ]
    assert shown(backend.asks[1]) == [
        ("user", "one"),
        ("assistant", "Thought: hm.\nAction: right"),
        ("user", "two"),
    ]
    assert backend.asks[0].messages[0].role == "system"
    assert backend.asks[0].messages[0].content.endswith("\nAction: ACTION")


def test_a_window_keeps_the_opening_and_the_last_turns() -> None:
    """Of four turns two are shown: the replies to the second and third observation, and what followed them."""
    backend = Scripted("a", "b", "c", "d")
    talk(policy(backend, mode="window", window=2, system="Play.").begin(0), "one", "two", "three", "four")
    assert [content for _, content in shown(backend.asks[2])] == ["one", "a", "two", "b", "three"]
    assert [content for _, content in shown(backend.asks[3])] == ["one", "b", "three", "c", "four"]
    assert backend.asks[3].messages[0].content == "Play."


def test_actions_are_listed_for_now_only() -> None:
    """Where they are to be told; lists of earlier turns do not pile up."""
    backend = Scripted("a", "b")
    talk(policy(backend, tell_actions=True).begin(0), "one", "two", info={"admissible_actions": ["left", "right"]})
    assert shown(backend.asks[1])[0] == ("user", "one")
    assert shown(backend.asks[1])[-1] == ("user", "two\n\nAdmissible actions:\nleft\nright")
    backend = Scripted("a")
    talk(policy(backend).begin(0), "one", info={"admissible_actions": ["left"]})
    assert shown(backend.asks[0]) == [("user", "one")]


def test_settings_reach_the_model() -> None:
    """Temperature, length and a seed of its own for every turn, in 31 bits."""
    backend = Scripted("a")
    both = policy(backend, max_tokens=7, temperature=0.25)
    for seed in (1, 2):
        talk(both.begin(seed), "one", "two")
    assert {(ask.max_tokens, ask.temperature) for ask in backend.asks} == {(7, 0.25)}
    assert len({ask.seed for ask in backend.asks}) == 4
    assert all(0 <= ask.seed < 2**31 for ask in backend.asks)


def test_a_cut_reply_holds_no_action() -> None:
    """Whatever it says up to there."""
    cut = Answer(text="right", finish="length")
    assert talk(policy(Scripted(cut)).begin(0), "one") == [("right", "", "truncated")]


def test_costs_add_up_over_conversations() -> None:
    """Three answers of five and two tokens."""
    both = policy(Scripted("a"))
    talk(both.begin(0), "one", "two")
    talk(both.begin(1), "one")
    assert (both.usage.prompt_tokens, both.usage.completion_tokens, both.usage.calls) == (15, 6, 3)


def test_a_failed_call_passes_through() -> None:
    """What to make of it is not for the player to say."""
    player = policy(Scripted(ServiceError("expected an answer, got none", "budget"))).begin(0)
    with pytest.raises(ServiceError, match="got none"):
        talk(player, "one")


def test_a_chat_model_cannot_be_trained() -> None:
    """The config says why, and what can be done with it."""
    with pytest.raises(
        ConfigError, match=r"has no token ids, so it can be measured .* and not trained; set kind to hf"
    ):
        load_config(overrides=["policy.kind=api"])
