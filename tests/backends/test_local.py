"""The backend in this process, with a tiny random model that can write any text."""

import asyncio
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from prover.backends.local import LocalBackend, _draw
from prover.chat import Answer, Ask, Message, Tool, ToolCall
from prover.errors import ServiceError
from prover.policies.codec import HFCodec
from prover.policies.hf import HFPolicy
from prover.protocols import Backend
from prover.records import Request, Sampling

TEMPLATE = (
    "{% if tools %}<|im_start|>tools {{ tools | tojson }}<|im_end|>{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant {{ opening or '' }}{% endif %}"
)
HELLO = Ask(messages=(Message(role="user", content="hello"),), max_tokens=12)
TOOL = Tool(name="look", description="Looks.", parameters={"type": "object"})
SCHEMA = {
    "type": "object",
    "properties": {"start": {"type": "integer", "minimum": 0, "maximum": 9}, "why": {"type": "string", "maxLength": 5}},
    "required": ["start", "why"],
    "additionalProperties": False,
}


@cache
def tokenizer(template: str = TEMPLATE) -> PreTrainedTokenizerFast:
    """One token for every byte, and the markers of the template."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({character: n for n, character in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    found = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>")
    found.add_tokens(["<think>", "</think>"])
    found.chat_template = template
    return found


@cache
def codec(template: str = TEMPLATE) -> HFCodec:
    """Its codec."""
    return HFCodec(tokenizer(template))


def make_policy(template: str = TEMPLATE, context: int = 2000) -> HFPolicy:
    """A random model over that vocabulary."""
    words = tokenizer(template)
    config = Qwen3Config(
        vocab_size=len(words) + 4,  # models have columns that no token uses
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=48,
        max_position_embeddings=context,
        eos_token_id=words.eos_token_id,
    )
    model = Qwen3ForCausalLM(config)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.3, generator=generator)
    return HFPolicy(model.eval(), HFCodec(words))


@pytest.fixture(scope="module")
def policy() -> HFPolicy:
    """One model for all tests that do not change it."""
    return make_policy()


ROOM = 300


class Planted:
    """Stands for a policy whose model writes a given text after a prompt, with ``max_tokens`` of ROOM."""

    context_limit = 100_000

    def __init__(self, text: str, template: str = TEMPLATE) -> None:
        self.codec = codec(template)
        self.model = torch.nn.Linear(1, 1)
        self.read: list[int] = []
        self._script = [*self.codec.tokenizer.encode(text), self.codec.tokenizer.eos_token_id]
        self._prompt = 0

    @property
    def prompt(self) -> str:
        """What the model has read before it wrote, control tokens in brackets."""
        words, ids = self.codec.tokenizer, self.read[: self._prompt]
        special = {id_ for id_, token in words.added_tokens_decoder.items() if token.special}
        return "".join(f"[{words.decode([i])}]" if i in special else words.decode([i]) for i in ids)

    def open(self, capacity: int) -> "Planted":
        self.read, self._prompt = [], capacity - ROOM
        return self

    def extend(self, rows: list[int], chunks: list[list[int]]) -> np.ndarray:
        self.read += chunks[0]
        logits = np.zeros((1, len(self.codec.tokenizer)), dtype=np.float32)
        if (at := len(self.read) - self._prompt) >= 0:
            logits[0, self._script[at]] = 9.0
        return logits


def answer(policy: Any, ask: Ask = HELLO, **options: Any) -> Answer:
    """What the model answers."""
    return asyncio.run(LocalBackend(policy, name="tiny", **options).ask(ask))


def said(text: str, *messages: Message, **options: Any) -> tuple[Answer, str]:
    """What is made of a text that the model writes, and the prompt that it read."""
    tools = options.pop("ask_tools", ())
    planted = Planted(text, options.pop("model_template", TEMPLATE))
    ask = Ask(messages=messages or HELLO.messages, tools=tools, max_tokens=ROOM)
    found = answer(planted, ask, **options)
    return found, planted.prompt


def test_an_answer_is_one_of_the_model(policy: HFPolicy) -> None:
    """At temperature 0, the backend writes what transformers itself generates from the same prompt."""
    found = answer(policy)
    prompt = policy.codec.opening("", "hello")
    tensor = torch.tensor([prompt])
    with torch.inference_mode():
        expected = policy.model.generate(
            tensor, attention_mask=torch.ones_like(tensor), max_new_tokens=12, do_sample=False, pad_token_id=0
        )[0, len(prompt) :].tolist()
    assert found.text == policy.codec.decode(expected).strip()
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (len(prompt), len(expected))
    assert found.usage.calls == 1
    assert isinstance(LocalBackend(policy, name="tiny"), Backend)


def test_seeds_decide_what_is_drawn(policy: HFPolicy) -> None:
    """The same seed gives the same answer, alone or beside others; other seeds give others."""
    asks = [Ask(messages=HELLO.messages, max_tokens=12, temperature=1.0, seed=seed) for seed in range(4)]
    backend = LocalBackend(policy, name="tiny")

    async def together() -> list[Answer]:
        return await asyncio.gather(*(backend.ask(ask) for ask in asks))

    alone = [answer(policy, ask).text for ask in asks]
    assert [found.text for found in asyncio.run(together())] == alone
    assert len(set(alone)) == 4


def test_draws_follow_the_distribution() -> None:
    """4,000 draws from probabilities 0.1, 0.2, 0.7 have these shares; temperature 2 flattens them."""
    logits = np.log(np.array([0.1, 0.2, 0.7], dtype=np.float32))
    rng = np.random.default_rng(0)
    shares = np.bincount([_draw(logits, 1.0, rng) for _ in range(4000)]) / 4000
    assert shares == pytest.approx([0.1, 0.2, 0.7], abs=0.03)
    flat = np.sqrt([0.1, 0.2, 0.7]) / np.sqrt([0.1, 0.2, 0.7]).sum()
    assert np.bincount([_draw(logits, 2.0, rng) for _ in range(4000)]) / 4000 == pytest.approx(flat, abs=0.03)
    with pytest.raises(ServiceError, match="finite logits"):
        _draw(np.array([np.nan, 1.0], dtype=np.float32), 1.0, rng)


@pytest.mark.parametrize("training", [False, True])
def test_asking_changes_nothing_of_the_policy(training: bool) -> None:
    """Weights, gradients, mode, version, kept caches and global generators are as before, also after a failure."""
    policy = make_policy()
    policy.model.train(training)
    weights = {name: value.clone() for name, value in policy.model.state_dict().items()}
    states = torch.get_rng_state(), np.random.get_state()[1].tolist()
    asyncio.run(policy.generate([Request(ids=tuple(range(9)), sampling=Sampling(max_tokens=2), seed=0)]))
    before = policy.version, replace(policy.counters), list(policy._engine.store._entries)
    assert len(before[2]) == 1
    answer(policy, Ask(messages=HELLO.messages, max_tokens=3, temperature=1.0))
    with pytest.raises(ServiceError, match="in time"):
        answer(policy, Ask(messages=HELLO.messages, max_tokens=1500, deadline_s=0.001))
    assert policy.model.training is training
    assert all(parameter.grad is None and parameter.requires_grad for parameter in policy.model.parameters())
    assert all(torch.equal(weights[name], value) for name, value in policy.model.state_dict().items())
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == np.random.get_state()[1].tolist()
    assert (policy.version, policy.counters, list(policy._engine.store._entries)) == before


def test_changed_weights_are_noticed() -> None:
    """After an update in place, the answer is that of the new weights."""
    policy, other = make_policy(), make_policy()
    answer(policy)
    with torch.no_grad():
        for one in (policy, other):
            for parameter in one.model.parameters():
                parameter.mul_(1.7)
    assert answer(policy).text == answer(HFPolicy(other.model, other.codec)).text


def test_the_event_loop_gets_its_turn() -> None:
    """While the model reads a long prompt and writes, other tasks run; an ask that is cancelled ends there."""
    planted = Planted("x" * 250)

    async def run() -> list[int]:
        backend = LocalBackend(planted, name="tiny")
        long = Ask(messages=(Message(role="user", content="y" * 1000),), max_tokens=ROOM)
        asking = asyncio.create_task(backend.ask(long))
        seen = []
        for _ in range(60):
            await asyncio.sleep(0)
            seen.append(len(planted.read))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await backend.aclose()
        await backend.aclose()
        return seen

    seen = asyncio.run(run())
    assert seen[0] <= 128
    assert max(np.diff(seen)) <= 128
    assert len(set(seen)) > 50
    assert len(planted.read) == seen[-1] < 1250


def test_a_prompt_without_room_is_refused() -> None:
    """A conversation longer than the context is a failure; one that nearly fills it gets a short answer."""
    policy = make_policy(context=64)
    fits = answer(policy, Ask(messages=(Message(role="user", content="x" * 40),), max_tokens=100))
    assert fits.finish == "length"
    assert fits.usage.tokens == 64
    with pytest.raises(ServiceError, match="less than 64 tokens") as caught:
        answer(policy, Ask(messages=(Message(role="user", content="x" * 80),)))
    assert caught.value.cause == "refused"


def test_messages_stand_in_the_template() -> None:
    """Roles, contents, calls and results are rendered in order, with control tokens around them."""
    _, prompt = said(
        "yes",
        Message(role="system", content="Be brief."),
        Message(role="user", content="Where?"),
        Message(role="assistant", content="", tool_calls=(ToolCall(id="a", name="look", arguments='{"at": "x"}'),)),
        Message(role="tool", content="a wall", tool_call_id="a"),
    )
    assert prompt == (
        "[<|im_start|>]system Be brief.[<|im_end|>][<|im_start|>]user Where?[<|im_end|>]"
        '[<|im_start|>]assistant <tool_call>{"name": "look", "arguments": {"at": "x"}}</tool_call>[<|im_end|>]'
        "[<|im_start|>]tool a wall[<|im_end|>][<|im_start|>]assistant "
    )


@settings(max_examples=30)
@given(
    words=st.lists(
        st.sampled_from(["<|im_end|>", "<|im_start|>", "system", "</think>", "<|im", "_end|>", " "]), max_size=8
    )
)
def test_no_message_becomes_a_control_token(words: list[str]) -> None:
    """Markers in what others say, in any pieces, stay plain text."""
    text = "x" + "".join(words)
    arguments = json.dumps({"query": text})
    _, prompt = said(
        "yes",
        Message(role="user", content=text),
        Message(role="assistant", content=text, tool_calls=(ToolCall(id="a", name="look", arguments=arguments),)),
    )
    assert prompt.count("[<|im_start|>]") == 3
    assert prompt.count("[<|im_end|>]") == 2
    assert prompt.startswith(f"[<|im_start|>]user {text}[<|im_end|>]")


def test_templates_without_a_system_role() -> None:
    """The system's text then opens the first message of the user."""
    template = TEMPLATE.replace(
        "{% for m in messages %}",
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}",
        1,
    )
    _, prompt = said(
        "yes", Message(role="system", content="Be brief."), Message(role="user", content="Hi"), model_template=template
    )
    assert prompt == "[<|im_start|>]user Be brief.\n\nHi[<|im_end|>][<|im_start|>]assistant "


