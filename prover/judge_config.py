"""What judges are made of: one section per kind."""

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from prover.sections import Section, SegmentLength, by_kind


class ContrastJudgeConfig(Section):
    """Points at what a success did and no failure did; needs no model."""

    kind: Literal["contrast"] = "contrast"
    max_length: SegmentLength = 4
    """Longest segment, in turns."""


class RandomSegmentJudgeConfig(Section):
    """Points anywhere: the control that a judge has to beat."""

    kind: Literal["random_segment"] = "random_segment"
    max_length: SegmentLength = 1
    """Longest segment, in turns."""


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
    | Annotated[NoJudgeConfig, Tag("none")]
    | Annotated[CustomJudgeConfig, Tag("custom")],
    by_kind("contrast", "random_segment", "none"),
]
"""A judge, chosen by ``kind``."""
