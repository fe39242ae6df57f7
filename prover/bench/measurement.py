"""One measurement: a plan, a contender, a temperature and a seed become a result file.

The file holds every episode and what is needed to measure the same again; until it is whole, a ``Partial`` lies beside
it. A failed episode is left out and counted; if too many fail, there is no result.
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prover import build, stage
from prover.bench import leaks
from prover.bench.contender import ApiConfig, Contender
from prover.bench.partial import Partial, refuse_other
from prover.bench.players import player
from prover.bench.suite import SuiteConfig, tasks_hash
from prover.config import RunConfig, effective_yaml
from prover.errors import ConfigError, FailureShareError
from prover.evaluate import Episode, Evaluation, measure, schedule
from prover.folder import versions
from prover.protocols import Grader
from prover.records import Failure, Provenance, Task, Trajectory

Watch = Callable[[int, int, int, int], None]
"""Told of episodes that finished, episodes in all, successes and failures, whenever one ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured, whatever plays: tasks and rules, looked up and checked once."""

    name: str
    suite: Mapping[str, Any]
    """Name, version and digest of the suite; empty without one."""
    rules: RunConfig
    tasks: tuple[Task, ...]
    overlap: leaks.Overlap
    provenance: Provenance


def plan_of_suite(suite: SuiteConfig, episodes: int | None = None) -> Plan:
    """A suite, made ready to be measured; see ``SuiteConfig.tasks`` and ``env_factory`` for what it raises.

    Args:
        suite: the manifest.
        episodes: episodes of each measurement, if not as many as the manifest says.
    """
    tasks = suite.tasks()
    return _plan(
        name=suite.suite,
        suite={"name": suite.suite, "version": suite.version, "digest": suite.digest},
        rules=suite.config(episodes=episodes or suite.episodes or len(tasks)),
        tasks=tasks,
        trained_on=suite.trained_on,
    )


def plan_of_config(config: RunConfig) -> Plan:
    """The evaluation of a run's config, made ready to be measured."""
    split = config.evaluation.split
    # Whoever measures on the split that is trained on asks for just that.
    trained_on = () if split == config.env.split else (config.env.split,)
    return _plan(name=split, suite={}, rules=config, tasks=stage.tasks(config.env, split), trained_on=trained_on)


def _plan(
    *, name: str, suite: Mapping[str, Any], rules: RunConfig, tasks: tuple[Task, ...], trained_on: tuple[str, ...]
) -> Plan:
    split = rules.evaluation.split
    env = build.env_factory(rules.env)()
    try:
        overlap = leaks.overlap(env, [task.id for task in tasks], split, trained_on)
    finally:
        env.close()
    provenance = stage.provenance(rules.env, split)
    return Plan(name=name, suite=suite, rules=rules, tasks=tasks, overlap=overlap, provenance=provenance)


def run(
    plan: Plan,
    contender: Contender,
    *,
    temperature: float,
    seed: int,
    path: Path,
    resume: bool = False,
    allow_leak: bool = False,
    keep_turns: bool = False,
    watch: Watch = lambda done, total, successes, failures: None,
) -> Evaluation:
    """Measure, and write the result to ``path``.

    Args:
        plan: tasks and rules.
        contender: what plays.
        temperature: sampling temperature.
        seed: entropy of the episodes.
        path: the result file to be.
        resume: keep a result that is there, and go on with one that was interrupted.
        allow_leak: measure on a leaked split; the result is marked.
        keep_turns: write what was said in every turn beside the result, into ``.turns.jsonl``.
        watch: told of every episode.

    Raises:
        DataError: the split is leaked, and that is not allowed.
        ConfigError: there is a result at ``path``, or a measurement of something else is to be resumed.
        FailureShareError: too many episodes failed.
        ServiceError: a service that the environment needs does not answer.
    """
    leak = leaks.refuse(plan.overlap, allowed=allow_leak)
    config = contender.under(plan.rules)
    grader = build.env_grader(config.env, path.parent)
    head = _head(plan, contender, config) | {"temperature": temperature, "seed": seed, "leak": leak}
    head |= {} if grader is None else {"grader": dict(grader.about)}
    if path.exists():
        stored = Evaluation.load(path)
        if not resume:
            raise ConfigError(
                f"expected a new place for results, got {path}, which holds one; choose another with --out, or add "
                "--resume to keep it"
            )
        refuse_other(dict(stored.setting) | {"temperature": stored.temperature}, head, path)
        return stored
    build.probe_env(config.env)
    playing = config.model_copy(update={"env": config.env.kept_in(path.parent)})
    turns = path.with_suffix(".turns.jsonl") if keep_turns else None
    with Partial(path.with_suffix(".partial.jsonl"), head, resume=resume) as partial:
        if turns is not None:
            _leave(turns, partial.done)
        found, failures, cost, seconds = asyncio.run(
            _play(plan, contender, playing, grader, head, partial, turns, watch)
        )
    _check_failures(failures, len(found) + len(failures), config.rollout.max_failure_share, partial.path)
    result = Evaluation(
        split=plan.rules.evaluation.split,
        temperature=temperature,
        episodes=tuple(found.values()),
        failures=len(failures),
        provenance=plan.provenance,
        setting=head | cost | _circumstances(contender, config, seconds),
    )
    result.save(path)
    partial.path.unlink(missing_ok=True)
    return result


