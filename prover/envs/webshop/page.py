"""Pages: what a shopper reads and can click, as WebShop's templates show it.

Every page is a list of text nodes. ``text`` joins them with ``[SEP]``; ``text_rich`` writes one a line and marks what
can be clicked and what was.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from prover.envs.webshop.product import Product

Mode = Literal["text", "text_rich"]
"""How a page is written."""

MODES: tuple[Mode, ...] = ("text", "text_rich")

BACK, PREVIOUS, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
SUB_PAGES = ("Description", "Features", "Reviews")
_RATING = "N.A."  # WebShop never shipped its reviews
_BLANKS = " \t\n\f\r"
_HTML_SAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})


class Node(NamedTuple):
    """A piece of text."""

    text: str
    """As in the template, outer blanks included."""
    kind: Literal["text", "button", "option", "product"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page."""

    nodes: tuple[Node, ...]
    clickables: tuple[str, ...]
    """What ``click[...]`` takes, in order: buttons, then products or options; in lower case, distinct."""
    search_bar: bool = False

    def write(self, mode: Mode, *, address: str = "", visited: Iterable[str] = ()) -> str:
        """The page as text.

        Args:
            mode: how.
            address: the page's address; ``text_rich`` finds in it which options were chosen.
            visited: asins that were opened before; ``text_rich`` marks them.
        """
        if mode == "text":
            return " [SEP] ".join(text.strip() for node in self.nodes if (text := _parsed(node.text)))
        nodes = [node for node in self.nodes if _parsed(node.text)]
        lines = [_rich(node, address, visited) for node in nodes]
        chosen = [node.text for node in nodes if node.kind == "option" and f'"{node.text}"' in address]
        return "".join(f"You have clicked {text}.\n" for text in reversed(chosen)) + "".join(f"{x}\n" for x in lines)


def _parsed(text: str) -> str:
    """What WebShop's parser of HTML leaves of a text: of nothing but blanks one blank, and nothing of a line break.

    So a feature without words is an empty part in ``text`` and a blank line in ``text_rich``, but a title is no part.
    """
    if text.strip(_BLANKS):
        return text
    return " " if text and "\n" not in text else ""


def _rich(node: Node, address: str, visited: Iterable[str]) -> str:
    if node.kind == "text":
        return _parsed(node.text)
    if node.kind == "button":
        return f"[button] {node.text} [button_]"
    lead, clicked = ("  ", f'"{node.text}"' in address) if node.kind == "option" else ("\n", node.text in visited)
    return (
        f"{lead}[clicked button] {node.text} [clicked button_]" if clicked else f"{lead}[button] {node.text} [button_]"
    )


def index(instruction: str) -> Page:
    """The start page, with the search bar."""
    nodes = (Node("WebShop"), Node("Instruction: "), Node(instruction), Node("Search", "button"))
    return Page(nodes=nodes, clickables=("search",), search_bar=True)


def results(instruction: str, number: int, total: int, products: Sequence[Product]) -> Page:
    """A page of search results.

    Args:
        instruction: the goal's text.
        number: 1-based number of the page.
        total: number of products found, on all pages.
        products: those on this page.
    """
    nodes = [Node("Instruction:"), Node(instruction), Node(BACK, "button")]
    nodes.append(Node(f"Page {number} (Total results: {total})"))
    nodes += [Node(PREVIOUS, "button")] * (number > 1) + [Node(NEXT, "button")]
    for product in products:
        nodes += (Node(product.asin, "product"), Node(product.title), Node(product.price_text))
    return Page(nodes=tuple(nodes), clickables=_clickables(nodes))


def item(instruction: str, product: Product) -> Page:
    """The page of a product. Chosen options do not show in ``text``."""
    nodes = _heading(instruction)
    for name, values in product.options:
        nodes.append(Node(name))
        nodes += (Node(value, "option") for value in values)
    nodes += (Node(product.title), Node(f"Price: {product.price_text}"), Node(f"Rating: {_RATING}"))
    nodes += (Node(name, "button") for name in (*SUB_PAGES, BUY))
    return Page(nodes=tuple(nodes), clickables=_clickables(nodes))


def description(instruction: str, product: Product) -> Page:
    """The page with a product's description."""
    nodes = [*_heading(instruction), Node(product.description)]
    return Page(nodes=tuple(nodes), clickables=_clickables(nodes))


def features(instruction: str, product: Product) -> Page:
    """The page with a product's features."""
    nodes = [*_heading(instruction), *(Node(f" {bullet}") for bullet in product.bullets)]
    return Page(nodes=tuple(nodes), clickables=_clickables(nodes))


def reviews(instruction: str) -> Page:
    """The page with a product's reviews: there are none."""
    nodes = _heading(instruction)
    return Page(nodes=tuple(nodes), clickables=_clickables(nodes))


def done(asin: str, options: Iterable[tuple[str, str]], reward: float) -> Page:
    """The page after a purchase. WebShop's template has more fields than it is given values for."""
    chosen = json.dumps(dict(options), sort_keys=True).translate(_HTML_SAFE)
    texts = (
        *("Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"),
        *("Purchased", "asin", asin, "options", chosen, "attrs", "None", "category", "None", "query", "None"),
        *("product category", "None", "Target", "asin", "options", "attrs", "price upper", "instuction text"),
        *("category", "product category", "query", "Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)"),
        *(str(reward), "Reward Details ", "None"),
    )
    return Page(nodes=tuple(Node(text) for text in texts), clickables=())


def _heading(instruction: str) -> list[Node]:
    return [Node("Instruction:"), Node(instruction), Node(BACK, "button"), Node(PREVIOUS, "button")]


def _clickables(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Buttons and products in lower case, then options, each once."""
    nodes = list(nodes)
    buttons = [node.text.lower() for node in nodes if node.kind in ("button", "product")]
    return tuple(dict.fromkeys([*buttons, *(node.text for node in nodes if node.kind == "option")]))
