"""Words of a text as Lucene's StandardTokenizer finds them: Unicode's word boundaries (UAX #29) and emoji (UTS #51).

A text is first written as a string of character classes, one letter each; words are then found in that string by one
regular expression. The classes come from ``unicodedata`` where it has them, and from Unicode's lists where not.
"""

import re
import unicodedata

MAX_LENGTH = 255
"""Longer words are cut into pieces of so many characters."""

# Letters of the class string: L letter, H Hebrew letter, D digit, K Katakana, U joins words (_), x is ignored inside
# words, z joins emoji, v asks for an emoji, M modifies one, P emoji, R half a flag, k may carry a key cap, c the key
# cap, m : between letters, n , between digits, q . between both, s ', d ", C Han, J Hiragana, S South East Asian,
# - other.
_X = "[xzvcM]*"
_LETTER, _DIGIT, _KANA = f"[LH]{_X}", f"D{_X}", f"K{_X}"
_JOIN, _IN_WORD, _IN_NUMBER = f"(?:U{_X})", f"[mqs]{_X}", f"[nqs]{_X}"
_CORE = (
    f"(?:{_KANA}(?:{_JOIN}*{_KANA})*"
    f"|(?:H{_X}d{_X}H{_X}|{_DIGIT}(?:(?:{_JOIN}+|{_IN_NUMBER})?{_DIGIT})*"
    f"|{_LETTER}(?:(?:{_JOIN}+|{_IN_WORD})?{_LETTER})*|(?<=H)s{_X})+)"
)
# The only group: a run of joining characters alone, which is no word, taken at once lest it be tried from each of them.
_WORD = re.compile(
    f"{_JOIN}*+{_CORE}(?:{_JOIN}+{_CORE})*{_JOIN}*|(?:z*P|M){_X}(?:(?<=z)[PM]{_X})*"
    f"|k[xzcM]*v?c{_X}|R{_X}R{_X}|(?:S{_X})+|[CJ]{_X}|((?:U[xvc]*)+)"
)

_SINGLE = {
    **dict.fromkeys(":\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a", "m"),
    **dict.fromkeys(".\u2018\u2019\u2024\ufe52\uff07\uff0e", "q"),
    **dict.fromkeys(",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b", "n"),
    **dict.fromkeys("\u066b", "D"),
    **dict.fromkeys("\u202f", "U"),
    **dict.fromkeys("#*", "k"),
    **{"'": "s", '"': "d", "\u200d": "z", "\ufe0f": "v", "\u20e3": "c", "\u200b": "-", "\u3006": "C", "\u303b": "C"},
}
_BLOCKS: tuple[tuple[str, str], ...] = (
    ("J", "3041-3096 309d-309f 1b001-1b11f 1f200"),
    ("C", "2e80-2fd5 3005 3007 3021-3029 3038-303b 3400-4dbf 4e00-9fff f900-fad9 20000-3134a"),
    ("K", "3031-3035 309b-309c 30a0-30fa 30fc-30ff 31f0-31ff 32d0-32fe 3300-3357 ff66-ff9d 1b000"),
    ("x", "ff9e-ff9f"),
    ("M", "1f3fb-1f3ff"),
    ("R", "1f1e6-1f1ff"),
    ("H", "5d0-5ea 5ef-5f2 fb1d fb1f-fb28 fb2a-fb4f"),
    ("D", "19d0-19da 1a80-1a89 1a90-1a99"),
    ("-", "17000-18cd5 18d00-18d08 1b170-1b2fb"),
    ("S", "e01-e3a e40-e4e e81-ec6 ec8-ece edc-edf 1000-103f 1050-108f 109a-109f 1780-17d3 17d7 17dc-17dd 1950-19df"),
    ("S", "1a20-1aad a9e0-a9ef a9fa-a9fe aa60-aac2 aadb-aadf 11700-1172b"),
    ("L", "2c2-2c5 2d2-2d7 2de-2df 2e5-2eb 2ed 2ef-2ff 55a-55c 55e 58a 5f3 24b6-24e9 a708-a716 a720-a721 a789-a78a"),
    ("L", "1f130-1f149 1f150-1f169"),
    ("P", "a9 ae 203c 2049 2122 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 25aa-25ab 25b6 25c0"),
    ("P", "25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734 2744 2747"),
    ("P", "274c 274e 2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030"),
    ("P", "303d 3297 3299 1f000-1f0ff 1f10d-1f10f 1f12f 1f16c-1f171 1f17e-1f17f 1f18e 1f191-1f19a 1f1ad-1f1e5"),
    ("P", "1f201-1f20f 1f21a 1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f3fa 1f400-1f53d 1f546-1f64f 1f680-1f6ff"),
    ("P", "1f774-1f77f 1f7d5-1f7ff 1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8ff 1f90c-1f93a"),
    ("P", "1f93c-1f945 1f947-1faff 1fc00-1fffd"),
)
_RANGES = [
    (int(first, 16), int(last or first, 16), letter)
    for letter, block in _BLOCKS
    for first, _, last in (part.partition("-") for part in block.split())
]
_BY_CATEGORY = {
    **dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl"), "L"),
    **dict.fromkeys(("Mn", "Mc", "Me", "Cf"), "x"),
    **{"Nd": "D", "Pc": "U"},
}


def _character_class(character: str) -> str:
    if character in _SINGLE:
        return _SINGLE[character]
    code = ord(character)
    for first, last, letter in _RANGES:
        if first <= code <= last:
            return letter
    return _BY_CATEGORY.get(unicodedata.category(character), "-")


class _Classes(dict[int, str]):
    """Code point -> class, worked out when a character is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _character_class(chr(code))
        return found


_CLASSES = _Classes()


def words(text: str) -> list[str]:
    """The words of a text, in order.

    Letters and digits hang together, and so do letters around one of ``: . '`` and digits around one of ``, ; . '``.
    Han and Hiragana characters are words of their own, and so are emoji.

    >>> words("Won't fit: 1,000 mm (3.5 in)★ description:solid 東京")
    ["Won't", 'fit', '1,000', 'mm', '3.5', 'in', '★', 'description:solid', '東', '京']
    """
    found = []
    for match in _WORD.finditer(text.translate(_CLASSES)):
        start, end = match.span() if match[1] is None else (0, 0)
        found += [text[at : min(at + MAX_LENGTH, end)] for at in range(start, end, MAX_LENGTH)]
    return found