async def _play(
    plan: Plan,
    contender: Contender,
    config: RunConfig,
    grader: Grader | None,
    head: Mapping[str, Any],
    partial: Partial,
    turns: Path | None,
    watch: Watch,
) -> tuple[dict[int, Episode], list[Failure], dict[str, Any], float]:
    """Play what is left of the plan; returns episodes, failures, costs, and seconds with those of earlier attempts."""
    start, before = time.perf_counter(), partial.seconds
    episodes = schedule(plan.tasks, config.evaluation.episodes, head["seed"])
    finished, successes, failed = len(partial.done), sum(one.success for one in partial.done.values()), 0

    def ended(index: int, run: Trajectory | Failure) -> None:
        nonlocal finished, successes, failed
        if isinstance(run, Failure):
            failed += 1
        else:
            finished, successes = finished + 1, successes + run.success
            if turns is not None:
                _append(turns, {"index": index} | _readable(run))
        known = run if isinstance(run, Failure) else Episode.of(run)
        partial.add(index, known, before + time.perf_counter() - start, cost())
        watch(finished, len(episodes), successes, failed)

    async with AsyncExitStack() as stack:
        if grader is not None:
            stack.push_async_callback(grader.aclose)
        plays, cost = await stack.enter_async_context(
            player(contender, config, head["temperature"], plan.tasks[0], partial.cost)
        )
        found, failures = await measure(plays, episodes, grader=grader, done=partial.done, watch=ended)
        told = {} if grader is None else {"grading": dict(grader.stats())}
        if served := await plays.hosts.stats():
            told["env_stats"] = served
        return found, failures, cost() | told, before + time.perf_counter() - start


def _readable(run: Trajectory) -> dict[str, Any]:
    """An episode for people, and for whoever wants to show it."""
    return {
        "task": run.task.id,
        "seed": run.seed,
        "success": run.success,
        "reward": run.reward,
        "opening": run.opening,
        "turns": [
            {"text": turn.text, "action": turn.action, "result": turn.result}
            | ({"invalid": turn.invalid} if turn.invalid else {})
            for turn in run.turns
        ],
    }


def _leave(path: Path, done: Collection[int]) -> None:
    """Of turns that an earlier attempt wrote, leave those of episodes that are not played again."""
    if not path.exists():
        return
    kept: dict[int, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            index = json.loads(line)["index"]
        except ValueError:  # The line that was being written when the measurement was stopped.
            continue
        if index in done:
            kept[index] = line
    path.write_text("".join(line + "\n" for line in kept.values()), encoding="utf-8")


def _append(path: Path, record: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def _head(plan: Plan, contender: Contender, config: RunConfig) -> dict[str, Any]:
    """What has to be equal for two measurements to be the same, but for temperature and seed."""
    transcript = config.transcript
    return {
        "suite": dict(plan.suite),
        "env": config.env.kind,
        "tasks": {"n": len(plan.tasks), "hash": tasks_hash(plan.tasks)},
        "rules": {
            "max_turns": config.rollout.max_turns,
            "decoding": config.policy.decoding,
            "format": config.format.kind,
            "transcript": transcript.mode if transcript.mode == "append" else f"window {transcript.window}",
            "system": transcript.system,
            "max_reply_tokens": config.policy.max_reply_tokens,
            "context_limit": config.policy.context_limit,
        },
        "policy": contender.describe(),
        "episodes": config.evaluation.episodes,
    }


def _circumstances(contender: Contender, config: RunConfig, seconds: float) -> dict[str, Any]:
    """What belongs to a result besides; no key or password stands in a config."""
    own = contender.config
    model = {"model": effective_yaml(own)} if isinstance(own, ApiConfig) else {}
    return {"seconds": round(seconds, 1), "versions": versions(), "config": effective_yaml(config)} | model


def _check_failures(failures: list[Failure], total: int, limit: float, kept: Path) -> None:
    if len(failures) > limit * total:
        first = failures[0]
        raise FailureShareError(
            f"expected at most {limit:.0%} of {total} episodes to fail, got {len(failures)}; the first failed with "
            f"{first.cause} in {first.where} at turn {first.turn} of task {first.task!r}: {first.summary}; what "
            f"finished is kept in {kept}, and --resume plays the rest"
        )
