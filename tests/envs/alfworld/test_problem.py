"""Reading PDDL problems."""

import pytest

from prover.envs.alfworld.problem import Problem, typed
from prover.errors import DataError

TEXT = """
(define (problem plan) (:domain alfred)
(:objects agent1 - agent
   Mug - object  ; in no fact
   Mug_bar_2 Mug_bar_1 - object
   MugType - otype)
(:init (= (total-cost) 0)
   (objectType Mug_bar_2 MugType) (objectType Mug_bar_1 MugType)
   (isClean Mug_bar_1) (isClean Mug_bar_1))
(:goal (and (exists (?o - object) (isClean ?o)))))
"""


def test_parse() -> None:
    """Symbols are lower case, comments and costs are dropped, facts are unique, unmentioned entities are left out."""
    problem = Problem.parse(TEXT)
    assert problem.entities == {"object": ("mug_bar_1", "mug_bar_2"), "otype": ("mugtype",)}
    assert problem.facts == {
        "objecttype": (("mug_bar_2", "mugtype"), ("mug_bar_1", "mugtype")),
        "isclean": (("mug_bar_1",),),
    }
    assert problem.goal == ("and", ("exists", ("?o", "-", "object"), ("isclean", "?o")))


def test_typed_list() -> None:
    """Several names share the type that follows them."""
    assert list(typed(("?a", "?b", "-", "object", "?r", "-", "receptacle"))) == [
        ("?a", "object"),
        ("?b", "object"),
        ("?r", "receptacle"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unclosed or several"),
        ("(define (problem x)", "unclosed"),
        ("(define (problem x)))", "one bracket too many"),
        ("(define) (define)", "several"),
        ("(define (:objects) (:init))", r"got sections \[':init', ':objects'\]"),
    ],
)
def test_broken_text(text: str, message: str) -> None:
    """Text that is no problem is refused with what was expected and found."""
    with pytest.raises(DataError, match=message):
        Problem.parse(text)
