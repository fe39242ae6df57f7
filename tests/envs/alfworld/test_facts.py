"""Looking up facts."""

import pytest

from prover.envs.alfworld.facts import Facts
from prover.envs.alfworld.problem import Problem
from prover.errors import DataError


@pytest.fixture
def facts() -> Facts:
    """Two mugs in a shelf, one of them clean."""
    return Facts(
        Problem(
            entities={"object": ("mug_bar_1", "mug_bar_2"), "receptacle": ("shelf_bar_1",), "agent": ("agent1",)},
            facts={
                "inreceptacle": (("mug_bar_2", "shelf_bar_1"), ("mug_bar_1", "shelf_bar_1")),
                "isclean": (("mug_bar_2",), ("ghost",)),
                "receptacletype": (("shelf_bar_1", "shelftype"),),
            },
            goal=("and",),
        )
    )


def test_entities_are_numbered_per_type(facts: Facts) -> None:
    """Objects, receptacles and places become indices, everything else stays an id."""
    assert facts.ids("object") == ("mug_bar_1", "mug_bar_2")
    assert (facts.values("object"), facts.values("receptacle"), facts.values("agent")) == ((0, 1), (0,), ("agent1",))
    assert facts.value("mug_bar_2") == 1
    assert facts.value("shelftype") == "shelftype"


def test_lookup(facts: Facts) -> None:
    """Facts are found by predicate and arguments; an unknown predicate has none."""
    assert facts.indices("inreceptacle") == ((0, 0), (1, 0))
    assert facts.has("isclean", 1)
    assert not facts.has("isclean", 0)
    assert facts.rows("opened") == frozenset()
    assert facts.one("receptacletype", 0, "shelf_bar_1") == "shelftype"
    assert facts.one("receptacleatlocation", 0, "shelf_bar_1") is None


def test_undeclared_entities_and_double_facts(facts: Facts) -> None:
    """A fact about nobody, and two where one is expected, are errors."""
    with pytest.raises(DataError, match="ghost"):
        facts.indices("isclean")
    many = Problem(entities={"object": ("a", "b")}, facts={"objecttype": (("a", "x"), ("a", "y"))}, goal=())
    with pytest.raises(DataError, match="expected one objecttype of a, got 2"):
        Facts(many).one("objecttype", 0, "a")
