"""Rules on how an environment plays: its tasks, answers, instances and ends."""

import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.wrappers import TimeLimit

from prover.checks.case import COMPLETE, SHOWN, Broken, Case, Skipped, expect_refusal, take_snapshots
from prover.checks.walk import (
    TRIES,
    Answer,
    Walk,
    act,
    contract_info,
    difference,
    follow,
    instance,
    random_walk,
    start,
)
from prover.protocols import TextEnv

_END_LIMIT = 50
_EXPERT_LIMIT = 200
_NO_SUCH_NAME = "no such name"
_SEEDING = "draw only from self.np_random after super().reset(seed=seed), and from no global generator"
ODD_ACTIONS = {
    "the empty action": "",
    "a blank": " ",
    "blanks and line ends": " \t\r\n",
    "other scripts": "größe 日本語 🗝",
    "20,000 characters": "open " * 4000,
    "a lone surrogate": "\ud800",
    "a NUL": "\0",
}


def gymnasium_api(case: Case) -> None:
    """The unwrapped environment passes Gymnasium's own check."""
    with instance(case.factory) as env, warnings.catch_warnings():
        # Its warnings are hints about spaces and render modes, which text environments do not have.
        warnings.simplefilter("ignore")
        assert isinstance(env, gymnasium.Env)  # missing_parts has seen to it
        try:
            check_env(env.unwrapped, skip_render_check=True)
        except Exception as error:
            raise Broken(
                f"expected the environment to pass gymnasium.utils.env_checker.check_env, got {type(error).__name__}: "
                f"{error}; see https://gymnasium.farama.org/introduction/create_custom_env"
            ) from error


def tasks(case: Case) -> None:
    """Task ids are stable, distinct and known to reset; unknown names are refused."""
    with instance(case.factory) as env, instance(case.factory) as other:
        if case.split is not None:
            listed = list(env.tasks(case.split))
            for again, where in ((env, "a second time"), (other, "in another instance")):
                if list(again.tasks(case.split)) != listed:
                    raise Broken(
                        f"expected tasks({case.split!r}) to list the same ids in the same order {where}, got others; "
                        "sort them, and draw nothing at random"
                    )
            if len(set(listed)) < len(listed) or not all(isinstance(task, str) for task in listed):
                raise Broken(
                    f"expected tasks({case.split!r}) to list distinct str, got {listed[:5]}...; name each once"
                )
            _expect_unknown(lambda: env.tasks(_NO_SUCH_NAME), f"tasks({_NO_SUCH_NAME!r})")
        options = {"task": _NO_SUCH_NAME}
        _expect_unknown(lambda: env.reset(seed=case.seed, options=options), f"reset(options={options})")


def reset_repeats(case: Case) -> None:
    """The same seed and task give the same episode again, in the same instance and in a fresh one."""
    with instance(case.factory) as env, instance(case.factory) as other:
        for task in case.tasks[:3]:
            call = f"reset(seed={case.seed}, options={{'task': {task!r}}})"
            first = env.reset(seed=case.seed, options={"task": task})
            again = env.reset(seed=case.seed, options={"task": task})
            if first[0] != again[0] or not data_equivalence(first[1], again[1]):
                raise Broken(f"expected {call} to return the same twice, got {first} and {again}; {_SEEDING}")
            walked = random_walk(env, task, case.seed, case.actions)
            for where, second in (("again", env), ("in a fresh instance", other)):
                found = difference(walked.answers, random_walk(second, task, case.seed, case.actions).answers)
                if found:
                    raise Broken(f"{found}, when {call} and the same actions were called {where}; {_SEEDING}")
        openings = [env.reset(seed=case.seed)[0] for _ in range(2)]
        if openings[0] != openings[1]:
            raise Broken(f"expected reset(seed={case.seed}) to draw the same task twice, got {openings}; {_SEEDING}")


def answers(case: Case) -> None:
    """Observations lie in their space; info holds what the contract asks for, in the right types."""
    with instance(case.factory) as env:
        observation, info = env.reset(seed=case.walk.seed, options={"task": case.walk.task})
        _check_answer(env, "reset()", observation, info)
        for action in case.walk.actions:
            observation, reward, terminated, truncated, info = env.step(action)
            call = f"step({action!r})"
            _check_answer(env, call, observation, info)
            if not math.isfinite(reward):
                raise Broken(f"expected {call} to give a finite reward, got {reward!r}; return a float")
            if not isinstance(terminated, bool) or not isinstance(truncated, bool):
                raise Broken(f"expected {call} to give bool flags, got {terminated!r} and {truncated!r}; use bool(...)")


def never_cuts(case: Case) -> None:
    """The environment does not truncate episodes: the rollout holds the turn cap."""
    advice = "leave the turn cap to the rollout, and register the environment without max_episode_steps"
    with instance(case.factory) as env:
        layer: Any = env
        while isinstance(layer, gymnasium.Wrapper):
            if isinstance(layer, TimeLimit):
                raise Broken(f"expected no wrapper that ends episodes, got {layer!r}; {advice}")
            layer = layer.env
    for number, answer in enumerate(case.walk.answers):
        if answer.truncated:
            raise Broken(f"expected truncated=False from every step, got True after {number} actions; {advice}")


