"""Sections of judges."""

import pytest

from prover.config import load_config
from prover.errors import ConfigError
from prover.judge_config import ContrastJudgeConfig, CustomJudgeConfig, RandomSegmentJudgeConfig


def test_the_kind_chooses_the_section() -> None:
    """Contrast is the default; any kind that is not shipped is a custom one."""
    assert isinstance(load_config().judge, ContrastJudgeConfig)
    assert isinstance(load_config(None, ["judge.kind=random_segment"]).judge, RandomSegmentJudgeConfig)
    assert isinstance(load_config(None, ["judge.kind=my:Judge"]).judge, CustomJudgeConfig)


@pytest.mark.parametrize("length", [0, 5])
def test_segments_have_one_to_four_turns(length: int) -> None:
    """Longer segments are never measured, so they cannot be configured."""
    with pytest.raises(ConfigError, match=r"judge\.max_length"):
        load_config(None, [f"judge.max_length={length}"])
