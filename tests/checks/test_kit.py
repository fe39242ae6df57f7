"""The kit as a whole: sound environments pass, and what is missing or wrong is told."""

import asyncio
import importlib
from collections.abc import Sequence

import pytest

from prover.build import EnvFactory
from prover.checks import check_text_env, load_factory
from prover.errors import ConfigError, EnvError, UnknownNameError
from prover.testing import CoinEnv, LineEnv


def test_a_sound_mutable_environment_passes_every_rule() -> None:
    """Nothing is held against an environment that copies what it must."""
    report = check_text_env(EnvFactory("planted:Bag"), ending=["leave"])
    assert {result.status for result in report.results if result.rule != "reseed"} == {"ok"}


def test_an_environment_without_snapshots_is_refused() -> None:
    """The first rule names the calls that are missing, and no other is tried."""
    report = check_text_env(importlib.import_module("planted").NoSnapshot, raises=False)
    assert [(result.rule, result.status) for result in report.results] == [("interface", "failed")]
    assert "without snapshot, restore, state_key, tasks" in report.results[0].detail
    assert "ReplayEnv" in report.results[0].detail


def test_failures_raise_together() -> None:
    """The error holds every broken rule, what was expected and what to do."""
    with pytest.raises(
        EnvError, match=r"(?s)expected TimeLimited to keep.*never_cuts: expected.*restore_counters: exp"
    ):
        check_text_env(EnvFactory("planted:TimeLimited"))


@pytest.mark.parametrize("factory", [LineEnv, CoinEnv])
def test_the_toy_environments_pass(factory: type[LineEnv] | type[CoinEnv]) -> None:
    """What ships as an example keeps the contract."""
    assert check_text_env(factory).passed


def test_a_longer_coin_passes() -> None:
    """CoinEnv with several turns keeps the contract; its random walks are several actions long."""
    assert check_text_env(EnvFactory("coin", {"turns": 4}), seed=3).passed


def test_alfworld_passes() -> None:
    """The household environment keeps the contract."""
    assert check_text_env(load_factory("alfworld")).passed


def test_a_factory_that_does_not_pickle_skips_one_rule() -> None:
    """A lambda is checked in this process alone."""
    report = check_text_env(lambda: LineEnv())
    assert [result.status for result in report.results if result.rule == "restore_in_process"] == ["skipped"]


def test_it_runs_inside_an_event_loop() -> None:
    """Someone who is asynchronous already can check an environment."""

    async def check() -> bool:
        return check_text_env(LineEnv).passed

    assert asyncio.run(check())


@pytest.mark.parametrize("actions", [(), ("right", "left")])
def test_actions_are_needed_where_none_are_admissible(actions: Sequence[str]) -> None:
    """An environment that names no actions is walked with those given; without any, the report says so."""
    report = check_text_env(Silent, actions=actions, raises=False)
    assert ("walk" in {result.rule for result in report.failures}) == (not actions)


def test_tasks_come_from_a_split_or_by_hand() -> None:
    """Unknown splits are refused; tasks given by hand are taken."""
    with pytest.raises(UnknownNameError, match="nowhere"):
        check_text_env(LineEnv, split="nowhere")
    assert check_text_env(LineEnv, tasks=["start-4"]).passed
    with pytest.raises(ConfigError, match="expected tasks"):
        check_text_env(Taskless)


@pytest.mark.parametrize("name", ["line", "prover.testing:LineEnv", "prover/Line-v1"])
def test_factories_load_by_name(name: str) -> None:
    """Shipped names, import strings and Gymnasium ids all load the environment itself, without wrappers."""
    assert type(load_factory(name)()) is LineEnv


def test_unknown_factories_are_refused() -> None:
    """A wrong name is refused before anything is made."""
    with pytest.raises(UnknownNameError, match="lime"):
        load_factory("lime")


class Silent(LineEnv):
    """LineEnv that does not tell which actions there are."""

    def _info(self) -> dict[str, object]:
        return {"success": super()._info()["success"]}


class Taskless(LineEnv):
    """LineEnv that knows no split."""

    SPLITS = ()
