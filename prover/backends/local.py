"""A chat model of transformers in this process; the policy that is being trained can be asked as well."""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prover import build, seeds
from prover.backends.completion import tools_of
from prover.chat import Answer, Ask, Message, ToolCall, Usage
from prover.errors import ServiceError

_CHUNK = 128
"""Tokens of a prompt that are read before the event loop gets its turn."""
_SLOT = "q7c1e9d40slot"
"""End of every stand-in: letters and digits alone, which templates leave as they are."""
_TOOL_CALL = re.compile(r"<tool_call>\s*(\{(?:(?!</tool_call>).)*\})\s*</tool_call>", re.DOTALL)


class LocalBackend:
    """Asks a policy's model, token by token, in the event loop's thread.

    Between two tokens the event loop gets its turn: deadlines hold, and no thread runs the model while it is being
    trained. Nothing is left behind: the mode of the model, the policy's attention caches and all global generators stay
    as they are. Text of messages is encoded without control tokens, as the policy's codec does it.

    Tools are offered where the chat template knows them, and calls are read from ``<tool_call>{...}</tool_call>``. A
    schema is kept to only where no tools are offered. A leading ``<think>...</think>`` is left out of the answer.
    """

    def __init__(
        self,
        policy: Any,
        *,
        name: str,
        constrain: bool = False,
        tools: bool = True,
        template: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare to ask.

        Args:
            policy: An ``HFPolicy``: its ``model``, ``codec``, ``context_limit`` and ``open`` are used.
            name: Name of the model, for logs.
            constrain: Whether replies are kept to their schema.
            tools: Whether tools are offered.
            template: Variables of the chat template.

        Raises:
            ConfigError: ``constrain`` needs a package that is not installed.
        """
        self.name = name
        self._policy = policy
        self._tools = tools and "tools" in str(policy.codec.tokenizer.chat_template)
        self._template = dict(template or {})
        self._grammar: Any = None
        if constrain:
            made = build.find("grammar", "prover.backends.grammar:Grammar", {}, "")
            tokenizer, eos_ids = policy.codec.tokenizer, policy.codec.eos_ids
            self._grammar = made(tokenizer, policy.model.config.vocab_size, eos_ids)

    async def ask(self, ask: Ask) -> Answer:
        """See ``Backend.ask``."""
        start = time.monotonic()
        prompt, thinking = self._prompt(ask)
        room = min(ask.max_tokens, self._policy.context_limit - len(prompt))
        if room < 1:
            raise ServiceError(
                f"Expected a prompt of less than {self._policy.context_limit} tokens for {self.name}, got "
                f"{len(prompt)}. Show less, or take a model with more context.",
                "refused",
            )
        offered = bool(ask.tools) and self._tools
        constraint = self._grammar.of(ask.schema) if self._grammar and ask.schema is not None and not offered else None
        try:
            async with asyncio.timeout(ask.deadline_s):
                ids, ended = await self._continue(prompt, room, ask.temperature, ask.seed, constraint)
        except TimeoutError:
            raise ServiceError(f"Expected an answer of {self.name} in time, got none.", "timeout") from None
        text = _spoken(self._policy.codec.decode(ids), thinking)
        text, calls = _tool_calls(text) if offered else (text, ())
        return Answer(
            text=text,
            finish="tool_calls" if calls else "stop" if ended else "length",
            tool_calls=calls,
            usage=Usage(
                prompt_tokens=len(prompt), completion_tokens=len(ids), calls=1, seconds=time.monotonic() - start
            ),
        )

    async def aclose(self) -> None:
        """See ``Backend.aclose``; the model stays with its policy."""

    async def _continue(
        self, prompt: list[int], room: int, temperature: float, seed: int, constraint: Any
    ) -> tuple[list[int], bool]:
        """Ids of a reply, and whether an end token closed it."""
        rows = self._policy.open(len(prompt) + room)
        for at in range(0, len(prompt), _CHUNK):
            logits = self._forward(rows, prompt[at : at + _CHUNK])
            await asyncio.sleep(0)
        rng, ids = seeds.generator(seed), list[int]()
        while True:
            if constraint is not None:
                if not (allowed := constraint.allowed()).any():
                    raise ServiceError(
                        f"Expected a vocabulary that can write what the schema asks for, got that of {self.name}, "
                        "which has no token to go on with. Set constrain: false, or take another model.",
                        "refused",
                    )
                logits = np.where(allowed, logits, -np.inf)
            ids.append(_draw(logits, temperature, rng))
            if ids[-1] in self._policy.codec.eos_ids:
                return ids, True
            if len(ids) == room:
                return ids, False
            if constraint is not None:
                constraint.accept(ids[-1])
            logits = self._forward(rows, ids[-1:])
            await asyncio.sleep(0)

    def _forward(self, rows: Any, chunk: list[int]) -> NDArray[np.float32]:
        """Logits after one more chunk, shape (V,)."""
        model = self._policy.model
        training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                logits: NDArray[np.float32] = rows.extend([0], [chunk])[0]
        finally:
            model.train(training)
        return logits

    def _prompt(self, ask: Ask) -> tuple[list[int], bool]:
        """Ids of the conversation up to where the model writes, and whether it is to think first.

        The template is rendered with stand-ins for what is said, so that only its own markers become control tokens.
        """
        codec = self._policy.codec
        slots = [f"slot{number}{_SLOT}" for number in range(len(ask.messages))]
        rest = self._render([_rendered(message, slot) for message, slot in zip(ask.messages, slots, strict=True)], ask)
        ids: list[int] = []
        for slot, message in zip(slots, ask.messages, strict=True):
            if not message.content:
                continue
            before, found, rest = rest.partition(slot)
            if not found or _SLOT in before or slot in rest:
                raise ServiceError(
                    f"Expected the chat template of {self.name} to show every message once and in order, got one that "
                    f"does not for a message of role {message.role!r}. Take another model or template.",
                    "refused",
                )
            ids += [*codec.tokenizer.encode(before, add_special_tokens=False), *codec.plain(message.content)]
        ids += codec.tokenizer.encode(rest, add_special_tokens=False)
        return ids, rest.rstrip().endswith("<think>")

    def _render(self, chat: list[dict[str, Any]], ask: Ask) -> str:
        """The conversation by the template; a system message goes with the first user's where the template has none."""
        offered = tools_of(ask) if ask.tools and self._tools else {}
        options = {**self._template, **offered, "tokenize": False, "add_generation_prompt": True}
        try:
            return str(self._policy.codec.tokenizer.apply_chat_template(chat, **options))
        except Exception as error:  # templates refuse by raising whatever they like
            if [message["role"] for message in chat[:2]] == ["system", "user"]:
                merged = {"role": "user", "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
                return self._render([merged, *chat[2:]], ask)
            raise ServiceError(
                f"Expected the chat template of {self.name} to take the conversation, got {error}.", "refused"
            ) from error


def _rendered(message: Message, slot: str) -> dict[str, Any]:
    """A message as templates take it, with a stand-in for its content."""
    said: dict[str, Any] = {"role": message.role, "content": slot if message.content else ""}
    if message.tool_calls:
        said["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": _arguments(call.arguments)}}
            for call in message.tool_calls
        ]
    return said


