"""What judges are made of: one section per kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, model_validator

from prover.backend_config import BackendConfig
from prover.errors import ConfigError
from prover.sections import (
    Count,
    FilePath,
    NonNegative,
    Positive,
    Section,
    SegmentLength,
    Share,
    by_kind,
    check,
    read,
)


class ContrastJudgeConfig(Section):
    """Points at what a success did and no failure did; needs no model."""

    kind: Literal["contrast"] = "contrast"
    max_length: SegmentLength = 4
    """Longest segment, in turns."""
    rare: Share = 0.5
    """Largest share of the failures that may have reached a fact; 0 takes facts that none reached."""
    facts_only: bool = False
    """Point at nothing where there is no such fact."""
    segments: Count = 1
    """Most segments of a group, the best first; none overlap."""
    context: Annotated[int, Field(ge=0, le=3)] = 0
    """Turns before the named one that belong to its segment, so far as they may be named."""
    min_alternative: Share = 0.2
    """Smallest probability of another reply in the named turn: what the policy does anyway makes no difference."""


class RandomSegmentJudgeConfig(Section):
    """Points anywhere: the control that a judge has to beat."""

    kind: Literal["random_segment"] = "random_segment"
    max_length: SegmentLength = 1
    """Longest segment, in turns."""


class DivergenceJudgeConfig(Section):
    """Points at the turn where the success parts from its failures."""

    kind: Literal["divergence"] = "divergence"
    which: Literal["first", "last"] = "last"
    """``first``: where it parts from the first failure; ``last``: from the one that went along longest."""


class AnchorJudgeConfig(Section):
    """Points at the turn at which the group's other runs through the same states did better."""

    kind: Literal["anchor"] = "anchor"


class EntropyJudgeConfig(Section):
    """Points at the turn in which the policy was least certain."""

    kind: Literal["entropy"] = "entropy"


class EveryTurnJudgeConfig(Section):
    """Points at every turn, at every stretch of so many turns, or at so many stretches."""

    kind: Literal["every_turn"] = "every_turn"
    of: Literal["all", "successes", "shortest"] = "all"
    """Runs whose turns are measured."""
    length: SegmentLength = 1
    """Turns of a segment."""
    pieces: Count | None = None
    """Cut a run into so many segments of nearly equal length, however long they get; ``length`` plays no part then."""


class ExpertJudgeConfig(Section):
    """Points at the turn that brought the scripted expert of the environment closest to the goal: a reference."""

    kind: Literal["expert"] = "expert"
    samples: Count = 4
    """Episodes of the expert from each state; it searches in an order of its own."""
    limit: Count = 100
    """Turns after which it stops; from where it does not succeed it is taken to need so many."""


class FixedJudgeConfig(Section):
    """Cuts the success every so many turns and points at one of the pieces."""

    kind: Literal["fixed"] = "fixed"
    length: SegmentLength = 4
    """Turns of a piece."""


class OracleJudgeConfig(Section):
    """Points at a turn that is known to be pivotal: an upper bound, where there is such knowledge."""

    kind: Literal["oracle"] = "oracle"
    pivots: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    """``module:function``; it gets a trajectory and returns its pivotal turns."""


