"""Brief pages."""

from dataclasses import replace

from prover.envs.webshop import WebShopEnv
from prover.envs.webshop.bm25 import build
from prover.envs.webshop.brief import brief
from prover.envs.webshop.goal import Goal
from prover.envs.webshop.session import Session
from prover.envs.webshop.shop import Shop

START = Session(task="A000000001-1")


def test_start_page(small_shop: Shop) -> None:
    """The start page tells the goal and nothing else."""
    assert brief(small_shop, START) == small_shop.goals[START.task].text


def test_results(small_shop: Shop) -> None:
    """A line for each product: how many words it shares with the goal, which, its price, its id."""
    found = small_shop.step(START, "search[straw hats]")
    lines = brief(small_shop, found).splitlines()
    assert lines[:2] == ["page 1 of 2", "1 hat $15 pick a000000001"]
    assert len(lines) == 11
    second = small_shop.step(found, "click[next >]")
    assert brief(small_shop, second).splitlines()[0] == "page 2 of 2"
    nothing = small_shop.step(START, "search[zebra]")
    assert brief(small_shop, nothing) == "page 1 of 0"


def test_item(small_shop: Shop) -> None:
    """Of an option the values that the goal names, or all where it names none; a chosen one as chosen."""
    item = replace(START, page="item", query="hats", number=1, asin="A000000001")
    assert brief(small_shop, item).splitlines() == ["item: 1 hat $15", "color: pick red", "size: pick large"]
    chosen = small_shop.step(item, "click[rusty]")
    assert brief(small_shop, chosen).splitlines()[1:] == ["color: chosen rusty", "size: pick large"]
    assert brief(small_shop, replace(item, asin="A000000002")) == "item: 0 $15"
    hat = small_shop.products["A000000001"]
    other = Goal(id="x", asin=hat.asin, text="Find me a hat", attributes=("sun proof",), options=(), price_upper=20.0)
    documents = [(hat.asin, hat.search_text.split())]
    unasked = Shop([hat], build(documents), [other])
    told = brief(unasked, replace(item, task="x"))
    assert told.splitlines()[1:] == ["color: pick rusty, pick red", "size: pick small, pick large"]


def test_other_pages(small_shop: Shop) -> None:
    """Description, features, reviews and the end."""
    item = replace(START, page="item", query="hats", number=1, asin="A000000001")
    assert brief(small_shop, replace(item, page="description")) == "description: 1 hat"
    assert brief(small_shop, replace(item, page="features")) == "features:\n0\n0"
    assert brief(small_shop, replace(item, page="reviews")) == "reviews: none"
    assert brief(small_shop, replace(item, page="done", reward=2 / 3)) == "bought, score 0.67"


def test_everything_else_is_as_ever() -> None:
    """Rewards, success and what can be clicked do not depend on how pages are told."""
    full, short = WebShopEnv(), WebShopEnv(observation="brief")
    for seed, task in enumerate(full.tasks("test")[:20]):
        _, info = full.reset(options={"task": task})
        told, same = short.reset(options={"task": task})
        player = full.expert(seed)
        over, words, brief_words = False, 0, 0
        while not over:
            assert same == info
            action = player.act("", info)
            observation, reward, over, _, info = full.step(action)
            told, other, done, _, same = short.step(action)
            assert (other, done) == (reward, over)
            words, brief_words = words + len(observation.split()), brief_words + len(told.split())
        assert brief_words < words / 3
