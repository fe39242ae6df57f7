"""The one place where a ``kind`` becomes an object.

A kind is the name of something shipped, an import string ``module:Class``, the name of an entry point in the group
``prover.envs`` or ``prover.judges``, or (environments only) a Gymnasium id. Everything is resolved by string, so that
this module loads no adapter before one is asked for, and every check here runs before torch is loaded.
"""

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

import gymnasium

from prover.chat import Usage
from prover.config import FormatConfig, PolicyConfig
from prover.env_config import CustomEnvConfig, EnvConfig, EnvSection
from prover.errors import ConfigError, DataError, ProverError, UnknownNameError
from prover.formats import Bare, ReAct, TextFormat, ThinkAction
from prover.judge_config import (
    CustomJudgeConfig,
    ExpertJudgeConfig,
    JudgeConfig,
    LLMJudgeConfig,
    OracleJudgeConfig,
)
from prover.protocols import Backend, Grader, Judge, TextEnv
from prover.replay import ReplayEnv

_ENVS = {
    "alfworld": "prover.envs.alfworld.env:ALFWorldEnv",
    "webshop": "prover.envs.webshop.env:WebShopEnv",
    "searchqa": "prover.envs.searchqa.env:SearchQAEnv",
    "line": "prover.testing:LineEnv",
    "coin": "prover.testing:CoinEnv",
}
_JUDGES = {
    "contrast": "prover.judges.contrast:ContrastJudge",
    "divergence": "prover.judges.divergence:DivergenceJudge",
    "anchor": "prover.judges.anchor:AnchorJudge",
    "entropy": "prover.judges.entropy:EntropyJudge",
    "every_turn": "prover.judges.every_turn:EveryTurnJudge",
    "expert": "prover.judges.expert:ExpertJudge",
    "fixed": "prover.judges.fixed:FixedJudge",
    "llm": "prover.judges.llm.judge:LLMJudge",
    "oracle": "prover.judges.oracle:OracleJudge",
    "none": "prover.judges.none:NoJudge",
    "random_segment": "prover.judges.random_segment:RandomJudge",
}
_POLICIES = {"hf": "prover.policies.hf:HFPolicy"}
_FORMATS: dict[str, Callable[[], TextFormat]] = {"bare": Bare, "think_action": ThinkAction, "react": ReAct}

_IMPORT_STRING = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
_OF_EXTRA = {
    "tantivy": "tantivy",
    "xgrammar": "grammar",
    **dict.fromkeys(("torch", "transformers", "tokenizers", "safetensors"), "train"),
}
_SMALL_POLICY = Path(__file__).parent / "policies" / "small"


@dataclass(frozen=True, slots=True)
class EnvFactory:
    """Makes environments. It pickles, so that a worker process can make its own."""

    kind: str
    """As in ``env.kind``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment."""

    def __call__(self) -> TextEnv:
        """A new environment; one without snapshots gets those of ``ReplayEnv``.

        Raises:
            UnknownNameError: Nothing goes by that kind.
            ConfigError: It cannot be imported or does not take the options.
        """
        env = self.target()(**self.options)
        if isinstance(env, TextEnv):
            return env
        if isinstance(env, gymnasium.Env):
            return ReplayEnv(env)
        raise ConfigError(
            f"Expected environment {self.kind!r} to be a gymnasium.Env[str, str], got {type(env).__name__}. "
            "Derive it from gymnasium.Env."
        )

    def target(self) -> Callable[..., Any]:
        """What makes the environment, checked to take the options; raises as a call does."""
        try:
            made = find("environment of kind", self.kind, _ENVS, "prover.envs")
        except UnknownNameError:
            if not _is_gymnasium_id(self.kind):
                raise
            # The checking wrappers keep state of their own that no snapshot holds.
            return partial(_unwrapped, self.kind)
        return taking(made, self.options, f"environment {self.kind!r}")


def env_factory(config: EnvConfig) -> EnvFactory:
    """A factory of the configured environment, resolved once so that mistakes show here.

    Raises:
        UnknownNameError: Nothing goes by that kind.
        ConfigError: It cannot be imported or does not take the options.
    """
    options = config.options if isinstance(config, CustomEnvConfig) else _own_keys(config, EnvSection)
    factory = EnvFactory(config.kind, options)
    factory.target()
    return factory


