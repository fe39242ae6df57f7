"""ToyCodec: a tokenizer small enough to work out by hand."""

from collections.abc import Sequence

_FIRST = ("a", "b", "ab", "c", " ")
_VOCABULARY = (*_FIRST, *(chr(code) for code in range(128) if chr(code) not in _FIRST))
_BYTE_BASE = 1 + len(_VOCABULARY)
_IDS = {piece: index for index, piece in enumerate(_VOCABULARY, 1)}


class ToyCodec:
    r"""Greedy longest match over eos=0, a=1, b=2, ab=3, c=4, blank=5 and one id per remaining ASCII character (6..129).

    Any other character becomes its UTF-8 bytes, ids 130 (byte 0x80) to 257 (byte 0xFF), so every ``str`` survives
    encoding and decoding, lone surrogates too. ``ab`` can be sampled as [3] or as [1, 2]: whoever encodes sampled text
    again is found out.

    A conversation is ``system``, newline, observation, newline, ``>``; the policy writes after the ``>``. No text has
    the id 0.

    >>> codec = ToyCodec()
    >>> codec.action("abc")
    (3, 4, 0)
    >>> codec.decode([1, 2, 4, 0]), codec.decode(codec.reply("c", closed=False))
    ('abc', '\nc\n>')
    """

    vocab_size = _BYTE_BASE + 128
    """Number of ids."""

    def __init__(self) -> None:
        self.eos_ids: frozenset[int] = frozenset({0})

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without an end token."""
        ids: list[int] = []
        start = 0
        while start < len(text):
            piece = "ab" if text.startswith("ab", start) else text[start]
            if piece in _IDS:
                ids.append(_IDS[piece])
            else:
                ids.extend(_BYTE_BASE + byte - 128 for byte in piece.encode("utf-8", "surrogatepass"))
            start += len(piece)
        return ids

    def opening(self, system: str, observation: str) -> list[int]:
        """``system`` and a newline where there is one, the observation, a newline and ``>``."""
        return self.encode((f"{system}\n" if system else "") + f"{observation}\n>")

    def reply(self, observation: str, *, closed: bool) -> list[int]:
        """The end token where the reply was cut, then a newline, the observation, a newline and ``>``."""
        return ([] if closed else [0]) + self.encode(f"\n{observation}\n>")

    def action(self, text: str) -> tuple[int, ...]:
        """Ids of the text and the end token."""
        return (*self.encode(text), 0)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids without end tokens; bytes that are no UTF-8 become U+FFFD."""
        data = bytearray()
        for token in ids:
            if token >= _BYTE_BASE:
                data.append(token - _BYTE_BASE + 128)
            elif token not in self.eos_ids:
                data += _VOCABULARY[token - 1].encode()
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")
