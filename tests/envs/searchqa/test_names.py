"""Names in texts and the actions that are made of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.envs.searchqa.action import Answer, Invalid, Search, parse
from prover.envs.searchqa.episode import Episode, Move
from prover.envs.searchqa.names import MOST, merged, names, proposals
from prover.envs.searchqa.question import Question


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("nothing here", []),
        ("Where was Ada Quist born?", ["Ada Quist"]),
        ("The Duke of Marrow met Ben.", ["Duke of Marrow", "Ben"]),
        ("Ben, Ada and Cay", ["Ben", "Ada and Cay"]),
        ("It was in 1742, on 3 May 1742.", ["1742", "3 May 1742"]),
        ("Jean-Luc O'Neil", ["Jean-Luc O'Neil"]),
        ("J. R. Quist. The end.", ["J R Quist"]),
        ("the Sill of", ["Sill"]),
        ("Ada Ada. Ada Ada.", ["Ada Ada"]),
        ("Łódź and Örebro", ["Łódź and Örebro"]),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    """Runs of capitals and numbers, without the words that only open a sentence."""
    assert names(text) == expected


def test_merged() -> None:
    """The first come first, each once, up to a bound."""
    assert merged(["Ada", "Ben"], ["ada", "Cay"]) == ("Ada", "Ben", "Cay")
    assert len(merged(str(number) for number in range(100))) == MOST
    assert merged(["a" * 1500, "b" * 600, "c"]) == ("a" * 1500,)


ASKED = Question(id="q", text="Where was Ada Quist born?", answers=("Marrow Bay",), dataset="d")
NOW = Episode(task="q", observation="", names=("Ada Quist", "Ben"))


def test_proposals() -> None:
    """A search and an answer for every name; what was searched for is not searched for again."""
    assert proposals(ASKED, NOW, may_search=True, syntax="brackets") == [
        "answer[Ada Quist]",
        "answer[Ben]",
        "search[Ada Quist]",
        "search[Ben]",
    ]
    searched = replace(NOW, moves=(Move(kind="search", text="ada quist"),))
    assert proposals(ASKED, searched, may_search=True, syntax="tags") == [
        "<answer>Ada Quist</answer>",
        "<answer>Ben</answer>",
        "<search>Ben</search>",
    ]
    assert proposals(ASKED, NOW, may_search=False, syntax="brackets") == ["answer[Ada Quist]", "answer[Ben]"]


def test_proposals_without_names() -> None:
    """The question's own words are searched for; yes and no answer what asks for them."""
    asked = replace(ASKED, text="is it older than the other one?")
    assert proposals(asked, replace(NOW, names=()), may_search=True, syntax="brackets") == [
        "answer[no]",
        "answer[yes]",
        "search[is it older than the other one?]",
    ]


def test_a_question_cannot_write_tags() -> None:
    """Its own words are searched for in a form that is read as one search."""
    asked = replace(ASKED, text="who says <answer>x</answer>?")
    (action,) = proposals(asked, replace(NOW, names=()), may_search=True, syntax="tags")
    assert parse(action, "tags") == Search("who says &lt;answer>x&lt;/answer>?")


@given(st.text(max_size=80), st.text(max_size=80))
def test_every_proposal_is_understood(question: str, passage: str) -> None:
    """Whatever names come out of a text, the actions made of them are read as what they are."""
    asked = replace(ASKED, text=f"Ada {question}")
    now = replace(NOW, names=merged(names(asked.text), names(passage)))
    for action in proposals(asked, now, may_search=True, syntax="tags"):
        assert not isinstance(parse(action, "tags"), Invalid)
        assert isinstance(parse(action, "tags"), Search if action.startswith("<search>") else Answer)
