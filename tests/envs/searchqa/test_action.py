"""What the policy wrote, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.envs.searchqa.action import LONGEST, SYNTAXES, Answer, Invalid, Search, parse, write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<search>a b</search>", Search("a b")),
        ("<answer>a b</answer>", Answer("a b")),
        ("I look it up. <search> a\n b </search> Let us see.", Search("a b")),
        ("<think>x</think><answer>y</answer>", Answer("y")),
        ("<think>maybe <answer>no</answer></think><search>y</search>", Search("y")),
        ("<think>a</think> hm <think>b <search>c</search></think> <answer>d</answer>", Answer("d")),
        ("no opening</think><answer>y</answer>", Answer("y")),
        ("<SEARCH>a</Search>", Search("a")),
        ("< search >a</ search >", Search("a")),
        ("<answer>x < y and y > z</answer>", Answer("x < y and y > z")),
        ("<answer><b>bold</b></answer>", Answer("<b>bold</b>")),
        ("<search>\ud800 a</search>", Search("? a")),
        ("<search>" + "a" * LONGEST + "</search>", Search("a" * LONGEST)),
    ],
)
def test_actions_in_tags(text: str, expected: Search | Answer) -> None:
    """One block behind the reasoning is the action, whatever stands around it."""
    assert parse(text, "tags") == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no <search> or <answer> was found"),
        ("The answer is 7.", "no <search> or <answer> was found"),
        ("<search>a</search><answer>b</answer>", "2 tags were opened, expected 1"),
        ("<answer>b</answer><search>a</search>", "2 tags were opened, expected 1"),
        ("<search>a</search><search>b</search>", "2 tags were opened, expected 1"),
        ("<answer>a</answer> or <answer>a</answer>", "2 tags were opened, expected 1"),
        ("<search>a<search>b</search></search>", "2 tags were opened inside each other, expected 1"),
        ("<answer><search>a</search></answer>", "2 tags were opened inside each other, expected 1"),
        ("<search>a", "<search> was not closed with </search>"),
        ("<answer>a</answer", "<answer> was not closed with </answer>"),
        ("a</search>", "</search> was never opened"),
        ("</answer><answer>", "the tags do not match"),
        ("<search>a</answer>", "the tags do not match"),
        ("<search>a</search></search>", "the tags do not match"),
        ("<search></search>", "the search was empty"),
        ("<answer> \n\t</answer>", "the answer was empty"),
        ("<think>a<search>b</search>", "the reasoning was not closed with </think>"),
        ("<answer>a</answer><think>", "the reasoning was not closed with </think>"),
        ("<answer>a</answer></think>", "no <search> or <answer> was found"),
        ("<search>a</search><information>b</information>", "<information> is written by the search engine only"),
        ("</Information><answer>a</answer>", "<information> is written by the search engine only"),
        ("<search a</search>", "</search> was never opened"),
        ("search[a]", "no <search> or <answer> was found"),
        (f"<search>{'a' * (LONGEST + 1)}</search>", "the search had 201 characters, expected 200 at most"),
    ],
)
def test_refusals_in_tags(text: str, reason: str) -> None:
    """Anything but one block is refused, and the reason says what was wrong with it."""
    assert parse(text, "tags") == Invalid(reason)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search[a b]", Search("a b")),
        (" Answer [ 1742 ]\n", Answer("1742")),
        ("search[a [b] c]", Search("a [b] c")),
        ("answer[]", Invalid("the answer was empty")),
        ("search[a] search", Invalid("expected search[words] or answer[words] and nothing else")),
        ("I search[a]", Invalid("expected search[words] or answer[words] and nothing else")),
        ("<search>a</search>", Invalid("expected search[words] or answer[words] and nothing else")),
        ("click[a]", Invalid("expected search[words] or answer[words] and nothing else")),
        ("", Invalid("expected search[words] or answer[words] and nothing else")),
    ],
)
def test_brackets(text: str, expected: Search | Answer | Invalid) -> None:
    """The whole text is one call, or it is nothing."""
    assert parse(text, "brackets") == expected


_PIECE = st.sampled_from(
    ["<", ">", "/", "search", "answer", "think", "information", " ", "a", "[", "]", "</think>", "é"]
)


@given(st.one_of(st.text(), st.lists(_PIECE).map("".join)), st.sampled_from(SYNTAXES))
def test_any_text_is_read(text: str, syntax: str) -> None:
    """No text raises, and every action that is read has something to say, in few words."""
    read = parse(text, syntax)  # type: ignore[arg-type]  # sampled from the literals
    said = read.query if isinstance(read, Search) else read.text if isinstance(read, Answer) else read.reason
    assert said == " ".join(said.split()) != ""
    assert isinstance(read, Invalid) or len(said) <= LONGEST


@given(st.lists(st.text("abc é1.", min_size=1).map(str.strip).filter(bool), min_size=1, max_size=3), st.booleans())
def test_what_is_written_is_read(words: list[str], searching: bool) -> None:
    """An action comes back from the text that is written for it."""
    content = " ".join(" ".join(words).split())[:LONGEST].strip()
    action = Search(content) if searching else Answer(content)
    for syntax in SYNTAXES:
        assert parse(write(action, syntax), syntax) == action
