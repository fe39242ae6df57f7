"""How passages are shown, letter by letter."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.envs.searchqa.passages import FORMATS, PassageFormat, escape, show
from prover.retrieval.retriever import Passage

TWO = (Passage(id="1", title="One", text="first text"), Passage(id="2", title="Two", text='say "x"\nagain'))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "search_r1",
            '\n\n<information>Doc 1(Title: "One") first text\nDoc 2(Title: "Two") say "x"\nagain</information>\n\n',
        ),
        (
            "verl",
            '{"result": "Doc 1 (Title: \\"One\\")\\nfirst text\\n\\nDoc 2 (Title: \\"Two\\")\\nsay \\"x\\"\\nagain"}',
        ),
        (
            "verl_agent",
            '\n<information>{"result": "Doc 1: \\"One\\"\\nfirst text\\nDoc 2: \\"Two\\"\\nsay \\"x\\"\\nagain"}'
            "</information>\n",
        ),
    ],
)
def test_formats(written: PassageFormat, expected: str) -> None:
    """As Search-R1, verl and verl-agent write them."""
    assert show(TWO, written, 100) == (expected, TWO)


def test_nothing_found() -> None:
    """An empty result says so, inside its tags."""
    text, shown = show([], "search_r1", 100)
    assert (text, shown) == ("\n\n<information>No passage was found.</information>\n\n", ())


def test_budget_cuts_passages_and_closes_the_tag() -> None:
    """8 tokens are 32 bytes: 21 around the first text, its newline included, and 11 of it; nothing of the second."""
    long = Passage(id="1", title="One", text="aaa bbb ccc ddd eee")
    text, shown = show([long, TWO[1]], "search_r1", 8)
    assert len('Doc 1(Title: "One") \n') == 21
    assert text == '\n\n<information>Doc 1(Title: "One") aaa bbb ccc</information>\n\n'
    assert [(passage.id, passage.text) for passage in shown] == [("1", "aaa bbb ccc")]
    word = Passage(id="1", title="One", text="aaa bbbbbb")
    assert show([word], "search_r1", 7)[1][0].text == "aaa"


@pytest.mark.parametrize(
    "tag", ["<search>", "</search>", "< / Answer>", "<INFORMATION>", "</information >", "<think>", "<\nthink>"]
)
def test_tags_are_escaped(tag: str) -> None:
    """No tag of the protocol comes out of a passage, in any case and spacing, in text or title."""
    for written in FORMATS:
        text, _ = show([Passage(id="1", title=f"a {tag}", text=f"b {tag} c")], written, 100)
        inside = text.strip().removeprefix("<information>").removesuffix("</information>")
        assert "&lt;" in inside
        assert "<" not in inside


def test_other_brackets_stay() -> None:
    """What is no tag of the protocol is left as it is."""
    assert escape("a < b, <b>x</b>, <searching>, 1 <answers>") == "a < b, <b>x</b>, <searching>, 1 <answers>"


_TEXT = st.text("ab <>/é日\n\t\0").map(lambda text: text + "</information>")


@given(st.lists(st.tuples(_TEXT, _TEXT), max_size=4), st.sampled_from(FORMATS), st.integers(1, 60))
def test_whatever_is_found_is_closed_and_within_the_budget(
    found: list[tuple[str, str]], written: PassageFormat, budget: int
) -> None:
    """One block, closed at its end; JSON where it is JSON; what is shown is the beginning of what was found."""
    passages = [Passage(id=str(number), title=title, text=text) for number, (title, text) in enumerate(found)]
    text, shown = show(passages, written, budget)
    assert text.count("<information>") == text.count("</information>") == (written != "verl")
    body = text.strip().removeprefix("<information>").removesuffix("</information>")
    if written != "search_r1":
        body = json.loads(body)["result"]
    assert len(body.encode()) <= max(budget * 4, len("No passage was found."))
    assert [passage.id for passage in shown] == [passage.id for passage in passages[: len(shown)]]
