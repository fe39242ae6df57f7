"""check_text_env: try every rule on an environment."""

import traceback
from collections.abc import Callable, Sequence

import gymnasium

from prover.build import EnvFactory as NamedFactory
from prover.checks import conduct, snapshots
from prover.checks.case import Broken, Case, Skipped
from prover.checks.report import Report, Result
from prover.checks.walk import instance, longest_walk
from prover.errors import ConfigError, DataError, UnknownNameError
from prover.host import EnvFactory
from prover.protocols import TextEnv

RULES: tuple[Callable[[Case], None], ...] = (
    conduct.gymnasium_api,
    conduct.tasks,
    conduct.reset_repeats,
    conduct.answers,
    conduct.never_cuts,
    conduct.instances,
    conduct.after_end,
    conduct.odd_actions,
    snapshots.snapshot_is_pure,
    snapshots.snapshot_pickles,
    snapshots.restore_exact,
    snapshots.restore_twice,
    snapshots.restore_elsewhere,
    snapshots.restore_in_process,
    snapshots.restore_counters,
    snapshots.restore_rng,
    snapshots.reseed,
    snapshots.siblings,
)
_TASKS = 5
_METHODS = ("reset", "step", "snapshot", "restore", "state_key", "tasks", "close")
_SPLITS = ("train", "valid_train", "valid", "validation", "valid_seen", "valid_unseen", "dev", "test")


def check_text_env(
    factory: EnvFactory,
    *,
    tasks: Sequence[str] | None = None,
    split: str | None = None,
    actions: Sequence[str] = (),
    ending: Sequence[str] | None = None,
    seed: int = 0,
    raises: bool = True,
) -> Report:
    """Try every rule of the contract of ``TextEnv`` on an environment.

    The environment is walked through at random and compared with itself: in other instances, in a spawned process,
    after restoring snapshots, beside siblings. A few hundred to a few thousand steps are taken.

    Args:
        factory: makes the environment; a class or a module-level function, so that another process can make it too.
        tasks: ids to try; None takes the first ones of the split.
        split: split to take tasks from; None takes the first usual name that the environment knows.
        actions: actions to walk with, where ``info`` holds no ``admissible_actions``.
        ending: actions that end the first task, where neither random walks nor the environment's expert find an end.
        seed: fixes the walks.
        raises: whether a broken rule raises; else the report alone tells.

    Returns:
        A result for every rule.

    Raises:
        EnvError: rules are broken and ``raises`` is on; the message holds all of them.
        ConfigError: no task was given and none is found.

    >>> from prover.testing import CoinEnv
    >>> report = check_text_env(CoinEnv)
    >>> report.passed, len(report.results)
    (True, 19)
    """
    with instance(factory) as env:
        name = type(env).__name__
        missing = _missing_parts(env)
        if not missing and tasks is None:
            split, tasks = _find_tasks(env, split)
        elif tasks is not None:
            split = None
    results = [Result(rule="interface", status="failed", detail=missing)] if missing else []
    if not missing:
        assert tasks is not None  # given or found above
        results = [Result(rule="interface", status="ok"), *_try_rules(factory, tasks, split, actions, ending, seed)]
    report = Report(env=name, results=tuple(results))
    if raises:
        report.raise_if_failed()
    return report


def load_factory(name: str) -> EnvFactory:
    """A factory by name: a shipped one (``line``), an import string (``module:Class``) or a Gymnasium id.

    Raises:
        UnknownNameError: nothing goes by that name.
        ConfigError: it cannot be imported.

    >>> type(load_factory("prover/Line-v1")()).__name__
    'LineEnv'
    """
    factory = NamedFactory(name)
    factory.target()
    return factory


def _missing_parts(env: object) -> str:
    """What the environment lacks, in words; empty if nothing."""
    if not isinstance(env, gymnasium.Env):
        return f"expected a gymnasium.Env, got {type(env).__mro__[:-1]}; inherit from gymnasium.Env[str, str]"
    if isinstance(env, TextEnv):
        return ""
    lacking = [method for method in _METHODS if not hasattr(env, method)]
    return (
        f"expected a TextEnv, got {env} without {', '.join(lacking) or 'its spaces'}; add these, or wrap an "
        "environment that cannot save its state in prover.replay.ReplayEnv"
    )


def _find_tasks(env: TextEnv, split: str | None) -> tuple[str, list[str]]:
    for candidate in _SPLITS if split is None else (split,):
        try:
            listed = list(env.tasks(candidate)[:_TASKS])
        except (UnknownNameError, DataError):
            if split is not None:
                raise
            continue
        if listed:
            return candidate, listed
    raise ConfigError(
        f"expected tasks in one of the splits {(split,) if split else _SPLITS}, got none; give check_text_env(..., "
        "split=...) or tasks=[...]"
    )


def _try_rules(
    factory: EnvFactory,
    tasks: Sequence[str],
    split: str | None,
    actions: Sequence[str],
    ending: Sequence[str] | None,
    seed: int,
) -> list[Result]:
    try:
        walk = longest_walk(factory, tasks, seed, actions)
    except Exception:
        detail = f"expected a random walk to go through, got\n{traceback.format_exc()}"
        return [Result(rule="walk", status="failed", detail=detail)]
    case = Case(factory=factory, tasks=tasks, split=split, seed=seed, actions=actions, ending=ending, walk=walk)
    return [_try(rule, case) for rule in RULES]


def _try(rule: Callable[[Case], None], case: Case) -> Result:
    name = rule.__name__
    try:
        rule(case)
    except Skipped as reason:
        return Result(rule=name, status="skipped", detail=str(reason))
    except Broken as fault:
        return Result(rule=name, status="failed", detail=str(fault))
    except Exception:
        summary = (rule.__doc__ or name).splitlines()[0].rstrip(".")
        detail = (
            f"expected that: {summary}; got an exception; mend the call at the end of this\n{traceback.format_exc()}"
        )
        return Result(rule=name, status="failed", detail=detail)
    return Result(rule=name, status="ok")
