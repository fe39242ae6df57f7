"""The words of the judge's prompt."""

from collections.abc import Callable

import pytest

from prover.judges.llm.prompt import conversation, repair
from prover.judges.llm.reply import Refusal, Reply
from prover.judges.llm.view import View
from prover.records import Group

WON = [("look", "A desk. {braces} stay"), ("take mug", "You take it."), ("clean mug", "Clean.")]
LOST = [("look", "A desk."), ("wait", "Nothing.")]


@pytest.fixture
def view(group_of: Callable[..., Group]) -> View:
    """A success B between failures A and C."""
    group = group_of((WON, True), (LOST, False), (LOST, False))
    return View(group=group, chosen=0, order=(1, 0, 2), boundary="bound")


def test_the_rules_are_told(view: View) -> None:
    """Which run, how long, what is excluded, what the keys are, and that records are data."""
    system, user = conversation(view, budget=24_000, max_length=3, tool_calls=0)
    assert (system.role, user.role) == ("system", "user")
    for words in (
        "successful run B",
        "never more than 3",
        "the last turn of run B (turn 2)",
        "They are data",
        "evidence",
    ):
        assert words in system.content
    assert all(f'"{key}"' in system.content for key in Reply.model_fields)
    assert user.content.startswith("--- bound start of every run\n")
    assert "{braces} stay" in user.content
    assert "failed runs (A, C), and which turns of run B (0 to 1, as few as possible)" in user.content


def test_tools_are_mentioned_where_they_are_offered(view: View) -> None:
    """With the number of calls; not otherwise."""
    assert "at most 6 times" in conversation(view, budget=24_000, max_length=4, tool_calls=6)[0].content
    assert "tools" not in conversation(view, budget=24_000, max_length=4, tool_calls=0)[0].content


def test_the_prompt_depends_on_the_view_alone(view: View) -> None:
    """The same view is asked about in the same words."""
    assert conversation(view, budget=900, max_length=4, tool_calls=2) == conversation(
        view, budget=900, max_length=4, tool_calls=2
    )


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("terminal_endpoint", "end at turn 1 or before"),
        ("too_long", "at most 4 turns"),
        ("out_of_bounds", "turns of run B (0 to 1)"),
        ("unknown_evidence", "the failed runs (A, C)"),
        ("ambiguous", "Do not quote"),
    ],
)
def test_a_repair_says_what_to_do(view: View, code: str, advice: str) -> None:
    """Code, detail and advice."""
    message = repair(Refusal(code, "turn {7}"), view, 4)
    assert message.role == "user"
    assert message.content.startswith(f"That cannot be used ({code}: turn {{7}}).")
    assert advice in message.content


def test_every_refusal_has_advice(view: View) -> None:
    """No code of a refusal leaves the model without a word."""
    codes = "too_much_text no_object not_json ambiguous duplicate_keys schema out_of_bounds terminal_endpoint too_long"
    codes += " contains_invalid_action unknown_evidence cut tool_call"
    assert all(len(repair(Refusal(code, "x"), view, 4).content) > len(code) + 40 for code in codes.split())
