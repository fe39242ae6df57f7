"""Divisions of goals."""

from dataclasses import replace
from pathlib import Path

import pytest

from prover.envs.webshop.data import ShopFolder
from prover.envs.webshop.goal import Goal
from prover.envs.webshop.product import Product
from prover.envs.webshop.split import SCHEMES, Scheme, divide, plain, refuse_overlap, shuffled
from prover.errors import DataError


def many(goal: Goal, n: int, products: int) -> list[Goal]:
    """Distinct goals of some products."""
    return [replace(goal, id=f"g{i}", asin=f"p{i % products}", text=f"goal {i}") for i in range(n)]


@pytest.fixture
def public_goals(folder: Path, public: dict[str, Product]) -> tuple[Goal, ...]:
    """WebShop's 6910 synthetic goals."""
    return ShopFolder(folder).goals(tuple(public.values()), "synthetic")


def test_shuffled() -> None:
    """As ``random.seed(233); random.shuffle`` of CPython, computed there."""
    assert shuffled(10, 233) == [5, 9, 0, 1, 4, 7, 6, 3, 8, 2]
    assert shuffled(1, 233) == [0]
    assert shuffled(0, 233) == []


@pytest.mark.parametrize(
    ("scheme", "sizes"),
    [
        ("paper", {"test": 500, "dev": 1000, "train": 500}),
        ("verl", {"test": 500, "train": 1500}),
        ("by_product", {"test": 300, "dev": 200, "train": 1500}),
    ],
)
def test_sizes(goal: Goal, scheme: Scheme, sizes: dict[str, int]) -> None:
    """Of 2000 goals of 20 products; ``by_product`` tests on three of them and develops on two."""
    goals = many(goal, 2000, 20)
    found = divide(goals, scheme)
    assert {split: len(ids) for split, ids in found.goals.items()} == sizes
    assert found.left_out == ()
    names = [name for ids in found.goals.values() for name in ids]
    assert sorted(names) == sorted(goal.id for goal in goals)
    assert divide(goals, scheme) == found
    assert len({found.digest(split) for split in sizes}) == len(sizes)


def test_no_product_is_shared(goal: Goal) -> None:
    """``by_product`` keeps all goals of a product in one split."""
    goals = many(goal, 300, 30)
    asins = {one.id: one.asin for one in goals}
    splits = [{asins[name] for name in ids} for ids in divide(goals, "by_product").goals.values()]
    assert sum(map(len, splits)) == len(set().union(*splits)) == 30


def test_repeated_texts_leave_the_training_goals(goal: Goal) -> None:
    """A text that is tested on is in no other split; the test split stays whole."""
    goals = many(goal, 2000, 20)
    tested = divide(goals, "paper").goals["test"][0]
    trained = divide(goals, "paper").goals["train"][0]
    texts = {one.id: one.text for one in goals}
    goals = [replace(one, text=f"  {texts[tested].upper()} ") if one.id == trained else one for one in goals]
    found = divide(goals, "paper")
    assert (len(found.goals["test"]), len(found.goals["train"])) == (500, 499)
    assert found.left_out == (trained,)


def test_overlap_is_refused() -> None:
    """With 20 tasks, 5 shared ids are refused; without these, one shared text still is."""
    texts = [f"goal {i}" for i in range(20)]
    texts[12] = " Goal  3"
    tasks = [(str(i), texts[i]) for i in range(20)]
    with pytest.raises(DataError, match=r"'test' and 'train' 0 ids and 1 texts.*'dev' and 'train' 5 ids and 5 texts"):
        refuse_overlap({"test": tasks[:5], "dev": tasks[5:10], "train": tasks[5:]})
    with pytest.raises(DataError, match=r"got shared by 'test' and 'train' 0 ids and 1 texts, e.g. 'goal 3': leave"):
        refuse_overlap({"test": tasks[:5], "dev": tasks[5:10], "train": tasks[10:]})
    refuse_overlap({"test": tasks[:5], "train": [task for task in tasks[5:] if task[0] != "12"]})


def test_too_few_goals(goal: Goal) -> None:
    """An empty split says what to do."""
    with pytest.raises(DataError, match="expected goals in split 'train' of 'paper', got none of 700"):
        divide(many(goal, 700, 7), "paper")


def test_plain() -> None:
    """Capitals and runs of blanks do not count."""
    assert plain("  Red\n HAT ") == "red hat"


def test_public_anchor(public_goals: tuple[Goal, ...]) -> None:
    """The shuffle of WebShop puts the known goals at 0, 499 and 500."""
    goals = {goal.id: goal for goal in public_goals}
    found = divide(public_goals, "paper")
    ends = [goals[name] for name in (found.goals["test"][0], found.goals["test"][499], found.goals["dev"][0])]
    assert [(goal.asin, dict(goal.options)) for goal in ends] == [
        ("B0743JKHBV", {"size": '28" x 28"'}),
        ("B01HQTWL6S", {"color": "royal blue", "size": "small"}),
        ("B094Q7B3SS", {"color": "a01#black", "size": "large"}),
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_public_splits_share_nothing(public_goals: tuple[Goal, ...], scheme: Scheme) -> None:
    """No id and no text is in two splits of WebShop's own goals."""
    texts = {goal.id: plain(goal.text) for goal in public_goals}
    found = divide(public_goals, scheme)
    refuse_overlap({split: [(name, texts[name]) for name in ids] for split, ids in found.goals.items()})
    assert sum(map(len, found.goals.values())) + len(found.left_out) == 6910
