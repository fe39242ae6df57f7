"""The four functions that a judge may call, and calls that make no sense."""

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest

from prover.chat import ToolCall
from prover.judges.llm.lookup import Lookup, ToolName, WrongCallError, offered
from prover.judges.llm.view import View
from prover.records import Group

Make = Callable[..., Group]
ALL: tuple[ToolName, ...] = get_args(ToolName)
WON = [("look", "A desk."), ("take mug", "You take the mug."), ("go to sink", "At the sink.")]
LOST = [("look", "A desk."), ("open drawer", "A spoon lies in the drawer."), ("go to sink", "At the sink.")]
LOITER = [("sit", "You sit."), ("sleep", "You dream of a spoon."), ("go to sink", "At the sink.")]


@pytest.fixture
def lookup(group_of: Make) -> Lookup:
    """Over one success and two failures; the order is A = LOITER, B = WON, C = LOST."""
    group = group_of((WON, True), (LOST, False), (LOITER, False))
    return Lookup(View(group=group, chosen=0, order=(2, 0, 1), boundary="bound"), ALL)


def ask(lookup: Lookup, name: str, arguments: Any = None, **given: Any) -> list[str]:
    """The lines inside the block that a call is answered with."""
    text = arguments if isinstance(arguments, str) else json.dumps(given)
    first, *lines, last = lookup.answer(ToolCall(id="1", name=name, arguments=text)).splitlines()
    assert first.startswith("--- bound ")
    assert last == "--- bound end"
    return lines


def test_search_finds_turns_of_failures(lookup: Lookup) -> None:
    """The likest turns come first, no more than asked for, and never one of the success."""
    lines = ask(lookup, "search_trajectory", query="spoon in drawer", k=1)
    assert lines == ["run C, turn 1 | action: open drawer | result: A spoon lies in the drawer."]
    assert {line[:5] for line in ask(lookup, "search_trajectory", query="sink", k=12)} == {"run A", "run C"}
    assert ask(lookup, "search_trajectory", query="zzz") == ["nothing like it"]


def test_a_segment_is_shown_with_its_numbers(lookup: Lookup) -> None:
    """Both ends are included."""
    assert ask(lookup, "get_segment", trajectory="B", start=1, end=2) == [
        "turn 1 | action: take mug | result: You take the mug.",
        "turn 2 | action: go to sink | result: At the sink.",
    ]


def test_differences_and_actions(lookup: Lookup) -> None:
    """Differences name the turns of both runs; actions come one a line."""
    assert ask(lookup, "diff_trajectories", a="B", b="C") == ["B 1 take mug | C 1 open drawer"]
    assert ask(lookup, "diff_trajectories", a="B", b="B") == ["the same actions"]
    assert ask(lookup, "list_actions", trajectory="A") == ["turn 0: sit", "turn 1: sleep", "turn 2: go to sink"]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("delete_everything", "{}", "There is no tool 'delete_everything'"),
        ("get_segment", "{", "no JSON object"),
        ("get_segment", "[" * 5000, "no JSON object"),
        ("get_segment", '{"trajectory": "B"}', "start: Field required"),
        ("get_segment", '{"trajectory": "B", "start": "0", "end": 1}', "start: Input should be a valid integer"),
        ("get_segment", '{"trajectory": "Q", "start": 0, "end": 1}', "There is no run 'Q'. There are: A, B, C."),
        ("get_segment", '{"trajectory": "B", "start": 0, "end": 3}', "Run B has turns 0..2, got 0..3."),
        ("get_segment", '{"trajectory": "B", "start": 2, "end": 1}', "Run B has turns 0..2, got 2..1."),
        ("search_trajectory", '{"query": "mug", "k": 99}', "k: Input should be less than or equal to 12"),
        ("search_trajectory", "7", "Input should be"),
        ("list_actions", "", "trajectory: Field required"),
    ],
)
def test_calls_without_sense_are_told_why(lookup: Lookup, name: str, arguments: str, words: str) -> None:
    """The model is told what is wrong, in words."""
    with pytest.raises(WrongCallError, match=words.replace("(", r"\(").replace("[", r"\[").replace("?", r"\?")):
        ask(lookup, name, arguments)


def test_only_offered_tools_are_answered(lookup: Lookup) -> None:
    """A tool that was not offered does not exist."""
    with pytest.raises(WrongCallError, match="There are: get_segment"):
        ask(Lookup(lookup.view, ("get_segment",)), "list_actions", trajectory="A")


def test_tools_are_described() -> None:
    """Every tool has a description and a schema of its arguments, with what is required."""
    tools = {tool.name: tool for tool in offered(ALL)}
    assert list(tools) == list(ALL)
    assert tools["search_trajectory"].parameters["required"] == ["query"]
    assert tools["get_segment"].parameters["properties"].keys() == {"trajectory", "start", "end"}
    assert all(tool.description.endswith(".") for tool in tools.values())
