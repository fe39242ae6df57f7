"""What the policy wrote, as an action: a total function of its new text alone.

``tags``, the syntax of Search-R1: exactly one block, ``<search>query</search>`` or ``<answer>text</answer>``.

* What stands before the last ``</think>`` is reasoning, and tags in it do not count; reasoning that is not closed is
  refused. Other words around the block are let pass.
* Tags are known in any case and with blanks in them, as ``</ Search >``.
* Refused, with a reason: no block; two blocks, of whatever kind; one inside another; one that is not closed or not
  opened; one that is empty or longer than ``LONGEST`` characters; an ``<information>`` tag, which only the environment
  writes. Nothing is picked out of such a text: the first of two blocks may not be the one that was meant.

``brackets``, for small vocabularies: the whole text is ``search[query]`` or ``answer[text]``.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Syntax = Literal["tags", "brackets"]
"""How actions are written."""
SYNTAXES: tuple[Syntax, ...] = ("tags", "brackets")
LONGEST = 200
"""Most characters of a query or an answer."""

_TAG = re.compile(r"<\s*(/?)\s*(search|answer|information|think)\s*>", re.IGNORECASE)
_BRACKETS = re.compile(r"\s*(search|answer)\s*\[(.*)\]\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Search:
    """A search."""

    query: str
    """Without surrounding and repeated blanks."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer, which ends the episode."""

    text: str
    """Without surrounding and repeated blanks."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """No action can be read."""

    reason: str
    """Why, in words for the policy."""


Action = Search | Answer | Invalid


def parse(text: str, syntax: Syntax) -> Action:
    """The action in the policy's text. Never raises.

    >>> parse("<think>maybe <answer>no</answer></think> <search> ada  lovelace </search>", "tags")
    Search(query='ada lovelace')
    >>> parse("answer[1843]", "brackets")
    Answer(text='1843')
    """
    return _in_brackets(text) if syntax == "brackets" else _in_tags(text)


def write(action: Search | Answer, syntax: Syntax) -> str:
    """The shortest text in which ``parse`` reads the action.

    >>> write(Search("ada lovelace"), "tags"), write(Answer("1843"), "brackets")
    ('<search>ada lovelace</search>', 'answer[1843]')
    """
    kind, content = ("search", action.query) if isinstance(action, Search) else ("answer", action.text)
    return f"{kind}[{content}]" if syntax == "brackets" else f"<{kind}>{content}</{kind}>"


def _in_brackets(text: str) -> Action:
    found = _BRACKETS.fullmatch(text)
    if found is None:
        return Invalid("expected search[words] or answer[words] and nothing else")
    return _made(found[1].lower(), found[2])


def _in_tags(text: str) -> Action:
    tags = list(_TAG.finditer(text))
    closed = [place for place, tag in enumerate(tags) if (tag[1], tag[2].lower()) == ("/", "think")]
    tags = tags[closed[-1] + 1 :] if closed else tags
    names = [tag[1] + tag[2].lower() for tag in tags]
    if names in (["search", "/search"], ["answer", "/answer"]):
        return _made(names[0], text[tags[0].end() : tags[1].start()])
    return Invalid(_reason(names))


def _reason(names: list[str]) -> str:
    """Why these tags are not one block."""
    if "think" in names:
        return "the reasoning was not closed with </think>"
    if "information" in names or "/information" in names:
        return "<information> is written by the search engine only"
    if not names:
        return "no <search> or <answer> was found"
    opened = [name for name in names if not name.startswith("/")]
    if len(opened) > 1:
        nested = any(one in opened and two in opened for one, two in pairwise(names))
        return f"{len(opened)} tags were opened{' inside each other' if nested else ''}, expected 1"
    if not opened:
        return f"<{names[0]}> was never opened"
    if len(names) == 1:
        return f"<{opened[0]}> was not closed with </{opened[0]}>"
    return "the tags do not match"


def _made(kind: str, content: str) -> Action:
    # Lone surrogates have no place in JSON, nor in what goes to a server.
    content = " ".join(content.encode("utf-8", "replace").decode().split())
    if not content:
        return Invalid(f"the {kind} was empty")
    if len(content) > LONGEST:
        return Invalid(f"the {kind} had {len(content)} characters, expected {LONGEST} at most")
    return Search(content) if kind == "search" else Answer(content)