def instances(case: Case) -> None:
    """Instances do not share state."""
    with instance(case.factory) as env, instance(case.factory) as other:
        got = [start(env, case.walk.task, case.walk.seed)]
        answer = start(other, case.other_task, case.seed + 1)
        for action in case.walk.actions:
            answer = start(other, case.other_task, case.seed + 1) if answer.over else act(other, action)
            got += follow(env, [action])
        found = difference(case.walk.answers, got)
        if found:
            raise Broken(
                f"{found}, when another instance played in between; keep state in self, not in the class, in a module "
                "or in a mutable default argument"
            )


def after_end(case: Case) -> None:
    """A finished episode refuses steps, and its snapshot restores it as finished."""
    with instance(case.factory) as env, instance(case.factory) as new:
        ended = _ended(env, case)
        expect_refusal(env, ended.actions[-1], "after the end of the episode")
        snapshot = env.snapshot()
        start(env, case.other_task, case.seed + 1)
        _expect_finished(env, snapshot, ended)
        _expect_finished(new, snapshot, ended)


def odd_actions(case: Case) -> None:
    """Any text is answered, without an exception and within the observation space."""
    with instance(case.factory) as env:
        _, snapshot = take_snapshots(env, case.walk)[-1]
        for name, action in ODD_ACTIONS.items():
            env.restore(snapshot)
            try:
                observation, _, _, _, info = env.step(action)
                env.state_key()
                pickle.dumps(env.snapshot())
            except Exception as error:
                raise Broken(
                    f"expected step() to answer {name} ({action[:20]!r}), got {type(error).__name__}: {error}; answer "
                    "any text, and say with info['invalid_action'] that it meant nothing"
                ) from error
            _check_answer(env, f"step() with {name}", observation, info)


def _expect_unknown(call: Callable[[], object], name: str) -> None:
    advice = "raise prover.errors.UnknownNameError (or another LookupError) and say which names there are"
    try:
        got = call()
    except LookupError:  # UnknownNameError is one, and so is the KeyError of a plain dictionary.
        return
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        raise Broken(f"expected {name} to raise UnknownNameError, got {found}; {advice}") from error
    raise Broken(f"expected {name} to raise UnknownNameError, got {got!r}; {advice}")


def _check_answer(env: TextEnv, call: str, observation: Any, info: Any) -> None:
    if not isinstance(observation, str) or observation not in env.observation_space:
        raise Broken(
            f"expected {call} to give a str in {env.observation_space}, got {observation!r}; "
            "use prover.UnicodeText as the space, with a large enough bound"
        )
    if not isinstance(info, dict) or not isinstance(info.get("success"), bool):
        raise Broken(f"expected {call} to give info['success'] as bool, got the info {info!r}; put it into every info")
    actions = info.get("admissible_actions", [])
    if not isinstance(actions, list) or not all(isinstance(a, str) for a in actions) or actions != sorted(actions):
        raise Broken(
            f"expected {call} to give info['admissible_actions'] as a sorted list of str, got {actions!r}; sort it, or "
            "leave it out where the actions are not known"
        )
    if not isinstance(info.get("invalid_action", False), bool):
        got = info["invalid_action"]
        raise Broken(f"expected {call} to give info['invalid_action'] as bool, got {got!r}; use bool(...)")


def _ended(env: TextEnv, case: Case) -> Walk:
    """An episode that has ended, in ``env``."""
    if case.ending is not None:
        task = case.tasks[0]
        answers = [start(env, task, case.seed), *follow(env, case.ending)]
        if not answers[-1].over:
            raise Broken(f"expected the actions `ending` to end the task {task!r}, got no end; correct them")
        return Walk(task=task, seed=case.seed, actions=tuple(case.ending), answers=tuple(answers))
    for number in range(TRIES):
        task = case.tasks[number % len(case.tasks)]
        walk = random_walk(env, task, case.seed + number, case.actions, limit=_END_LIMIT)
        if walk.answers[-1].over:
            return walk
    if hasattr(env, "expert"):
        task = case.tasks[0]
        answers, actions = [start(env, task, case.seed)], list[str]()
        player = env.expert(case.seed)
        while not answers[-1].over and len(actions) < _EXPERT_LIMIT:
            actions.append(player.act(answers[-1].observation, answers[-1].info))
            answers.append(act(env, actions[-1]))
        if answers[-1].over:
            return Walk(task=task, seed=case.seed, actions=tuple(actions), answers=tuple(answers))
    raise Skipped(
        f"none of {TRIES} random walks of {_END_LIMIT} actions ended; give check_text_env(..., ending=[...]), actions "
        "that end the first task"
    )


def _expect_finished(env: TextEnv, snapshot: Any, ended: Walk) -> None:
    """Restore a finished episode."""
    observation, info = env.restore(snapshot)
    last: Answer = ended.answers[-1]
    restored = replace(last, observation=observation, info=contract_info(info), state_key=env.state_key())
    found = difference([last], [restored], SHOWN, first=len(ended.actions))
    if found:
        raise Broken(f"{found}, when the snapshot of a finished episode was restored; {COMPLETE}")
    expect_refusal(env, ended.actions[-1], "after restoring a finished episode")
