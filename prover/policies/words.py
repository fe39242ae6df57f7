"""Word-level tokenizers for small policies, one for commands and one for calls.

A command is made of words ("go to cabinet 3"), a call is a verb with an argument in brackets ("click[28 x 28]").
"""

import re
import string
from collections.abc import Iterable
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PHRASES = (
    "-= welcome to textworld, alfred! =-",
    "you are in the middle of a room. looking quickly around you, you see",
    "your task is to",
    "there's nothing special about",
)
"""Fixed phrases of text games that say nothing."""

WORDS = (
    *("a", "an", "the", "this", "that", "there", "it", "its", "them", "some"),
    *("you", "your", "are", "is", "was", "see", "at", "in", "on", "of", "and", "or", "next"),
)
"""Function words that no command needs; ``from``, ``to`` and ``with`` carry meaning and stay."""

_SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>", "<act>")

_JOINED = ("go to",)  # words that only ever come together

_TEMPLATE = (
    "<bos>{% for message in messages %}"
    "{% if message.role == 'assistant' %}<act>{{ message.content }}<eos>"
    "{% else %}{{ message.content + ' ' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<act>{% endif %}"
)


_CALL = re.compile(r"\w+\[[^\[\]]+\]")

_GLUE = "\N{HALFWIDTH BLACK SQUARE}"
"""Where a token of calls stands beside its neighbour without a blank between them."""

_BLANKS = " \t\r\n"
_MARK = rf"[^\w{_BLANKS}]"
"""Punctuation, and blanks of other kinds."""

_LATIN_1 = "".join(map(chr, range(0xA0, 0x100)))

_OUTSIDE = r"(?!\[?[^\[\]]*\]\s*$)"
"""Looks ahead: no part of a call begins here."""


def build_tokenizer(texts: Iterable[str], actions: Iterable[str]) -> PreTrainedTokenizerFast:
    """The tokenizer for an environment: of calls where all its ``actions`` are calls, else of commands.

    >>> build_tokenizer(["two mugs"], ["click[buy now]"]).tokenize("click[buy now]")[0] == "click[" + _GLUE
    True
    """
    actions = set(actions)
    build = build_call_tokenizer if actions and all(map(_CALL.fullmatch, actions)) else build_word_tokenizer
    return build({*texts, *actions})


def build_call_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer over the words of ``texts`` that can say every call exactly, up to case and runs of blanks.

    Text is lower-cased. In a call every mark of punctuation is a token that knows on which sides it touches its
    neighbours, so that ``28" x 28"`` reads back. Outside calls punctuation is left out: an observation says ``28 x 28``
    in the same tokens, and can be copied from. A word that ``texts`` do not have is its longest known beginning, then
    letters: those of Latin-1 and of ``texts``.

    Args:
        texts: Observations and calls that the vocabulary has to cover.
    """
    normal: list[Any] = [
        normalizers.Lowercase(),
        normalizers.Replace(_GLUE, " "),
        normalizers.Replace(Regex(rf"{_OUTSIDE}{_MARK}"), " "),
        normalizers.Replace(Regex(rf"(?<=[^{_BLANKS}\[])(?!\[)(?={_MARK})"), f" {_GLUE}"),
        normalizers.Replace(Regex(rf"(?<=\[)(?=[^{_BLANKS}])|(?<={_MARK})(?=\w)"), f"{_GLUE} "),
    ]
    backend: Any = Tokenizer(models.WordPiece({"<unk>": 0}, unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence(normal)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(f"[{_BLANKS}]+"), behavior="removed")
    backend.decoder = decoders.Sequence(
        [
            decoders.WordPiece(prefix=_GLUE, cleanup=False),
            decoders.Fuse(),
            decoders.Replace(f"{_GLUE} ", ""),
            decoders.Replace(_GLUE, ""),
        ]
    )
    texts = set(texts)
    characters = set(string.printable + _LATIN_1).union(*texts) - {_GLUE, *_BLANKS}
    characters = {lower for character in characters for lower in character.lower()}
    letters = {character for character in characters if character.isalnum()}
    glued = {left + mark + right for mark in characters - letters for left in ("", _GLUE) for right in ("", _GLUE)}
    seen = _pieces(backend, texts)
    tokens = [*_SPECIALS, *sorted(seen | glued | letters | {_GLUE + letter for letter in letters})]
    backend.model = models.WordPiece(
        {token: id_ for id_, token in enumerate(tokens)}, unk_token="<unk>", continuing_subword_prefix=_GLUE
    )
    return _wrapped(backend)


def build_word_tokenizer(
    texts: Iterable[str], *, drop: Iterable[str] = (*PHRASES, *WORDS), closure: bool = True
) -> PreTrainedTokenizerFast:
    """A tokenizer over the words of ``texts``, with a chat template; ``save_pretrained`` writes a standard folder.

    Text is lower-cased; punctuation and what is in ``drop`` is left out. Observations lose what carries no meaning,
    by design; a command reads back exactly if it has no dropped word and no punctuation.

    Args:
        texts: Observations and commands that the vocabulary has to cover.
        drop: Words and phrases without meaning, matched at word boundaries, longer ones first.
        closure: For a name that occurs with numbers up to n, know all of 1..n, so that neighbours exist.
    """
    backend: Any = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    phrases = "|".join(re.escape(phrase.lower()) for phrase in sorted(drop, key=len, reverse=True))
    steps: list[Any] = [normalizers.Lowercase()]
    if phrases:
        steps.append(normalizers.Replace(Regex(rf"(?<!\w)(?:{phrases})(?!\w)"), " "))
    steps += [normalizers.Replace(Regex(r"[^\w\s]|_"), " "), normalizers.Replace(Regex(r"\s+"), " ")]
    backend.normalizer = normalizers.Sequence(steps)
    joined = "|".join(rf"{words}\b" for words in _JOINED)
    pattern = Regex(rf"\b(?:{joined})|[^\W\d]+ \d+\b|\w+")
    backend.pre_tokenizer = pre_tokenizers.Split(pattern, behavior="removed", invert=True)
    seen = _pieces(backend, texts)
    tokens = [*_SPECIALS, *sorted(seen | _neighbours(seen) if closure else seen)]
    backend.model = models.WordLevel({token: id_ for id_, token in enumerate(tokens)}, unk_token="<unk>")
    return _wrapped(backend)


def _pieces(backend: Any, texts: Iterable[str]) -> set[str]:
    """What the texts fall into before the vocabulary is known."""
    seen: set[str] = set()
    for text in set(texts):
        pieces = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))
        seen.update(piece for piece, _ in pieces)
    return seen


def _wrapped(backend: Any) -> PreTrainedTokenizerFast:
    """The tokenizer with its control tokens and chat template."""
    backend.add_special_tokens([*_SPECIALS])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<bos>",
        eos_token="<eos>",
        additional_special_tokens=["<act>"],
        chat_template=_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _neighbours(tokens: Iterable[str]) -> set[str]:
    """All of ``name 1`` .. ``name n`` for every name with a number up to n among the tokens."""
    largest: dict[str, int] = {}
    for token in tokens:
        name, space, number = token.rpartition(" ")
        if space and number.isdecimal():
            largest[name] = max(largest.get(name, 0), int(number))
    return {f"{name} {number}" for name, n in largest.items() for number in range(1, n + 1)}
