"""Manifests: what they say, what their versions and hashes guard, and how suites are named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from prover.bench.suite import fits, is_manifest, load_suite, no_such_suite, tasks_hash
from prover.errors import ConfigError, DataError, UnknownNameError
from prover.records import Task

SUITES = Path(__file__).parents[2] / "benchmarks" / "suites"
SHIPPED = {
    "searchqa": (1, "0a43b436f4932db1"),
    "searchqa_generated": (1, "2a5b9e2b7b4cbe16"),
    "alfworld_generated": (1, "e58141d6129b0ee8"),
    "alfworld_seen": (1, "095c2fe8468a8a15"),
    "alfworld_unseen": (1, "d2053d8b63c33af2"),
    "toy": (1, "5c0d2dd586e7a256"),
    "webshop": (1, "42b56d82b119bd8e"),
    "webshop_generated": (1, "f4619d752a9a91aa"),
}

SIZES = {"toy": 9, "alfworld_generated": 1000, "webshop_generated": 99, "searchqa_generated": 800}


def test_a_change_of_a_shipped_suite_changes_its_version() -> None:
    """Whoever changes what can change a score raises the version and writes both down here."""
    found = {suite.suite: (suite.version, suite.digest) for suite in map(load_suite, sorted(SUITES.glob("*.yaml")))}
    assert found == SHIPPED


def test_shipped_suites_are_named_as_their_files() -> None:
    """A name is found where one looks for it."""
    assert [load_suite(path).suite for path in SUITES.glob("*.yaml")] == [path.stem for path in SUITES.glob("*.yaml")]


@pytest.mark.parametrize("name", ["toy", "alfworld_generated", "webshop_generated", "searchqa_generated"])
def test_suites_without_data_have_their_tasks(name: str) -> None:
    """The tasks are those of the version, as many as the hash was made of."""
    assert len(load_suite(SUITES / f"{name}.yaml").tasks()) == SIZES[name]


def test_the_digest_is_of_what_can_change_a_score(manifest: Callable[..., Path]) -> None:
    """Name, rules and tasks enter it; words about the suite and its version do not."""
    plain = load_suite(manifest())
    assert load_suite(manifest(more="about: A walk.\n")).digest == plain.digest
    assert load_suite(manifest(), ["version=2", "isolation=process"]).digest == plain.digest
    others = [["max_turns=29"], ["split=train"], ["env.kind=coin"], ["decoding=free"], ["seeds=[1]"]]
    digests = {load_suite(manifest(), change).digest for change in others}
    assert len(digests | {plain.digest}) == 6


def test_the_rules_become_a_config(manifest: Callable[..., Path]) -> None:
    """Turn cap, decoding, lengths, format, split and number of episodes are those of the manifest."""
    more = "decoding: free\nmax_reply_tokens: 5\nformat: {kind: react}\ntranscript: {mode: window, window: 3}\n"
    config = load_suite(manifest(more=more)).config(episodes=7)
    assert (config.rollout.max_turns, config.policy.decoding, config.policy.max_reply_tokens) == (30, "free", 5)
    assert (config.format.kind, config.transcript.window) == ("react", 3)
    assert (config.evaluation.split, config.evaluation.episodes, config.env.split) == ("test", 7, "test")


def test_other_tasks_than_those_of_the_version_are_refused(manifest: Callable[..., Path]) -> None:
    """The message gives both hashes and the number of tasks that were found."""
    walk = [Task(id=f"start-{cell}", split="test") for cell in range(9)]
    assert len(load_suite(manifest(more=f"tasks_hash: '{tasks_hash(walk)}'\n")).tasks()) == 9
    with pytest.raises(DataError, match=rf"hash {tasks_hash(walk[:8])}, got 9 tasks with hash {tasks_hash(walk)}"):
        load_suite(manifest(more=f"tasks_hash: '{tasks_hash(walk[:8])}'\n")).tasks()


def test_chosen_tasks_are_played_in_their_order(manifest: Callable[..., Path]) -> None:
    """Ids that the split does not have are named, with the nearest one."""
    suite = load_suite(manifest(more="ids: [start-7, start-2]\n"))
    assert [task.id for task in suite.tasks()] == ["start-7", "start-2"]
    with pytest.raises(UnknownNameError, match="got 'start7'; did you mean 'start-7'"):
        load_suite(manifest(more="ids: [start7]\n")).tasks()


def test_wrong_keys_of_a_manifest_are_named(manifest: Callable[..., Path]) -> None:
    """A misspelt key is an error with a suggestion."""
    with pytest.raises(ConfigError, match=r"unknown key 'max_turn'.* did you mean 'max_turns'"):
        load_suite(manifest(), ["max_turn=3"])


def test_manifests_are_told_from_configs(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """By their key ``suite``."""
    (tmp_path / "run.yaml").write_text("env: {kind: line}\n")
    assert is_manifest(manifest())
    assert not is_manifest(tmp_path / "run.yaml")


@pytest.mark.parametrize(
    ("name", "wanted", "fit"),
    [
        ("shop_real", "shop_real", True),
        ("shop_real", "shop", True),
        ("shop_real", "*_real", True),
        ("shop_real", "all", True),
        ("shopping", "shop", False),
        ("shop", "shop_real", False),
    ],
)
def test_suites_are_asked_for_by_name_family_or_pattern(name: str, wanted: str, fit: bool) -> None:
    """A family is all suites whose names begin with its name and an underscore."""
    assert fits(name, wanted) is fit


def test_suites_that_do_not_exist_are_answered_with_a_near_name() -> None:
    """And with all names that there are."""
    assert "did you mean 'walk'? there are run, walk" in str(no_such_suite("wlk", ["walk", "run"]))
