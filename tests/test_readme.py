"""The README tells the truth."""

import re
import shlex
from pathlib import Path

import pytest

from prover.bench.suite import is_manifest, load_suite
from prover.checks import check_text_env
from prover.config import load_config, load_sft_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_custom_environment_is_the_example() -> None:
    """The code in the README is examples/guess.py, letter by letter."""
    shown = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown == [(ROOT / "examples" / "guess.py").read_text(encoding="utf-8")]


def test_the_custom_environment_keeps_the_contract() -> None:
    """What a reader copies from the README passes the conformance kit."""
    space: dict[str, type] = {}
    exec(compile((ROOT / "examples" / "guess.py").read_text(encoding="utf-8"), "guess.py", "exec"), space)
    report = check_text_env(space["Guess"], raises=False)
    # A class without a module cannot be sent to another process; `prover check-env` imports it.
    assert {failure.rule for failure in report.failures} <= {"restore_in_process"}


def commands() -> list[list[str]]:
    """Words of every ``prover train|sft|eval`` command with a config file."""
    found = []
    for line in README.splitlines():
        words = (
            shlex.split(re.split(r"\s{3,}", line.strip())[0], comments=True) if line.startswith("    prover ") else []
        )
        if len(words) > 2 and words[1] in ("train", "sft", "eval") and words[2].endswith(".yaml"):
            found.append(words)
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_configs_and_overrides_of_commands_exist(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every config that a command names loads, with the overrides that stand beside it."""
    monkeypatch.chdir(ROOT)
    overrides = [word for word in words[3:] if "=" in word and not word.startswith("-")]
    path = Path(words[2])
    load = load_sft_config if words[1] == "sft" else load_suite if is_manifest(path) else load_config
    load(path, overrides)


def test_there_are_commands() -> None:
    """The README shows how to train, how to make a policy and how to evaluate one."""
    assert {words[1] for words in commands()} == {"train", "sft", "eval"}


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    """Files that the README links to are there."""
    assert (ROOT / link).exists()
