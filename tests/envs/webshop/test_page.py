"""Pages."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from prover.envs.webshop import page as pages
from prover.envs.webshop.product import Product


def parts(text: str) -> list[str]:
    """What the separators part."""
    return text.split(" [SEP] ")


def test_index() -> None:
    """The start page has the search bar."""
    page = pages.index("Find it")
    assert parts(page.write("text")) == ["WebShop", "Instruction:", "Find it", "Search"]
    assert (page.clickables, page.search_bar) == (("search",), True)
    assert page.write("text_rich") == "WebShop\nInstruction: \nFind it\n[button] Search [button_]\n"


def test_results(hat: Product, cap: Product) -> None:
    """Asin, title and price of each product; a title that is missing leaves no trace; ``< Prev`` from page 2 on."""
    page = pages.results("Find it", 1, 2, [hat, replace(cap, title="")])
    assert parts(page.write("text")) == [
        *("Instruction:", "Find it", "Back to Search", "Page 1 (Total results: 2)", "Next >"),
        *("A000000001", "Straw Hat", "$15.0", "A000000002", "$15.0"),
    ]
    assert page.clickables == ("back to search", "next >", "a000000001", "a000000002")
    assert pages.results("Find it", 2, 12, []).clickables == ("back to search", "< prev", "next >")
    rich = page.write("text_rich", visited=["A000000001"])
    assert (
        "\n\n[clicked button] A000000001 [clicked button_]\nStraw Hat\n$15.0\n\n[button] A000000002 [button_]\n" in rich
    )


def test_item(hat: Product) -> None:
    """Options, title, price and buttons; chosen options show in ``text_rich`` alone."""
    page = pages.item("Find it", hat)
    assert parts(page.write("text")) == [
        *(
            "Instruction:",
            "Find it",
            "Back to Search",
            "< Prev",
            "color",
            "rusty",
            "red",
            "size",
            "small",
            "large",
        ),
        *("Straw Hat", "Price: $15.0", "Rating: N.A.", "Description", "Features", "Reviews", "Buy Now"),
    ]
    assert page.clickables == (
        *("back to search", "< prev", "description", "features", "reviews", "buy now"),
        *("rusty", "red", "small", "large"),
    )
    rich = page.write("text_rich", address='A000000001/hat/1/{"color": "red", "size": "small"}')
    assert rich.startswith("You have clicked small.\nYou have clicked red.\nInstruction:\nFind it\n[button] Back")
    assert "color\n  [button] rusty [button_]\n  [clicked button] red [clicked button_]\n" in rich


def test_equal_values_are_one_clickable(hat: Product) -> None:
    """As in the dictionary in which WebShop keeps them."""
    page = pages.item("Find it", replace(hat, options=(("a", ("x", "y")), ("b", ("x",)))))
    assert page.clickables[-2:] == ("x", "y")


def test_sub_pages(hat: Product) -> None:
    """Description, features and reviews, each with a way back."""
    found = [pages.description("Go", hat), pages.features("Go", hat), pages.reviews("Go")]
    head = ["Instruction:", "Go", "Back to Search", "< Prev"]
    assert [parts(page.write("text")) for page in found] == [
        [*head, "A hat of straw."],
        [*head, "wide brim", "keeps off rain"],
        head,
    ]
    assert {page.clickables for page in found} == {("back to search", "< prev")}
    assert parts(pages.description("Go", replace(hat, description="")).write("text")) == head


def test_done() -> None:
    """The last page shows what was bought and the reward, and takes no clicks; the rest of its fields is empty."""
    page = pages.done("A000000001", [("size", "5'"), ("color", "é & red")], 0.75)
    assert parts(page.write("text")) == [
        *("Thank you for shopping with us!", "Your code:", "None", "(Paste it in your MTurk interface.)", "Purchased"),
        *("asin", "A000000001", "options", r'{"color": "\u00e9 \u0026 red", "size": "5\u0027"}', "attrs", "None"),
        *("category", "None", "query", "None", "product category", "None", "Target", "asin", "options", "attrs"),
        *("price upper", "instuction text", "category", "product category", "query", "Goal", "None", "Reward"),
        *("Your score (min 0.0, max 1.0)", "0.75", "Reward Details", "None"),
    ]
    assert page.clickables == ()


def test_recorded_pages(recorded: Callable[[str], list[Any]], public: dict[str, Product]) -> None:
    """All recorded pages have the text and the clickables of WebShop's templates."""
    cases = recorded("page_vectors.jsonl.gz")
    assert len(cases) >= 75
    for case in cases:
        text = case["instruction"]
        if case["kind"] == "index":
            page = pages.index(text)
        elif case["kind"] == "results":
            page = pages.results(text, case["page"], case["total"], [public[asin] for asin in case["asins"]])
        elif case["kind"] == "reviews":
            page = pages.reviews(text)
        else:
            page = getattr(pages, case["kind"])(text, public[case["asin"]])
        assert page.write("text") == case["text"]
        assert list(page.clickables) == case["clickables"]
        assert page.search_bar is case["has_search_bar"]