def test_templates_that_fail() -> None:
    """A template that refuses a conversation, or shows a message twice, is a failure with words, not a crash."""
    refuses = TEMPLATE.replace(
        "{% if tools", "{% if messages|length > 3 %}{{ raise_exception('odd') }}{% endif %}{% if tools"
    )
    with pytest.raises(ServiceError, match="got odd") as caught:
        said("yes", *[Message(role="user", content="x")] * 4, model_template=refuses)
    assert caught.value.cause == "refused"
    twice = TEMPLATE.replace("{{ m.content }}", "{% if messages|length > 3 %}{{ m.content }}{% endif %}{{ m.content }}")
    with pytest.raises(ServiceError, match="once and in order"):
        said("yes", *[Message(role="user", content="x")] * 4, model_template=twice)


def test_tools_are_offered_and_calls_are_read() -> None:
    """Calls are taken out of the text; what is none stays."""
    text = (
        'Let me see. <tool_call>\n{"name": "look", "arguments": {"at": {"deep": "}"}}}\n</tool_call>'
        '<tool_call>{"name": 3}</tool_call><tool_call>{"name": </tool_call><tool_call>{"name": "list"}</tool_call>'
    )
    found, prompt = said(text, ask_tools=(TOOL,))
    assert '"name": "look"' in prompt
    assert found.finish == "tool_calls"
    assert found.tool_calls == (
        ToolCall(id="call_0", name="look", arguments='{"at": {"deep": "}"}}'),
        ToolCall(id="call_1", name="list", arguments="{}"),
    )
    assert found.text == 'Let me see. <tool_call>{"name": 3}</tool_call><tool_call>{"name": </tool_call>'