def _arguments(text: str) -> dict[str, Any]:
    """Arguments as templates take them; none where the model wrote no object. A marker among them is broken up."""
    try:
        found = json.loads(text.replace("<", "< "))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _spoken(text: str, thinking: bool) -> str:
    """What is said after thinking."""
    if thinking or text.lstrip().startswith("<think>"):
        thought, _, text = text.partition("</think>")
        text = text or thought
    return text.strip()


def _tool_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Calls in a reply, and the text without them; what is no call stays text."""
    calls: list[ToolCall] = []

    def taken(match: re.Match[str]) -> str:
        try:
            found = json.loads(match[1])
        except (ValueError, RecursionError):
            return match[0]
        if not isinstance(found.get("name"), str) or not isinstance(found.get("arguments", {}), dict):
            return match[0]
        arguments = json.dumps(found.get("arguments", {}))
        calls.append(ToolCall(id=f"call_{len(calls)}", name=found["name"], arguments=arguments))
        return ""

    rest = _TOOL_CALL.sub(taken, text)
    return rest.strip(), tuple(calls)


def _draw(logits: NDArray[np.float32], temperature: float, rng: np.random.Generator) -> int:
    """A token by its logits, shape (V,); the likeliest at temperature 0."""
    largest = float(logits.max())
    if not np.isfinite(largest):
        raise ServiceError(f"Expected finite logits, got {largest}. Check the weights of the model.", "malformed")
    if temperature == 0:
        return int(logits.argmax())
    cumulative = np.exp((logits.astype(np.float64) - largest) / temperature).cumsum()
    target = min(rng.random() * cumulative[-1], np.nextafter(cumulative[-1], 0.0))
    return int(np.searchsorted(cumulative, target, side="right"))