def env_tasks(config: EnvConfig, split: str | None = None) -> tuple[str, ...]:
    """Ids of the tasks of a split, at least one.

    Args:
        config: Environment; its ``tasks`` are chosen from its own split only.
        split: Split to list; the one of the config if left out.

    Raises:
        UnknownNameError: The split or a task of ``env.tasks`` does not exist.
        DataError: The split has no tasks, or its data are missing.
    """
    wanted = config.split if split is None else split
    factory = env_factory(config)
    try:
        env = factory()
        try:
            listed = tuple(env.tasks(wanted))
        finally:
            env.close()
    except ProverError:
        raise
    except Exception as error:
        raise ConfigError(
            f"Expected environment {config.kind!r} to list the tasks of split {wanted!r}, got {type(error).__name__}: "
            f"{error}. Check the split and the options, or run `prover check-env` on it."
        ) from error
    if not all(isinstance(task, str) for task in listed) or len(set(listed)) < len(listed):
        raise ConfigError(
            f"Expected tasks({wanted!r}) of environment {config.kind!r} to be distinct texts, got e.g. {listed[:3]!r}."
        )
    if not listed:
        raise DataError(
            f"Expected at least one task in split {wanted!r} of environment {config.kind!r}, got none. "
            "Check the split, the options of the environment, and its data."
        )
    if config.tasks is None or wanted != config.split:
        return listed
    known = set(listed)
    for task in config.tasks:
        if task not in known:
            raise UnknownNameError(f"{_unknown(f'task in split {wanted!r} called', task, listed)}.")
    return config.tasks


def probe_env(config: EnvConfig) -> None:
    """Have an environment ask the services that it needs, where it knows any.

    Raises:
        ServiceError: One does not answer.
    """
    env: Any = env_factory(config)()
    try:
        if hasattr(env, "probe"):
            env.probe()
    finally:
        env.close()


def env_chance(config: EnvConfig) -> bool:
    """Whether an environment may answer the same action differently: it has ``reseed``, as ``TextEnv`` says."""
    env = env_factory(config)()
    try:
        return hasattr(env, "reseed")
    finally:
        env.close()


def env_grader(config: EnvConfig, folder: Path) -> Grader | None:
    """Who grades evaluations besides the environment, keeping what it learns in a folder; checked. Mostly nobody.

    Raises:
        ConfigError: It lacks what it needs, a key of a service for one.
        DataError: Its model is not there, or what it keeps is damaged.
    """
    env: Any = env_factory(config)()
    try:
        grader: Grader | None = env.grader(folder) if hasattr(env, "grader") else None
    finally:
        env.close()
    if grader is not None:
        grader.check()
    return grader


def judge(
    config: JudgeConfig,
    policy: Any = None,
    *,
    env: EnvConfig | None = None,
    folder: Path | None = None,
    spent: Usage | None = None,
) -> Judge:
    """The configured judge.

    Args:
        config: Its section.
        policy: The policy that is being trained, which may be its own judge.
        env: The environment of the groups, for judges that play.
        folder: Run folder, where judgements are stored that have no file of their own.
        spent: What an interrupted run has used up of the budget of a chat model.

    Raises:
        UnknownNameError: Nothing goes by that kind.
        ConfigError: It cannot be imported, does not take the options, or lacks what it needs.
        DataError: The folder of a local model holds none.
    """
    if isinstance(config, LLMJudgeConfig):
        return cast(
            "Judge", _import_string(_JUDGES["llm"]).of(config, partial(_backend, config, policy, spent), folder)
        )
    options = config.options if isinstance(config, CustomJudgeConfig) else config.model_dump(exclude={"kind"})
    if isinstance(config, OracleJudgeConfig):
        options = {"pivots": _import_string(config.pivots)}
    if isinstance(config, ExpertJudgeConfig):
        if env is None:
            raise ConfigError(
                "Expected an environment for the judge of kind 'expert' to play in, got none. Let it judge the groups "
                "of a run: `prover judge RUN --judge expert`."
            )
        options["make"] = env_factory(env)
    made = find("judge of kind", config.kind, _JUDGES, "prover.judges")
    found = taking(made, options, f"judge {config.kind!r}")(**options)
    if not isinstance(found, Judge) or not inspect.iscoroutinefunction(found.propose):
        raise ConfigError(
            f"Expected judge {config.kind!r} to have a name and `async def propose(self, group, *, seed)`, got "
            f"{type(found).__name__} without one of them."
        )
    return found


