"""What the environment says beside the passages."""

from prover.envs.searchqa.action import Syntax
from prover.envs.searchqa.passages import escape

DONE = "Answer received."
"""After the answer; whether it is right is not said."""
NONE_LEFT = "no search is left"
"""Why a search is not made."""

_OPENING = {
    "tags": (
        "Answer the question. Before you act, and whenever you have learnt something, think between <think> and "
        "</think>. To look something up, write <search> words </search>: the best passages come back between "
        "<information> and </information>. {left} When you know the answer, write it between <answer> and </answer>, "
        "without explanation, for example <answer> 12 apples </answer>. Write one search or one answer at a time."
    ),
    "brackets": "Look things up with search[words], then give the answer with answer[text]. {left}",
}
_FORM = {
    "tags": "Write one <search> words </search> or one <answer> text </answer>.",
    "brackets": "Write search[words] or answer[text].",
}


def opening(question: str, syntax: Syntax, left: int) -> str:
    """The first observation: what to do, and the question, which ends in a question mark."""
    asked = escape(question) + ("?" if question[-1:].isalnum() else "")
    return f"{_OPENING[syntax].format(left=searches_left(left))}\n\nQuestion: {asked}"


def found(passages: str, left: int) -> str:
    """The answer to a search."""
    gap = "" if passages.endswith("\n") else "\n"
    return f"{passages}{gap}{searches_left(left)}"


def refused(reason: str, syntax: Syntax, left: int) -> str:
    """The answer to what was not carried out."""
    form = "Give your answer." if reason == NONE_LEFT else _FORM[syntax]
    return f"Nothing was done: {reason}. {form} {searches_left(left)}"


def searches_left(left: int) -> str:
    """How many searches are left.

    >>> searches_left(3), searches_left(0)
    ('Searches left: 3.', 'No searches left: answer now.')
    """
    return f"Searches left: {left}." if left else "No searches left: answer now."
