"""Text to token ids and back, over a transformers tokenizer and its chat template."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from prover.errors import ConfigError, TokenError

# Stand-ins for the contents of messages while the template is rendered. Letters and digits alone: templates that trim,
# escape or look for markers leave them as they are.
_SYSTEM, _USER, _REPLY, _NEXT = (f"slot{letter}7c1e9d40slot" for letter in "surn")

_MARKER = re.compile(r"[<\[{].*\w.*[>\]}]")
"""What a control marker looks like, as against words that someone added to the vocabulary."""


class HFCodec:
    """The ``Codec`` of a chat model.

    The chat template is rendered once, with stand-ins for the contents, and cut at them. Its pieces are encoded with
    control tokens; the contents are encoded apart from them and without control tokens, so that ``<|im_start|>`` in an
    observation stays plain text. So do, in observations, markers such as ``<think>`` that tokenizers add without
    calling them special. What a template does to contents (trimming, removing earlier reasoning) thereby has no
    effect: a conversation only ever grows.
    """

    def __init__(self, tokenizer: Any, *, eos_ids: frozenset[int] = frozenset()) -> None:
        """Cut the template of ``tokenizer``.

        Args:
            tokenizer: A fast tokenizer of transformers with a chat template.
            eos_ids: End tokens that the model names beside those of the tokenizer and the template.

        Raises:
            ConfigError: There is no template, it does not render each content once and in order, or no token ends a
                reply.
        """
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigError("expected a tokenizer with a chat template, got none; set tokenizer.chat_template")
        self.tokenizer = tokenizer
        self._plain = self._pieces([("user", _USER)], [_USER])
        try:
            self._with_system = self._pieces([("system", _SYSTEM), ("user", _USER)], [_SYSTEM, _USER])
        except ConfigError:
            # Templates without a system role: its text opens the first observation.
            self._with_system = self._pieces([("user", f"{_SYSTEM}\n\n{_USER}")], [_SYSTEM, _USER])
        _, _, after_reply, after_next = self._pieces(
            [("user", _USER), ("assistant", _REPLY), ("user", _NEXT)], [_USER, _REPLY, _NEXT]
        )
        added = tokenizer.added_tokens_decoder
        special = set(tokenizer.all_special_ids) | {id_ for id_, token in added.items() if token.special}
        named = set() if tokenizer.eos_token_id is None else {tokenizer.eos_token_id}
        marker = after_reply[0] if after_reply and after_reply[0] in special | eos_ids | named else None
        self.eos_ids: frozenset[int] = eos_ids | named | (set() if marker is None else {marker})
        if not self.eos_ids:
            raise ConfigError("expected a token that ends a reply, got none; set tokenizer.eos_token")
        self._end: int = marker if marker is not None else tokenizer.eos_token_id or min(self.eos_ids)
        self._open_tail = after_reply
        self._closed_tail = after_reply if marker is None else after_reply[1:]
        self._prompt_tail = after_next
        self._unknown: int | None = tokenizer.unk_token_id
        self._control = frozenset(special - {self._unknown})
        self._breaks = _inside(token.content for id_, token in added.items() if id_ not in special)
        self._encode = lru_cache(maxsize=1 << 16)(self._encode_content)
        self._observed = lru_cache(maxsize=1 << 16)(self._encode_observation)
        self._action = lru_cache(maxsize=1 << 16)(self._encode_action)

    def opening(self, system: str, observation: str) -> list[int]:
        """See ``Codec.opening``; without a system text there is no system message."""
        if not system:
            return [*self._plain[0], *self._observed(observation), *self._plain[1]]
        before, between, after = self._with_system
        return [*before, *self._encode(system), *between, *self._observed(observation), *after]

    def reply(self, observation: str, *, closed: bool) -> list[int]:
        """See ``Codec.reply``."""
        head = self._closed_tail if closed else self._open_tail
        return [*head, *self._observed(observation), *self._prompt_tail]

    def action(self, text: str) -> tuple[int, ...]:
        """See ``Codec.action``.

        Raises:
            TokenError: The vocabulary cannot say ``text`` (up to case and spacing).
        """
        return self._action(text)

    def plain(self, text: str) -> tuple[int, ...]:
        """Ids of what others say, inside any message: no control token and no marker can come out of it."""
        return self._observed(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See ``Codec.decode``."""
        kept = [id_ for id_ in ids if id_ not in self.eos_ids]
        text: str = self.tokenizer.decode(kept, clean_up_tokenization_spaces=False)
        return text

    def _encode_action(self, text: str) -> tuple[int, ...]:
        ids = self._encode(text)
        said = self.decode(ids)
        if self._unknown in ids or said.lower().split() != text.lower().split():
            raise TokenError(
                f"expected a text that the vocabulary can say, got {text!r}, which reads back as {said!r}; "
                "leave this action out or extend the vocabulary"
            )
        return (*ids, self._end)

    def _encode_content(self, text: str) -> tuple[int, ...]:
        """Ids of untrusted text; no control token can come out of it."""
        ids = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return tuple(id_ for id_ in ids if id_ not in self._control)

    def _encode_observation(self, text: str) -> tuple[int, ...]:
        """Ids of what an environment says. Tokenizers split special tokens on request, other markers never."""
        if self._breaks is None:
            return self._encode_content(text)
        return tuple(id_ for part in self._breaks.split(text) for id_ in self._encode_content(part))

    def _pieces(self, messages: list[tuple[str, str]], slots: list[str]) -> list[tuple[int, ...]]:
        """Ids of what the template puts before, between and after the slots, the generation prompt at the end."""
        chat = [{"role": role, "content": content} for role, content in messages]
        try:
            rest = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        except Exception as error:
            # Templates refuse roles by raising whatever they like.
            raise ConfigError(f"expected a chat template for {[role for role, _ in messages]}, got: {error}") from error
        texts = []
        for slot in slots:
            if rest.count(slot) != 1:
                raise ConfigError(
                    f"expected the chat template to render each content once and in order, got {rest!r}; "
                    "set tokenizer.chat_template to one that does"
                )
            text, rest = rest.split(slot)
            texts.append(text)
        return [tuple(self.tokenizer.encode(text, add_special_tokens=False)) if text else () for text in [*texts, rest]]


def _inside(tokens: Iterable[str]) -> re.Pattern[str] | None:
    """Finds the place behind the first character of every marker among the tokens; None without markers."""
    markers = sorted(token for token in tokens if _MARKER.fullmatch(token))
    return re.compile("|".join(rf"(?<={re.escape(m[0])})(?={re.escape(m[1:])})" for m in markers)) if markers else None