def _backend(config: LLMJudgeConfig, policy: Any, spent: Usage | None) -> Backend:
    """The chat model of a judge."""
    return cast("Backend", _import_string("prover.backends.build:open_backend")(config.backend, policy, spent=spent))


def text_format(config: FormatConfig) -> TextFormat:
    """The configured format."""
    return _FORMATS[config.kind]()


def policy_path(config: PolicyConfig) -> Path:
    """Folder of the configured policy.

    Raises:
        DataError: It is no folder with a model.
    """
    path = _SMALL_POLICY if config.path == "default" else Path(config.path)
    if not (path / "config.json").is_file():
        raise DataError(
            f"Expected a folder with a model (config.json, weights, tokenizer) at policy.path {config.path!r}, "
            f"got {path}. Make one with `prover sft`, or name the folder of a model that you have."
        )
    return path


def policy(config: PolicyConfig, path: Path | None = None) -> Any:
    """The configured policy, as its class makes it: a ``Policy`` that can be trained. This loads torch.

    Args:
        config: What to load.
        path: Folder to load instead of the configured one, e.g. a checkpoint.

    Raises:
        DataError: Its folder holds no model.
        ConfigError: A package that it needs is not installed.
    """
    return _import_string(_POLICIES[config.kind]).load(
        policy_path(config) if path is None else path,
        context_limit=config.context_limit,
        max_batch=config.max_batch,
        cache_bytes=config.cache_mb << 20,
    )


def _own_keys(section: EnvSection, base: type[EnvSection]) -> dict[str, Any]:
    """Keys that only this kind of section has, as keyword arguments."""
    return section.model_dump(exclude={"kind", *base.model_fields})


def find(part: str, kind: str, shipped: Mapping[str, str], group: str) -> Callable[..., Any]:
    """What ``kind`` stands for: shipped, an import string or an entry point.

    Args:
        part: What it is of, for messages, e.g. ``judge of kind``.
        kind: The name that was asked for.
        shipped: Names with their import strings.
        group: Entry points to look among.

    Raises:
        UnknownNameError: Nothing goes by that kind.
        ConfigError: It cannot be imported.
    """
    if kind in shipped:
        name = shipped[kind]
    elif _IMPORT_STRING.match(kind):
        name = kind
    else:
        plugins = {point.name: point.value for point in entry_points(group=group)}
        if kind not in plugins:
            own = f"a name of your own is written module:Class or registered as an entry point of {group}"
            raise UnknownNameError(f"{_unknown(part, kind, (*shipped, *plugins))} ({own}).")
        name = plugins[kind]
    return cast("Callable[..., Any]", _import_string(name))


def _import_string(name: str) -> Any:
    """The object that ``module:attribute`` names."""
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if f"{module_name}.".startswith(f"{missing}."):
            raise UnknownNameError(
                f"There is no module {missing!r}, asked for as {name!r}. Install it, or run where it can be imported."
            ) from None
        raise ConfigError(f"{name} cannot be imported. {missing_package(missing)}") from error
    except Exception as error:
        raise ConfigError(f"Importing {module_name!r} for {name!r} failed: {type(error).__name__}: {error}") from error
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, vars(found), 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UnknownNameError(f"Module {module_name!r} has no {attribute!r}, asked for as {name!r}.{hint}")
        found = getattr(found, part)
    return found


def missing_package(package: str) -> str:
    """What to do about a package that is not installed, in words."""
    root = package.partition(".")[0]
    command = f"pip install 'prover[{_OF_EXTRA[root]}]'" if root in _OF_EXTRA else f"pip install {root}"
    return f"The package {root!r} is not installed: {command}."


def taking(made: Callable[..., Any], options: Mapping[str, Any], what: str) -> Callable[..., Any]:
    """``made``, if it can be called with ``options``.

    Raises:
        ConfigError: It cannot; ``what`` names it.
    """
    if not callable(made):
        raise ConfigError(f"Expected a class or a function for {what}, got {made!r}.")
    signature = inspect.signature(made)
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ConfigError(f"The {what} does not take its options: {error}. It takes {signature}.") from None
    return made


def _is_gymnasium_id(name: str) -> bool:
    try:
        gymnasium.spec(name)
    except (gymnasium.error.Error, ImportError):
        return False
    return True


def _unwrapped(name: str, **options: Any) -> gymnasium.Env[str, str]:
    return cast("gymnasium.Env[str, str]", gymnasium.make(name, **options).unwrapped)


def _unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    shown = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    return f"There is no {what} {name!r}. {hint}There are {shown}"
