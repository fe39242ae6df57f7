"""What environments are made of: one section per kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, Tag, model_validator

from prover.backend_config import BackendConfig, LocalBackendConfig
from prover.retriever_config import Bm25RetrieverConfig, RetrieverConfig
from prover.sections import Count, Section, Share, by_kind


class EnvSection(Section):
    """Keys of every environment."""

    split: str = "train"
    """Split whose tasks are trained on."""
    tasks: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Ids to choose from; all tasks of the split when left out."""

    def kept_in(self, folder: Path) -> Self:
        """The same environment, which keeps in the folder of a run what all of the run has to see alike."""
        return self


class AlfworldEnvConfig(EnvSection):
    """Household tasks in text."""

    kind: Literal["alfworld"] = "alfworld"
    data: str | None = "generated"
    """``generated`` for built-in households, or the folder of the original games; null takes ``ALFWORLD_DATA``."""
    task_types: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Task types to keep; all when left out."""
    max_receptacles: Count | None = None
    """Leave out households with more receptacles than this."""
    pivot: Literal["door"] | None = None
    """``door`` makes the first turn of a generated household a choice of the room that cannot be undone: the task can
    be done behind one of four doors, which its goal tells. Null leaves households as they are."""


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
    observation: Literal["text", "text_rich", "brief"] = "text"
    """``text_rich`` marks what can be clicked and what was; ``brief`` tells what a page and the goal share."""
    threshold: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Reward from which a purchase is a success."""
    num_products: Count | None = None
    """Take the first so many products only; all when left out."""
    index: Literal["exact", "tantivy"] = "exact"
    """``exact`` ranks as WebShop's Lucene does; ``tantivy`` (extra ``tantivy``) serves millions of products, but is not
    Lucene-exact, so that results are not comparable with those of others."""


class SemanticConfig(Section):
    """A chat model that says whether answers mean the same as the right ones; asked in evaluations only."""

    backend: BackendConfig
    """The model, where it runs, and its budget."""
    repairs: Annotated[int, Field(ge=0)] = 2
    """Replies that may be sent back because they cannot be read."""
    reply_tokens: Count = 512
    """Limit of one reply, in tokens; a model that thinks first needs more."""

    @model_validator(mode="after")
    def _somebody_else(self) -> Self:
        if isinstance(self.backend, LocalBackendConfig) and self.backend.path is None:
            raise ValueError("a local backend needs path, the folder of a model: no policy grades its own answers")
        return self


class SearchqaEnvConfig(EnvSection):
    """Questions that are answered by searching."""

    also_called: ClassVar[Mapping[str, str]] = {"topk": "top_k", "max_turns": "max_searches"}

    kind: Literal["searchqa"] = "searchqa"
    data: str | None = "generated"
    """``generated`` for a small made-up encyclopedia, or the folder of questions and passages; null takes
    ``SEARCHQA_DATA``."""
    datasets: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Keep the questions of these datasets; all when left out."""
    retriever: RetrieverConfig = Bm25RetrieverConfig()
    """What searches."""
    max_searches: Count = 4
    """Searches of an episode; a further one is not made. Leave ``rollout.max_turns`` at least one above it."""
    top_k: Count = 3
    """Passages of a search."""
    passage_format: Literal["search_r1", "verl", "verl_agent"] = "search_r1"
    """How passages are written; models are used to the one that they were trained with."""
    observation_tokens: Count = 500
    """Most tokens of passages in one observation, counted as four bytes each."""
    syntax: Literal["tags", "brackets"] = "tags"
    """``tags`` for ``<search>...</search>`` and ``<answer>...</answer>``, ``brackets`` for ``search[...]`` and
    ``answer[...]``, which the small policies say."""
    metric: Literal["em", "sub_em", "f1"] = "em"
    """What an answer is worth."""
    threshold: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Worth from which an answer is a success."""
    normalisation: Literal["standard", "unicode"] = "standard"
    """How answers are compared: as Search-R1 does, or with regard to all scripts."""
    semantic: SemanticConfig | None = None
    """Who says in evaluations whether answers mean the same as the right ones; null asks nobody."""

    def kept_in(self, folder: Path) -> Self:
        """The same questions; what searches keeps its answers in the folder, as ``retriever.cache`` says."""
        return self.model_copy(update={"retriever": self.retriever.kept_in(folder)})


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
    | Annotated[SearchqaEnvConfig, Tag("searchqa")]
    | Annotated[LineEnvConfig, Tag("line")]
    | Annotated[CoinEnvConfig, Tag("coin")]
    | Annotated[CustomEnvConfig, Tag("custom")],
    by_kind("alfworld", "webshop", "searchqa", "line", "coin"),
]
"""An environment, chosen by ``kind``."""
