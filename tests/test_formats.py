"""Reading and writing actions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.formats import Bare, ReAct, TextFormat, ThinkAction

FORMATS = [Bare(), ThinkAction(), ReAct()]
ACTIONS = st.text(st.characters(exclude_characters="<>\n\r"), min_size=1).map(str.strip).filter(bool)


@pytest.mark.parametrize("text_format", FORMATS, ids=lambda f: type(f).__name__)
@given(
    text=st.text()
    | st.lists(st.sampled_from(["<think>", "</think>", "<action>", "</action>", "a", "Action:", "\n"])).map("".join)
)
def test_read_is_total(text_format: TextFormat, text: str) -> None:
    """Any text is read: an action without a reason, or the empty action with a reason that begins with ``format:``."""
    parsed = text_format.read(text)
    assert parsed.action == parsed.action.strip()
    if parsed.action:
        assert parsed.invalid is None
    else:
        assert parsed.invalid is not None
        assert parsed.invalid.startswith("format: ")


@pytest.mark.parametrize("text_format", FORMATS, ids=lambda f: type(f).__name__)
@given(action=ACTIONS)
def test_what_is_written_is_read(text_format: TextFormat, action: str) -> None:
    """A stripped, non-empty action on one line comes back from the text that says it."""
    parsed = text_format.read(text_format.write(action))
    assert (parsed.action, parsed.invalid) == (action, None)


@pytest.mark.parametrize(
    ("text", "action", "invalid"),
    [
        ("open drawer 1", "open drawer 1", None),
        ("  look\n", "look", None),
        ("", "", "format: empty action"),
        (" \n\t", "", "format: empty action"),
    ],
)
def test_bare(text: str, action: str, invalid: str | None) -> None:
    """Without tags the whole text is the action."""
    parsed = Bare().read(text)
    assert (parsed.action, parsed.invalid) == (action, invalid)


@pytest.mark.parametrize(
    ("text", "action", "invalid"),
    [
        ("<think>t1 t2</think><action>right</action>", "right", None),
        ("<think>t1</think>\n<action>\n right \n</action> bye", "right", None),
        ("<action>right</action>", "right", None),
        ("<think><action>left</action></think><action>right</action>", "right", None),
        ("<think>a</think><think>b</think><action>right</action>", "right", None),
        ("<think>t1 <action>right</action>", "", "format: the reasoning was not closed"),
        ("<think>t1</think>right", "", "format: 0 actions, expected 1"),
        ("<think><action>left</action></think>", "", "format: 0 actions, expected 1"),
        ("<action>a</action><action>b</action>", "", "format: 2 actions, expected 1"),
        ("<action> </action>", "", "format: empty action"),
        ("<action>right", "", "format: 0 actions, expected 1"),
        ("", "", "format: 0 actions, expected 1"),
    ],
)
def test_think_action(text: str, action: str, invalid: str | None) -> None:
    """Exactly one action in tags counts, and none inside the reasoning."""
    parsed = ThinkAction().read(text)
    assert (parsed.action, parsed.invalid) == (action, invalid)


@pytest.mark.parametrize(
    ("text", "action", "invalid"),
    [
        ("Thought: a drawer.\nAction: open drawer 1", "open drawer 1", None),
        ("Action: a\nThought: no\n  Action:b \n", "b", None),
        ("Thought: x\r\nAction: open drawer 1\r\n", "open drawer 1", None),
        ("Thought: my Action: left", "", "format: no line begins with 'Action:'"),
        ("Action: a\nAction:", "", "format: empty action"),
        ("action: a", "", "format: no line begins with 'Action:'"),
        ("", "", "format: no line begins with 'Action:'"),
    ],
)
def test_react(text: str, action: str, invalid: str | None) -> None:
    """The last line that begins with ``Action:`` holds the action, whatever ends the line."""
    parsed = ReAct().read(text)
    assert (parsed.action, parsed.invalid) == (action, invalid)


def test_a_long_line_of_blanks_is_read() -> None:
    """Blanks inside a line cost no more than their number."""
    blanks = " " * 200_000
    assert ReAct().read(f"Action: a{blanks}b{blanks}").action == f"a{blanks}b"
