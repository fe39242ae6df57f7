"""What environments are made of: one section per kind."""

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from prover.sections import Count, Section, Share, by_kind


class EnvSection(Section):
    """Keys of every environment."""

    split: str = "train"
    """Split whose tasks are trained on."""
    tasks: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Ids to choose from; all tasks of the split when left out."""


class AlfworldEnvConfig(EnvSection):
    """Household tasks in text."""

    kind: Literal["alfworld"] = "alfworld"
    data: str | None = "generated"
    """``generated`` for built-in households, or the folder of the original games; null takes ``ALFWORLD_DATA``."""
    task_types: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Task types to keep; all when left out."""
    max_receptacles: Count | None = None
    """Leave out households with more receptacles than this."""


class WebshopEnvConfig(EnvSection):
    """Shopping tasks in text."""

    kind: Literal["webshop"] = "webshop"
    data: str | None = "generated"
    """``generated`` for a small made-up shop, or the folder of WebShop's data; null takes ``WEBSHOP_DATA``."""
    goals: Literal["synthetic", "human"] = "synthetic"
    """Goals made from products, or written by people."""
    splits: Literal["by_product", "paper", "verl"] = "by_product"
    """How goals are divided; only ``by_product`` tests on products that were not trained on."""
    reward: Literal["original", "value_match"] = "original"
    """How options are compared: as WebShop does, or by their values alone."""
    observation: Literal["text", "text_rich"] = "text"
    """``text_rich`` marks what can be clicked and what was."""
    threshold: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Reward from which a purchase is a success."""
    num_products: Count | None = None
    """Take the first so many products only; all when left out."""


class LineEnvConfig(EnvSection):
    """The toy walk along cells 0..9."""

    kind: Literal["line"] = "line"


class CoinEnvConfig(EnvSection):
    """The toy that is decided by one coin flip."""

    kind: Literal["coin"] = "coin"
    turns: Count = 1
    """Flips to win in a row."""
    p: Share = 0.5
    """Chance that a flip is won."""


class CustomEnvConfig(EnvSection):
    """Any other environment: ``module:Class``, a name from the entry points ``prover.envs``, or a Gymnasium id."""

    kind: Annotated[str, Field(min_length=1)]
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the environment."""


EnvConfig = Annotated[
    Annotated[AlfworldEnvConfig, Tag("alfworld")]
    | Annotated[WebshopEnvConfig, Tag("webshop")]
    | Annotated[LineEnvConfig, Tag("line")]
    | Annotated[CoinEnvConfig, Tag("coin")]
    | Annotated[CustomEnvConfig, Tag("custom")],
    by_kind("alfworld", "webshop", "line", "coin"),
]
"""An environment, chosen by ``kind``."""