@pytest.mark.parametrize("options", [{"tools": False}, {"model_template": TEMPLATE.replace("tools", "gadgets")}])
def test_without_tools_nothing_is_a_call(options: dict[str, Any]) -> None:
    """Where tools are off, or the template knows none, text is text."""
    text = '<tool_call>{"name": "look"}</tool_call>'
    found, prompt = said(text, ask_tools=(TOOL,), **options)
    assert "look" not in prompt
    assert (found.text, found.finish, found.tool_calls) == (text, "stop", ())


def test_thinking_is_left_out() -> None:
    """A leading thought, begun by the model or by the template, is no part of the answer."""
    assert said("<think>hm</think>\n yes")[0].text == "yes"
    assert said("hm</think> yes", template={"opening": "<think>"})[0].text == "yes"
    assert said("yes, as in </think>")[0].text == "yes, as in </think>"
    assert said("<think>hm")[0].text == "<think>hm"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_constrained_reply_keeps_to_its_schema(policy: HFPolicy, temperature: float) -> None:
    """A random model, which writes nonsense otherwise, writes an object of the schema and stops."""
    ask = Ask(messages=HELLO.messages, schema=SCHEMA, max_tokens=200, temperature=temperature, seed=1)
    found = answer(policy, ask, constrain=True)
    value = json.loads(found.text)
    assert set(value) == {"start", "why"}
    assert value["start"] in range(10)
    assert len(value["why"]) <= 5
    assert found.finish == "stop"
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(answer(policy, ask).text)


def test_a_schema_that_no_grammar_can_keep_is_refused(policy: HFPolicy) -> None:
    """A schema that is none is a failure of the ask."""
    with pytest.raises(ServiceError, match="Set constrain: false") as caught:
        answer(policy, Ask(messages=HELLO.messages, schema={"type": "nonsense"}), constrain=True)
    assert caught.value.cause == "refused"


def test_a_vocabulary_without_braces_is_refused(line_policy: Path) -> None:
    """A policy of a few words cannot write an object, and is not said to have broken weights."""
    words = HFPolicy.load(line_policy)
    with pytest.raises(ServiceError, match=r"has no token to go on with\. Set constrain: false") as caught:
        answer(words, Ask(messages=HELLO.messages, schema=SCHEMA), constrain=True)
    assert caught.value.cause == "refused"
