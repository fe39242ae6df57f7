"""How an action is written and read: the policy's text becomes an action, or a reason why not.

A format is never the environment's business: environments receive the bare action. Where no action can be read, the
environment receives the empty action ``""`` and the turn is marked invalid with the reason.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a format read in the policy's text."""

    action: str
    """The action; empty when none could be read."""
    invalid: str | None = None
    """``format: <why>`` when no action could be read."""


class TextFormat(Protocol):
    """Reads actions in the policy's text, and writes them for demonstrations and admissible decoding."""

    def read(self, text: str) -> Parsed:
        """The action in ``text``. Total: never raises."""

    def write(self, action: str) -> str:
        """The shortest text in which ``read`` finds ``action``."""


def _found(action: str) -> Parsed:
    return Parsed(action=action) if action else Parsed(action="", invalid="format: empty action")


class Bare:
    """The text is the action.

    >>> Bare().read(" open drawer 1 ").action
    'open drawer 1'
    """

    def read(self, text: str) -> Parsed:
        """The whole text, without surrounding blanks."""
        return _found(text.strip())

    def write(self, action: str) -> str:
        """The action itself."""
        return action


class ThinkAction:
    """Reasoning in ``<think>`` tags, then exactly one action in ``<action>`` tags; tags in the reasoning do not count.

    >>> ThinkAction().read("<think>it is closed</think><action>open drawer 1</action>").action
    'open drawer 1'
    >>> ThinkAction().read("<action>a</action><action>b</action>").invalid
    'format: 2 actions, expected 1'
    """

    _ACTION: ClassVar[re.Pattern[str]] = re.compile(r"<action>(.*?)</action>", re.DOTALL)

    def read(self, text: str) -> Parsed:
        """The one action after the reasoning."""
        if "<think>" in text and "</think>" not in text:
            return Parsed(action="", invalid="format: the reasoning was not closed")
        actions = self._ACTION.findall(text.rpartition("</think>")[2])
        if len(actions) != 1:
            return Parsed(action="", invalid=f"format: {len(actions)} actions, expected 1")
        return _found(actions[0].strip())

    def write(self, action: str) -> str:
        """The action in its tags, without reasoning."""
        return f"<action>{action}</action>"


class ReAct:
    r"""``Thought: ...`` then ``Action: ...``, the action on the last line that begins so.

    >>> ReAct().read("Thought: a drawer.\nAction: open drawer 1").action
    'open drawer 1'
    """

    _ACTION: ClassVar[re.Pattern[str]] = re.compile(r"^[ \t]*Action:(.*)$", re.MULTILINE)

    def read(self, text: str) -> Parsed:
        """The rest of the last line that begins with ``Action:``."""
        actions = self._ACTION.findall(text)
        if not actions:
            return Parsed(action="", invalid="format: no line begins with 'Action:'")
        return _found(actions[-1].strip())

    def write(self, action: str) -> str:
        """The action on its line, without a thought."""
        return f"Action: {action}"