class LLMJudgeConfig(Section):
    """Asks a chat model."""

    kind: Literal["llm"] = "llm"
    backend: BackendConfig
    """The model and where it runs."""
    mode: Literal["agentic", "single"] = "agentic"
    """``agentic`` lets the model look things up with tools; ``single`` asks once, for small models."""
    tools: Annotated[
        tuple[Literal["search_trajectory", "get_segment", "diff_trajectories", "list_actions"], ...],
        Field(min_length=1),
    ] = ("search_trajectory", "get_segment")
    """What the model may call."""
    max_length: SegmentLength = 4
    """Longest segment, in turns."""
    tool_calls: Annotated[int, Field(ge=0)] = 6
    """Calls of tools for one group."""
    repairs: Annotated[int, Field(ge=0)] = 3
    """Replies that cannot be used and are sent back, for one group."""
    group_tokens: Count = 120_000
    """Tokens of one group, prompts and replies of all requests together, after which it is given up."""
    group_seconds: Positive = 300.0
    """Seconds of one group after which it is given up."""
    reply_tokens: Count = 1024
    """Limit of one reply, in tokens."""
    view_chars: Annotated[int, Field(ge=500)] = 24_000
    """Characters that the records in the prompt should fit into; about four make a token."""
    temperature: NonNegative = 0.0
    """Of the model's sampling."""
    two_orders: bool = False
    """Whether every group is judged a second time in the opposite order, and only what both name is kept."""
    cache: Literal["on", "off", "replay"] = "on"
    """Whether judgements are stored and found again; ``replay`` takes stored ones only and asks nobody."""
    cache_path: FilePath | None = None
    """File of the judgements; ``judge_cache.jsonl`` in the run folder when left out."""

    @model_validator(mode="after")
    def _names_a_file_to_replay(self) -> Self:
        if self.cache == "replay" and self.cache_path is None:
            raise ValueError("cache: replay needs cache_path, the judge_cache.jsonl of the run to replay")
        return self


class NoJudgeConfig(Section):
    """Proposes nothing: every update is plain GRPO."""

    kind: Literal["none"] = "none"


class CustomJudgeConfig(Section):
    """Any other judge: ``module:Class`` or a name from the entry points ``prover.judges``."""

    kind: Annotated[str, Field(min_length=1)]
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the judge."""


JudgeConfig = Annotated[
    Annotated[ContrastJudgeConfig, Tag("contrast")]
    | Annotated[RandomSegmentJudgeConfig, Tag("random_segment")]
    | Annotated[LLMJudgeConfig, Tag("llm")]
    | Annotated[DivergenceJudgeConfig, Tag("divergence")]
    | Annotated[AnchorJudgeConfig, Tag("anchor")]
    | Annotated[EntropyJudgeConfig, Tag("entropy")]
    | Annotated[EveryTurnJudgeConfig, Tag("every_turn")]
    | Annotated[ExpertJudgeConfig, Tag("expert")]
    | Annotated[FixedJudgeConfig, Tag("fixed")]
    | Annotated[OracleJudgeConfig, Tag("oracle")]
    | Annotated[NoJudgeConfig, Tag("none")]
    | Annotated[CustomJudgeConfig, Tag("custom")],
    by_kind(
        "contrast",
        "random_segment",
        "llm",
        "divergence",
        "anchor",
        "entropy",
        "every_turn",
        "expert",
        "fixed",
        "oracle",
        "none",
    ),
]
"""A judge, chosen by ``kind``."""


class _JudgeFile(Section):
    judge: JudgeConfig


def load_judges(words: Sequence[str], default: JudgeConfig | None = None) -> dict[str, JudgeConfig]:
    """Judges to compare, by the name that they are shown under; ``random_segment`` is the first of them.

    Args:
        words: Each is a kind, or a YAML file that holds the section of a judge, either alone or as ``judge``.
        default: The judge besides where there are no words.

    Raises:
        ConfigError: A file cannot be read, a key or value is wrong, or two judges have one name.

    >>> load_judges(["contrast"])
    {'random_segment': RandomSegmentJudgeConfig(kind='random_segment', max_length=1), 'contrast': \
ContrastJudgeConfig(kind='contrast', max_length=4, rare=0.5, facts_only=False, segments=1, context=0, \
min_alternative=0.2)}
    """
    found: dict[str, JudgeConfig] = {default.kind: default} if default and not words else {}
    for word in words:
        is_file = word.endswith((".yaml", ".yml"))
        data = read(word) if is_file else {"kind": word}
        name = Path(word).stem if is_file else word
        if name in found:
            raise ConfigError(f"Expected judges of different names, got two called {name!r}. Rename a file.")
        found[name] = check(_JudgeFile, {"judge": data.get("judge", data)}, word).judge
    return {"random_segment": found.pop("random_segment", RandomSegmentJudgeConfig()), **found}
