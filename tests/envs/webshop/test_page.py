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


def test_whole_pages_in_text_rich(hat: Product, cap: Product) -> None:
    """Each page line by line, written by hand after WebShop's templates and its way of writing them."""
    head = "Instruction:\nFind it\n[button] Back to Search [button_]\n"
    back = head + "[button] < Prev [button_]\n"
    results = pages.results("Find it", 2, 12, [hat, cap]).write("text_rich", visited=[cap.asin])
    assert results == (
        f"{head}Page 2 (Total results: 12)\n[button] < Prev [button_]\n[button] Next > [button_]\n"
        "\n[button] A000000001 [button_]\nStraw Hat\n$15.0\n"
        "\n[clicked button] A000000002 [clicked button_]\nWool Cap\n$15.0\n"
    )
    item = pages.item("Find it", hat).write("text_rich", address='A000000001/straw/1/{"size": "large"}')
    assert item == (
        f"You have clicked large.\n{back}color\n  [button] rusty [button_]\n  [button] red [button_]\n"
        "size\n  [button] small [button_]\n  [clicked button] large [clicked button_]\n"
        "Straw Hat\nPrice: $15.0\nRating: N.A.\n[button] Description [button_]\n[button] Features [button_]\n"
        "[button] Reviews [button_]\n[button] Buy Now [button_]\n"
    )
    assert pages.description("Find it", hat).write("text_rich") == f"{back}A hat of straw.\n"
    assert pages.features("Find it", hat).write("text_rich") == f"{back} wide brim \n  keeps off rain\n"
    assert pages.reviews("Find it").write("text_rich") == back
    done = pages.done(hat.asin, [("size", "large")], 0.5).write("text_rich")
    assert done.startswith("Thank you for shopping with us!\nYour code: \nNone\n (Paste it in your MTurk interface.)\n")
    assert done.endswith("Your score (min 0.0, max 1.0)\n0.5\nReward Details \nNone\n")


def test_what_counts_as_chosen(hat: Product) -> None:
    """A value that occurs in the address in quotes, as WebShop looks for it.

    So a quoted word of the search counts, and the name of an option; what JSON escapes never does.
    """
    odd = replace(hat, options=(("size", ('5"', "caf\u00e9", "size", "red")),))
    chosen = pages.item("Go", odd).write("text_rich", address='X/"red"+hat/1/{"size": "5\\"", "a": "caf\\u00e9"}')
    assert chosen.startswith("You have clicked red.\nYou have clicked size.\nInstruction:")
    assert '  [button] 5" [button_]\n  [button] caf\u00e9 [button_]\n  [clicked button] size' in chosen


def test_blanks(hat: Product) -> None:
    """Between tags WebShop's parser keeps one blank of blanks, and nothing where there is a line break among them.

    A feature stands behind a blank in its template, so that one without words is an empty part.
    """
    head = ["Instruction:", "Go", "Back to Search", "< Prev"]
    page = pages.features("Go", replace(hat, bullets=("", " \t", "\n", "\u00a0", " x\ny ")))
    assert parts(page.write("text")) == [*head, "", "", "", "x\ny"]
    assert page.write("text_rich").endswith("< Prev [button_]\n \n \n \u00a0\n  x\ny \n")
    for description, expected in (("", []), ("\r\n ", []), ("  ", [""]), ("\u2003", [""])):
        assert parts(pages.description("Go", replace(hat, description=description)).write("text")) == head + expected
    page = pages.results("Go", 1, 1, [replace(hat, title=" ")])
    assert parts(page.write("text"))[-3:] == ["A000000001", "", "$15.0"]


def test_texts_are_shown_as_they_are(hat: Product) -> None:
    """What looks like HTML is text in the products' data, and so it stays."""
    title = "<b>Hat</b> &amp; \"Cap\" 'n' \u2605\u200d\ufeff\x00"
    page = pages.item("Go", replace(hat, title=title))
    assert parts(page.write("text"))[-7] == title
    assert f"\n{title}\n" in page.write("text_rich")


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
