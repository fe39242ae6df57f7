"""The rules of the shop."""

from dataclasses import replace

import pytest

from prover.envs.webshop.bm25 import build
from prover.envs.webshop.goal import Goal
from prover.envs.webshop.product import Product
from prover.envs.webshop.session import Session
from prover.envs.webshop.shop import Shop, parse


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("search[Red Hat]", ("search", "red hat")),
        ("click[Buy Now] and go", ("click", "buy now")),
        ("click[a] [b]", ("click[a] ", "b")),
        (" click[x]", (" click", "x")),
        ("search[]", None),
        ("[x]", None),
        ("buy now", None),
        ("", None),
        ("search[a\nb]", None),
        ("search[a]\n[b]", ("search", "a")),
        ("\nsearch[a]", None),
        ("search[]]", ("search", "]")),
        ("search[[]", ("search", "[")),
        ("a[[b]", ("a[", "b")),
        ("click[a[b]]", ("click[a", "b]")),
        ("]" + "[" * 50_000, None),
    ],
)
def test_parse(action: str, expected: tuple[str, str] | None) -> None:
    """Anything before the last bracket is the verb, in any case the argument is in lower case."""
    assert parse(action) == expected


@pytest.fixture
def start(goal: Goal) -> Session:
    """A shopper who has just come in."""
    return Session(task=goal.id)


def follow(shop: Shop, session: Session, *actions: str) -> Session:
    """Action after action."""
    for action in actions:
        session = shop.step(session, action)
    return session


def test_way_to_a_purchase(small_shop: Shop, start: Session) -> None:
    """Search, open, choose, buy: 1 for what was asked for."""
    actions = ("search[straw hat]", "click[a000000001]", "click[red]", "click[large]", "click[buy now]")
    last = follow(small_shop, start, *actions)
    assert (last.page, last.done, last.reward, last.invalid) == ("done", True, 1.0, False)
    assert last.options == (("color", "red"), ("size", "large"))
    assert small_shop.page(last).clickables == ()


def test_options_are_replaced(small_shop: Shop, start: Session) -> None:
    """Another value takes the place of the first, in whatever order they were clicked."""
    item = follow(small_shop, start, "search[straw]", "click[a000000001]")
    one = follow(small_shop, item, "click[small]", "click[rusty]", "click[large]")
    other = follow(small_shop, item, "click[large]", "click[rusty]")
    assert one == other


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (("click[< prev]",), Session(task="A000000001-1", page="results", query="straw", number=1)),
        (("click[back to search]",), Session(task="A000000001-1")),
        (("click[features]", "click[< prev]"), None),
        (("click[reviews]", "click[back to search]"), Session(task="A000000001-1")),
    ],
)
def test_ways_back(small_shop: Shop, start: Session, actions: tuple[str, ...], expected: Session | None) -> None:
    """A sub page leads back to the product with its options, the product to its results without them."""
    item = follow(small_shop, start, "search[straw]", "click[a000000001]", "click[red]")
    found = follow(small_shop, item, *actions)
    if expected is None:
        assert found == item
    else:
        assert found == replace(expected, visited=("A000000001",) if expected.page == "results" else ())


def test_pages_of_results(small_shop: Shop, start: Session) -> None:
    """Thirteen hats fill two pages; behind them come empty ones; a product leads back to its own page."""
    first = follow(small_shop, start, "search[hat]")
    second = follow(small_shop, first, "click[next >]")
    fourth = follow(small_shop, second, "click[next >]", "click[next >]")
    assert [len(small_shop.page(page).clickables) for page in (first, second, fourth)] == [2 + 10, 3 + 3, 3]
    assert "Page 4 (Total results: 13)" in small_shop.page(fourth).write("text")
    assert follow(small_shop, second, "click[< prev]") == first
    asin = small_shop.page(second).clickables[-1]
    assert follow(small_shop, second, f"click[{asin}]", "click[< prev]").number == 2


def test_search_works_on_every_page(small_shop: Shop, start: Session) -> None:
    """A new search forgets the product and its options."""
    item = follow(small_shop, start, "search[straw]", "click[a000000001]", "click[red]")
    expected = Session(task=start.task, page="results", query="wool", number=1, visited=("A000000001",))
    assert follow(small_shop, item, "search[Wool]") == expected
    assert follow(small_shop, item, "click[description]", "search[wool]") == expected


@pytest.mark.parametrize(
    "action",
    ["click[search]", "click[buy now]", "click[red]", "dance", "", "search[]", "Search[hat]", "click[x", "\ud800"],
)
def test_what_means_nothing(small_shop: Shop, start: Session, action: str) -> None:
    """On the start page nothing can be clicked; the session stays but for its mark."""
    assert small_shop.step(start, action) == replace(start, invalid=True)
    assert small_shop.step(replace(start, invalid=True), "search[hat]").invalid is False


@pytest.mark.parametrize("query", ["<r>", "<c> garden", "<q> gloves", "<a> sun proof"])
def test_no_back_doors(small_shop: Shop, query: str) -> None:
    """WebShop's secret queries are plain words, of which this index knows none."""
    assert small_shop.search(query) == ()
    assert small_shop.search(f"{query} straw") == ("A000000001",)


def test_shadowed_option(hat: Product, goal: Goal, small_shop: Shop) -> None:
    """A value of two options sets the later one; a value named like a button is that button."""
    odd = replace(hat, options=(("a", ("x", "buy now")), ("b", ("x",))))
    shop = Shop([odd], small_shop._index, [goal])
    item = Session(task=goal.id, page="item", query="hat", number=1, asin=hat.asin)
    assert shop.step(item, "click[x]").options == (("b", "x"),)
    assert shop.step(item, "click[buy now]").done


def test_lower_case_asin(hat: Product, goal: Goal, small_shop: Shop) -> None:
    """A product is opened by its asin in lower case, however the data write it."""
    low = replace(hat, asin="a00000000x")
    shop = Shop([hat, low], build([(hat.asin, ["cap"]), (low.asin, ["hat"])]), [goal])
    results = shop.step(Session(task=goal.id), "search[hat]")
    assert shop.step(results, "click[a00000000x]").asin == "a00000000x"


def test_ceiling(hat: Product, goal: Goal, small_shop: Shop) -> None:
    """A goal whose colour only contains a colour word is out of reach by the original reward alone."""
    rusty = replace(goal, id="rusty", options=(("color", "rusty"), ("size", "large")))
    shop = Shop([hat], small_shop._index, [goal, rusty])
    ids = [goal.id, "rusty"]
    assert shop.ceiling(ids) == 0.5
    assert shop.ceiling(ids, "value_match") == 1.0
    assert shop.ceiling(ids, threshold=0.75) == 1.0
