"""A word-level tokenizer for small policies: one token per word, and one for a numbered thing such as "cabinet 3"."""

import re
from collections.abc import Iterable
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
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

_JOINED = ("go to",)  # words that only ever come together

_TEMPLATE = (
    "<bos>{% for message in messages %}"
    "{% if message.role == 'assistant' %}<act>{{ message.content }}<eos>"
    "{% else %}{{ message.content + ' ' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<act>{% endif %}"
)


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
    seen: set[str] = set()
    for text in set(texts):
        pieces = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))
        seen.update(piece for piece, _ in pieces)
    specials = ["<pad>", "<unk>", "<bos>", "<eos>", "<act>"]
    tokens = specials + sorted(seen | _neighbours(seen) if closure else seen)
    backend.model = models.WordLevel({token: id_ for id_, token in enumerate(tokens)}, unk_token="<unk>")
    backend.add_special_tokens(specials)
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
