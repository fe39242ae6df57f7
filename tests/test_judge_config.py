"""Sections of judges."""

from pathlib import Path

import pytest

from prover.config import load_config
from prover.errors import ConfigError
from prover.judge_config import (
    ContrastJudgeConfig,
    CustomJudgeConfig,
    DivergenceJudgeConfig,
    EntropyJudgeConfig,
    ExpertJudgeConfig,
    FixedJudgeConfig,
    LLMJudgeConfig,
    OracleJudgeConfig,
    RandomSegmentJudgeConfig,
    load_judges,
)


def test_the_kind_chooses_the_section() -> None:
    """Contrast is the default; any kind that is not shipped is a custom one."""
    assert isinstance(load_config().judge, ContrastJudgeConfig)
    assert isinstance(load_config(None, ["judge.kind=random_segment"]).judge, RandomSegmentJudgeConfig)
    assert isinstance(load_config(None, ["judge.kind=my:Judge"]).judge, CustomJudgeConfig)


def test_selectors_have_sections() -> None:
    """Each kind has keys of its own."""
    for override, section in [
        ("{kind: divergence, which: first}", DivergenceJudgeConfig(which="first")),
        ("{kind: entropy}", EntropyJudgeConfig()),
        ("{kind: fixed, length: 2}", FixedJudgeConfig(length=2)),
        ("{kind: expert, samples: 2, limit: 30}", ExpertJudgeConfig(samples=2, limit=30)),
        ("{kind: oracle, pivots: 'my.module:pivots'}", OracleJudgeConfig(pivots="my.module:pivots")),
    ]:
        assert load_config(None, [f"judge={override}"]).judge == section
    with pytest.raises(ConfigError, match=r"judge\.pivots"):
        load_config(None, ["judge={kind: oracle, pivots: pivots}"])


def test_a_chat_model_needs_a_backend() -> None:
    """The defaults are those of the design; keys of the backend are checked, and a replay needs a file."""
    judge = load_config(None, ["judge={kind: llm, backend: {kind: http, url: 'http://h/v1', model: m}}"]).judge
    assert isinstance(judge, LLMJudgeConfig)
    assert (judge.mode, judge.tool_calls, judge.repairs, judge.max_length) == ("agentic", 6, 3, 4)
    assert judge.tools == ("search_trajectory", "get_segment")
    for section, words in [
        ("{kind: llm}", r"judge\.backend is missing"),
        ("{kind: llm, backend: {kind: http, url: 'http://h/v1', modle: m}}", "modle"),
        ("{kind: llm, backend: {kind: local}, tools: [rm]}", r"judge\.tools"),
        ("{kind: llm, backend: {kind: local}, cache: replay}", "cache: replay needs cache_path"),
    ]:
        with pytest.raises(ConfigError, match=words):
            load_config(None, [f"judge={section}"])


@pytest.mark.parametrize("length", [0, 5])
def test_segments_have_one_to_four_turns(length: int) -> None:
    """Longer segments are never measured, so they cannot be configured."""
    with pytest.raises(ConfigError, match=r"judge\.max_length"):
        load_config(None, [f"judge.max_length={length}"])


def test_judges_to_compare_are_kinds_or_files(tmp_path: Path) -> None:
    """Random segments come first, once; a file holds a section, alone or among others, and gives its name."""
    (tmp_path / "short.yaml").write_text("{kind: contrast, max_length: 1}")
    (tmp_path / "run.yml").write_text("{seed: 3, judge: {kind: random_segment, max_length: 4}}")
    found = load_judges(["contrast", f"{tmp_path}/short.yaml", f"{tmp_path}/run.yml", "my:Judge"])
    assert list(found.items()) == [
        ("random_segment", RandomSegmentJudgeConfig(max_length=1)),
        ("contrast", ContrastJudgeConfig()),
        ("short", ContrastJudgeConfig(max_length=1)),
        ("run", RandomSegmentJudgeConfig(max_length=4)),
        ("my:Judge", CustomJudgeConfig(kind="my:Judge")),
    ]


def test_random_segments_may_be_of_another_length(tmp_path: Path) -> None:
    """A file of the name of the control replaces it."""
    (tmp_path / "random_segment.yaml").write_text("{kind: random_segment, max_length: 3}")
    assert load_judges([f"{tmp_path}/random_segment.yaml"]) == {
        "random_segment": RandomSegmentJudgeConfig(max_length=3)
    }
    assert list(load_judges(["random_segment", "contrast"])) == ["random_segment", "contrast"]


def test_the_judge_of_a_run_is_the_default() -> None:
    """It is compared where no judge is named, and only there."""
    own = ContrastJudgeConfig(max_length=2)
    assert load_judges([], own) == {"random_segment": RandomSegmentJudgeConfig(), "contrast": own}
    assert list(load_judges(["none"], own)) == ["random_segment", "none"]
    assert list(load_judges([])) == ["random_segment"]


def test_mistakes_in_judges_are_named(tmp_path: Path) -> None:
    """Two of one name, an unknown key and a file that is not there."""
    (tmp_path / "contrast.yaml").write_text("{kind: contrast, max_lenght: 1}")
    with pytest.raises(ConfigError, match="two called 'contrast'"):
        load_judges(["contrast", "contrast"])
    with pytest.raises(ConfigError, match=r"contrast\.yaml: unknown key 'max_lenght'(.|\n)*did you mean"):
        load_judges([f"{tmp_path}/contrast.yaml"])
    with pytest.raises(ConfigError, match="no config file"):
        load_judges([f"{tmp_path}/nowhere.yaml"])


def test_segments_of_contrast_have_bounds() -> None:
    """One segment of one turn; context makes at most four turns of it."""
    assert ContrastJudgeConfig().model_dump() == {
        "kind": "contrast",
        "max_length": 4,
        "rare": 0.5,
        "facts_only": False,
        "segments": 1,
        "context": 0,
        "min_alternative": 0.2,
    }
    for key, value in (("rare", 1.5), ("segments", 0), ("context", 4)):
        with pytest.raises(ConfigError, match=rf"judge\.{key}"):
            load_config(None, [f"judge.{key}={value}"])
