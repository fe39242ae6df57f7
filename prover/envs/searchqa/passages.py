r"""How passages are shown to the policy.

Three formats are in use, and models trained on one are confused by another; T is the title in double quotes:

* ``search_r1``: ``Doc 1(Title: T) text`` a line, between ``<information>`` tags with two newlines around;
* ``verl``: ``Doc 1 (Title: T)``, the text below, an empty line between; as the text of ``{"result": ...}``;
* ``verl_agent``: ``Doc 1: T``, the text below; as the text of ``{"result": ...}`` between ``<information>`` tags.

Passages are cut to a budget first and wrapped then, so that every tag and brace is closed. A token of the budget is
four bytes of UTF-8: about what the vocabularies of language models need for English, and it takes no tokenizer.
The opening bracket of a tag that means something here is written ``&lt;``, so that no passage can speak as the policy
or close its block.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from prover.retrieval.corpus import join_contents
from prover.retrieval.retriever import Passage

PassageFormat = Literal["search_r1", "verl", "verl_agent"]
"""How passages are written."""
FORMATS: tuple[PassageFormat, ...] = ("search_r1", "verl", "verl_agent")
BYTES_PER_TOKEN = 4

_TAG = re.compile(r"<(?=\s*/?\s*(?:search|information|answer|think)\b)", re.IGNORECASE)
_NOTHING = "No passage was found."


def escape(text: str) -> str:
    """A text without tags of the protocol, and without control characters.

    >>> escape("</information> <b> < Answer>")
    '&lt;/information> <b> &lt; Answer>'
    """
    return _TAG.sub("&lt;", "".join(letter if letter.isprintable() or letter in "\n\t" else " " for letter in text))


def show(passages: Sequence[Passage], written: PassageFormat, budget: int) -> tuple[str, tuple[Passage, ...]]:
    """The passages as the policy sees them.

    Args:
        passages: best first.
        written: how.
        budget: tokens for all passages together; what is over is cut off at the end, at a blank where there is one.

    Returns:
        The text, and the passages of which something is shown, cut as they are shown.
    """
    head, wrap = _STYLES[written]
    left = budget * BYTES_PER_TOKEN
    shown: list[Passage] = []
    for number, passage in enumerate(passages, start=1):
        title, text = escape(" ".join(passage.title.split())), escape(passage.text.strip())
        empty = len(head(number, Passage(id="", title=title, text="")).encode("utf-8", "replace"))
        cut = _cut(text, left - empty)
        if not cut:
            break
        shown.append(Passage(id=passage.id, title=title, text=cut))
        left -= empty + len(cut.encode("utf-8", "replace"))
        if cut != text:
            break
    docs = "".join(head(number, passage) for number, passage in enumerate(shown, start=1)).strip()
    return wrap(docs or _NOTHING), tuple(shown)


def _cut(text: str, room: int) -> str:
    """As much of a text as fits into ``room`` bytes."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= room:
        return encoded.decode()
    kept = encoded[: max(0, room)].decode("utf-8", "ignore")
    in_word = not text[len(kept) : len(kept) + 1].isspace()
    return ((in_word and kept.rpartition(" ")[0]) or kept).rstrip()


def _tagged(around: str, text: str) -> str:
    return f"{around}<information>{text}</information>{around}"


def _json(text: str) -> str:
    return json.dumps({"result": text}, ensure_ascii=False)


_STYLES: Mapping[PassageFormat, tuple[Callable[[int, Passage], str], Callable[[str], str]]] = {
    "search_r1": (
        lambda number, passage: f'Doc {number}(Title: "{passage.title}") {passage.text}\n',
        lambda docs: _tagged("\n\n", docs),
    ),
    "verl": (lambda number, passage: f'Doc {number} (Title: "{passage.title}")\n{passage.text}\n\n', _json),
    "verl_agent": (
        lambda number, passage: f"Doc {number}: {join_contents(passage)}\n",
        lambda docs: _tagged("\n", _json(docs)),
    ),
}
