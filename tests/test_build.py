"""From kinds to objects."""

import importlib.metadata
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from prover import build
from prover.backend_config import HttpBackendConfig, LocalBackendConfig
from prover.config import FormatConfig, PolicyConfig
from prover.env_config import (
    AlfworldEnvConfig,
    CoinEnvConfig,
    CustomEnvConfig,
    EnvConfig,
    LineEnvConfig,
    WebshopEnvConfig,
)
from prover.errors import ConfigError, DataError, ProverError, UnknownNameError
from prover.judge_config import (
    ContrastJudgeConfig,
    CustomJudgeConfig,
    DivergenceJudgeConfig,
    EntropyJudgeConfig,
    ExpertJudgeConfig,
    FixedJudgeConfig,
    LLMJudgeConfig,
    NoJudgeConfig,
    OracleJudgeConfig,
    RandomSegmentJudgeConfig,
)
from prover.protocols import Judge, TextEnv
from prover.replay import ReplayEnv
from prover.testing import CoinEnv, LineEnv

OWN = """
import gymnasium

class Maze(gymnasium.Env):
    def __init__(self, walls, paint="white"):
        self.walls = walls
    def tasks(self, split):
        return {"train": ["a", "b"], "empty": []}[split]

class NoEnv:
    pass

class Pointer:
    name = "pointer"
    def __init__(self, finger=1):
        self.finger = finger
    async def propose(self, group, *, seed):
        return None

class Nameless:
    async def propose(self, group, *, seed):
        return None

class Slow:
    name = "slow"
    def propose(self, group, *, seed):
        return None

class Twice(gymnasium.Env):
    def tasks(self, split):
        return ["a", "a"]

number = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module of one's own."""
    (tmp_path / "own_parts.py").write_text(OWN)
    (tmp_path / "broken_parts.py").write_text("1 / 0")
    (tmp_path / "needs_torch.py").write_text("import transformers.not_there")
    (tmp_path / "needs_other.py").write_text("import not_installed_anywhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("own_parts", "broken_parts", "needs_torch", "needs_other"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "own_parts"


def test_shipped_environments_are_made() -> None:
    """Shipped kinds take the keys of their sections."""
    assert isinstance(build.env_factory(LineEnvConfig())(), LineEnv)
    coin = build.env_factory(CoinEnvConfig(turns=3, p=0.25))()
    assert isinstance(coin, CoinEnv)
    assert (coin.turns, coin.p) == (3, 0.25)


def test_factories_travel_to_other_processes() -> None:
    """A factory pickles and makes another environment each time."""
    factory = pickle.loads(pickle.dumps(build.env_factory(CoinEnvConfig(turns=2))))
    first, second = factory(), factory()
    assert isinstance(first, TextEnv)
    assert first is not second


def test_an_environment_of_ones_own_is_imported(own: str) -> None:
    """``module:Class`` is imported and given the options; one without snapshots is replayed."""
    env = build.env_factory(CustomEnvConfig(kind=f"{own}:Maze", options={"walls": 3}))()
    assert isinstance(env, ReplayEnv)
    assert env.unwrapped.walls == 3


def test_a_gymnasium_id_is_made_bare() -> None:
    """A registered id is made without wrappers that would keep state outside the snapshot."""
    env = build.env_factory(CustomEnvConfig(kind="prover/Line-v1"))()
    assert isinstance(env, LineEnv)
    cartpole = build.env_factory(CustomEnvConfig(kind="CartPole-v1"))()
    assert isinstance(cartpole, ReplayEnv)
    assert isinstance(cartpole.env, gymnasium.Env)
    assert not isinstance(cartpole.env, gymnasium.Wrapper)


def test_entry_points_are_found(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package can register names of its own for environments and judges."""
    points = {
        "prover.envs": [importlib.metadata.EntryPoint("maze", f"{own}:Maze", "prover.envs")],
        "prover.judges": [importlib.metadata.EntryPoint("pointer", f"{own}:Pointer", "prover.judges")],
    }
    monkeypatch.setattr(build, "entry_points", lambda group: points[group])
    env = build.env_factory(CustomEnvConfig(kind="maze", options={"walls": 1}))()
    assert env.tasks("train") == ["a", "b"]
    judge = build.judge(CustomJudgeConfig(kind="pointer", options={"finger": 2}))
    assert isinstance(judge, Judge)
    with pytest.raises(
        UnknownNameError, match=r"Did you mean 'maze'\? There are alfworld, webshop, searchqa, line, coin, maze"
    ):
        build.env_factory(CustomEnvConfig(kind="maz"))


@pytest.mark.parametrize(
    ("kind", "options", "error", "words"),
    [
        ("lin", {}, UnknownNameError, "There is no environment of kind 'lin'. Did you mean 'line'? There are alfworld"),
        ("ns/Nothing-v0", {}, UnknownNameError, "There is no environment of kind 'ns/Nothing-v0'."),
        ("no_module_here:Maze", {}, UnknownNameError, "There is no module 'no_module_here'"),
        ("own_parts:Mase", {}, UnknownNameError, "has no 'Mase', asked for as 'own_parts:Mase'. Did you mean 'Maze'?"),
        (
            "own_parts:number",
            {},
            ConfigError,
            "Expected a class or a function for environment 'own_parts:number', got 3",
        ),
        ("own_parts:Maze", {}, ConfigError, "missing a required argument: 'walls'"),
        ("own_parts:Maze", {"wals": 3}, ConfigError, "It takes (walls, paint='white')"),
        (
            "broken_parts:Maze",
            {},
            ConfigError,
            "Importing 'broken_parts' for 'broken_parts:Maze' failed: ZeroDivisionError",
        ),
        (
            "needs_torch:Maze",
            {},
            ConfigError,
            "The package 'transformers' is not installed: pip install 'prover[train]'.",
        ),
        (
            "needs_other:Maze",
            {},
            ConfigError,
            "'not_installed_anywhere' is not installed: pip install not_installed_anywhere",
        ),
    ],
)
def test_wrong_kinds_and_options_are_refused(
    own: str, kind: str, options: dict[str, Any], error: type[ProverError], words: str
) -> None:
    """The factory is checked before it is used, and the message says what was meant."""
    with pytest.raises(error, match=re.escape(words)):
        build.env_factory(CustomEnvConfig(kind=kind, options=options))


def test_what_is_no_environment_is_refused(own: str) -> None:
    """A class that is no Gymnasium environment is refused when it is made."""
    with pytest.raises(ConfigError, match=r"to be a gymnasium.Env\[str, str\], got NoEnv"):
        build.env_factory(CustomEnvConfig(kind=f"{own}:NoEnv"))()


def test_tasks_come_from_the_environment_or_the_config(own: str) -> None:
    """All tasks of a split, or those that the config chooses from its own split."""
    assert len(build.env_tasks(LineEnvConfig())) == 9
    chosen = LineEnvConfig(tasks=("start-7", "start-2"))
    assert build.env_tasks(chosen) == ("start-7", "start-2")
    assert len(build.env_tasks(chosen, "test")) == 9


@pytest.mark.parametrize(
    ("config", "chance"),
    [
        (LineEnvConfig(), False),
        (CoinEnvConfig(), True),
        (CustomEnvConfig(kind="CartPole-v1"), True),
    ],
    ids=["line", "coin", "replayed"],
)
def test_an_environment_that_can_be_reseeded_has_chance(config: EnvConfig, chance: bool) -> None:
    """One that replays its actions may have any, so it is not taken for certain."""
    assert build.env_chance(config) is chance


def test_tasks_that_are_not_there_are_refused(own: str) -> None:
    """Unknown tasks and splits without tasks are errors, not empty runs."""
    with pytest.raises(UnknownNameError, match=r"There is no task in split 'train' called 'start-77'\. Did you mean"):
        build.env_tasks(LineEnvConfig(tasks=("start-77",)))
    maze = CustomEnvConfig(kind=f"{own}:Maze", options={"walls": 1}, split="empty")
    with pytest.raises(DataError, match=r"Expected at least one task in split 'empty' of environment 'own_parts:Maze'"):
        build.env_tasks(maze)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (ContrastJudgeConfig(), "contrast"),
        (RandomSegmentJudgeConfig(), "random"),
        (NoJudgeConfig(), "none"),
        (DivergenceJudgeConfig(), "divergence"),
        (EntropyJudgeConfig(), "entropy"),
        (FixedJudgeConfig(), "fixed"),
        (OracleJudgeConfig(pivots="prover.testing.line:pivots"), "oracle"),
        (LLMJudgeConfig(backend=HttpBackendConfig(url="http://localhost:1/v1", model="m")), "llm"),
    ],
)
def test_shipped_judges_are_made(config: Any, name: str) -> None:
    """Every shipped judge can be made and bears a name."""
    judge = build.judge(config)
    assert isinstance(judge, Judge)
    assert judge.name == name


def test_the_expert_is_asked_in_an_environment() -> None:
    """It plays in one like that of the groups; where there is none, as with `--check`, the message says what to do."""
    config = ExpertJudgeConfig(samples=2, limit=30)
    judge: Any = build.judge(config, env=AlfworldEnvConfig())
    assert isinstance(judge, Judge)
    assert (judge.name, judge.samples, judge.limit) == ("expert", 2, 30)
    with pytest.raises(ConfigError, match="Expected an environment for the judge of kind 'expert'"):
        build.judge(config)


def test_the_policy_may_be_its_own_judge() -> None:
    """A local backend without a path asks the policy that is given; without one there is nobody to ask."""
    config = LLMJudgeConfig(backend=LocalBackendConfig())
    with pytest.raises(ConfigError, match="Expected a policy of kind hf to ask, got NoneType"):
        build.judge(config)


def test_wrong_judges_are_refused(own: str) -> None:
    """A misspelt judge is named with the one that was meant."""
    with pytest.raises(UnknownNameError, match=r"There is no judge of kind 'contrst'\. Did you mean 'contrast'\?"):
        build.judge(CustomJudgeConfig(kind="contrst"))
    with pytest.raises(ConfigError, match="The judge 'own_parts:Pointer' does not take its options"):
        build.judge(CustomJudgeConfig(kind=f"{own}:Pointer", options={"toe": 1}))
    with pytest.raises(UnknownNameError, match=r"has no 'pivot', asked for as 'prover\.testing\.line:pivot'\."):
        build.judge(OracleJudgeConfig(pivots="prover.testing.line:pivot"))


@pytest.mark.parametrize("kind", ["Nameless", "Slow"])
def test_what_is_no_judge_is_refused(own: str, kind: str) -> None:
    """A judge without a name, or whose propose cannot be awaited, is found before anything is trained."""
    with pytest.raises(ConfigError, match="to have a name and `async def propose"):
        build.judge(CustomJudgeConfig(kind=f"{own}:{kind}"))


def test_an_environment_that_cannot_list_its_tasks_is_named(own: str) -> None:
    """A KeyError of its own becomes a message with the environment and the split; tasks have to be distinct."""
    maze = CustomEnvConfig(kind=f"{own}:Maze", options={"walls": 1})
    with pytest.raises(ConfigError, match=r"'own_parts:Maze' to list the tasks of split 'nowhere', got KeyError"):
        build.env_tasks(maze, "nowhere")
    with pytest.raises(ConfigError, match="to be distinct texts"):
        build.env_tasks(CustomEnvConfig(kind=f"{own}:Twice"))


@pytest.mark.parametrize("kind", ["bare", "think_action", "react"])
def test_formats_read_what_they_write(kind: Any) -> None:
    """Every kind of format is made."""
    text_format = build.text_format(FormatConfig(kind=kind))
    assert text_format.read(text_format.write("go to shelf 1")).action == "go to shelf 1"


def test_a_policy_folder_needs_a_model(tmp_path: Path) -> None:
    """A folder without a model is refused before anything is loaded."""
    with pytest.raises(DataError, match=r"Expected a folder with a model .* at policy\.path"):
        build.policy_path(PolicyConfig(path=str(tmp_path)))
    (tmp_path / "config.json").write_text("{}")
    assert build.policy_path(PolicyConfig(path=str(tmp_path))) == tmp_path


def test_alfworld_is_made_from_its_section() -> None:
    """The household environment takes all keys of its section."""
    env = build.env_factory(AlfworldEnvConfig(data="generated", task_types=None, max_receptacles=20))()
    assert isinstance(env, TextEnv)


def test_webshop_is_made_from_its_section() -> None:
    """The keys of its section are its arguments."""
    made = build.env_factory(WebshopEnvConfig(splits="by_product", reward="value_match", num_products=80))()
    assert isinstance(made, TextEnv)
    assert made.tasks("test")


def test_alfworld_without_data_looks_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``data: null`` stands for the folder of ``ALFWORLD_DATA``, and a missing one is named."""
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "games"))
    with pytest.raises(DataError, match=r"\$ALFWORLD_DATA = .*games"):
        build.env_factory(AlfworldEnvConfig(data=None))()
