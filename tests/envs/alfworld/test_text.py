"""Names, lists and descriptions."""

import hashlib

import pytest

from prover.envs.alfworld.text import HELP, described, joined, listed, numbered, opening, overview
from prover.errors import DataError


def test_help_is_the_stock_text() -> None:
    """The help text has the length and the hash that were recorded from stock TextWorld."""
    assert len(HELP) == 866
    digest = "cb05b8dd1c3ae794cff5eaa8b1caab7dfc1800e076cd18c0a6021f127727c325"
    assert hashlib.sha256(HELP.encode()).hexdigest() == digest


def test_numbers_count_down_over_sorted_ids() -> None:
    """Every word is counted by itself, across all types; a basin is another word than its sink."""
    ids = ["mug_bar_b", "sink_bar_a_bar_sinkbasin", "mug_bar_a", "sink_bar_a", "mug_bar_c"]
    assert numbered(ids) == {
        "mug_bar_a": "mug 3",
        "mug_bar_b": "mug 2",
        "mug_bar_c": "mug 1",
        "sink_bar_a": "sink 1",
        "sink_bar_a_bar_sinkbasin": "sinkbasin 1",
    }


def test_ids_need_a_word() -> None:
    """An id of another form is refused."""
    with pytest.raises(DataError, match="'mug'"):
        numbered(["mug"])


@pytest.mark.parametrize(
    ("parts", "words"),
    [([], "nothing"), (["a"], "a"), (["a", "b"], "a, and b"), (["a", "b", "c"], "a, b, and c")],
)
def test_joined(parts: list[str], words: str) -> None:
    """A comma stands before every further part, the last one with "and"."""
    assert joined(parts) == words


def test_article_is_always_a() -> None:
    """Even an apple is "a apple"."""
    assert listed(["apple 1", "egg 2"]) == "a apple 1, and a egg 2"


@pytest.mark.parametrize(
    ("qualities", "words"),
    [
        ("", "There's nothing special about egg 1."),
        ("clean", "This is a clean egg 1."),
        ("hot", "This is a hot egg 1."),
        ("cool", "This is a cold egg 1."),
        ("sliced", "This is a sliced egg 1."),
        ("used", "This egg 1 is on."),
        ("hot clean", "This is a hot and clean egg 1."),
        ("cool clean", "This is a cool and clean egg 1."),
        ("hot cool", "This is a hot egg 1."),
        ("hot sliced", "This is a hot sliced egg 1."),
        ("cool sliced", "This is a cool sliced egg 1."),
        ("clean sliced", "This is a clean sliced egg 1."),
        ("hot clean sliced", "This is a hot and clean sliced egg 1."),
        ("cool clean sliced", "This is a cool and clean sliced egg 1."),
        ("used sliced", "This egg 1 is on."),
        ("used clean", "This is a clean egg 1."),
    ],
)
def test_described(qualities: str, words: str) -> None:
    """Warmth comes before clean; what is only cool is called cold; on and sliced count when nothing else does."""
    names = ("clean", "hot", "cool", "sliced", "used")
    flags = {name: name in qualities.split() for name in names}
    assert described("egg 1", **flags) == words


def test_the_first_observation() -> None:
    """A banner, what is seen from the middle of a place, and the task; an empty place shows nothing."""
    assert opening(overview("hall", ["desk 1", "bed 2"]), "put a pen in desk") == (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a hall. Looking quickly around you, you see a desk 1, and a bed 2.\n\n"
        "Your task is to: put a pen in desk."
    )
    assert overview("room", ()) == "You are in the middle of a room. Looking quickly around you, you see nothing."
