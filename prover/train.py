"""The loop: tasks -> groups -> judge -> verifier -> advantages -> update.

``method: grpo`` leaves out judge and verifier. ``method: prover`` adds verified credit; without a proposal, with
weight 0 or with a judge that fails, its update equals that of ``grpo`` bit for bit: both sample the same episodes from
the same seeds, and continuations touch neither.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from prover import build, checkpoint, group_store, stage
from prover.answers import AnswerWatch
from prover.attribution import Attribution, Verdict, attribution_metrics
from prover.batch import continuation_metrics, training_rows
from prover.branch import Branch
from prover.chat import Usage
from prover.config import RunConfig, effective_yaml
from prover.critic import Critic
from prover.errors import CheckpointError, ConfigError, FailureShareError
from prover.evaluate import Evaluation, evaluate
from prover.folder import RunFolder
from prover.journal import Clock, readable, rollout_metrics
from prover.judge_config import NoJudgeConfig
from prover.judges.random_segment import RandomJudge
from prover.null_probe import NullProbe
from prover.protocols import Grader, Judge, TrainablePolicy, Verifier
from prover.records import Task
from prover.rollout import Rollout, check_failure_share
from prover.seeds import derive
from prover.tasks import TaskStream
from prover.turn_budget import TurnBudget
from prover.update import PolicyUpdate
from prover.verification_budget import VerificationBudget
from prover.verify import AnchorVerifier, MonteCarloVerifier

_log = structlog.get_logger(__name__)

_ROLLOUT, _CREDIT, _SHUFFLE, _TASKS = range(4)
"""First index of the seed path of each consumer of randomness."""

_SPENT_FILE = "judge_spent.json"
_SPENT = ("prompt_tokens", "completion_tokens", "cost")

Watcher = Callable[[str, Mapping[str, Any]], None]
"""Told of every finished event (``evaluation``, ``update``) with its metrics; a display, usually."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """What a run leaves to tell."""

    folder: RunFolder
    method: str
    updates: int
    before: tuple[Evaluation, ...]
    """One per temperature; none where ``evaluation.start`` is off."""
    after: tuple[Evaluation, ...]


def train(config: RunConfig, *, resume: bool = False, watch: Watcher = lambda event, metrics: None) -> TrainResult:
    """Train from a config, into the folder ``config.run``.

    Raises:
        ConfigError: the run folder cannot be used.
        CheckpointError: the run to resume had other training tasks.
        DataError: the data of the environment or the policy is missing.
        FailureShareError: too many episodes failed, or too few groups got an answer from the judge.
        NumericsError: a loss, a gradient or logits are not finite.
        ServiceError: a service that the environment needs does not answer.
    """
    if config.run is None:
        raise ConfigError("expected a run folder in `run`, got none; set run=PATH")
    train_tasks, test_tasks = (
        stage.tasks(config.env, config.env.split),
        stage.tasks(config.env, config.evaluation.split),
    )
    folder = RunFolder(config.run)
    # As it was given: what is filled in from the folder must not tell a run from its continuation elsewhere.
    written = effective_yaml(config)
    folder.check(written, resume=resume)
    build.probe_env(config.env)
    config = config.model_copy(update={"env": config.env.kept_in(folder.path)})
    saved = checkpoint.complete(folder.checkpoints)[-1:] if resume else []
    if saved and saved[0].update > config.optim.updates:
        raise ConfigError(
            f"expected optim.updates of at least {saved[0].update}, what the run in {config.run} has done, got "
            f"{config.optim.updates}; raise it, or start a new run"
        )
    policy: TrainablePolicy = build.policy(config.policy, saved[0].path if saved else None)
    horizon = config.rollout.max_turns * config.policy.max_reply_tokens
    # The KL term is measured against the policy that the run began with, not the one that it goes on with.
    first = build.policy(config.policy).model if saved and config.optim.kl > 0 else policy.model
    critic = Critic.of(config.advantage, config.optim.microbatch)
    update = PolicyUpdate(policy.model, config.optim, horizon=horizon, reference=first)
    done = 0
    if saved:
        done = saved[0].update
        saved[0].restore_optimizer(update.optimizer, update.names)
        if critic is not None:
            critic.recall(saved[0].arrays())
        if (stored := saved[0].state()["tasks"]) != _fingerprint(train_tasks):
            raise CheckpointError(
                f"expected the training tasks of the run ({stored}), got {_fingerprint(train_tasks)}; "
                "resume with the same data"
            )

    async def run() -> TrainResult:
        """The run, in the event loop that its environments live in."""
        async with AsyncExitStack() as stack:
            hosts = await stack.enter_async_context(stage.host_pool(config))
            judge = build.judge(
                config.judge if config.judged else NoJudgeConfig(),
                policy,
                env=config.env,
                folder=folder.path,
                spent=(spent := _judge_usage(folder)),
            )
            if hasattr(judge, "aclose"):
                stack.push_async_callback(judge.aclose)
            grader = build.env_grader(config.env, folder.path)
            if grader is not None:
                stack.push_async_callback(grader.aclose)
            rollout = await stage.probed(stage.rollout(config, policy, hosts), train_tasks[0])
            # Only now, so that what cannot run leaves no half-made run behind.
            folder.begin(written, config.seed, resume=resume)
            for file in ("metrics.jsonl", "trajectories.jsonl"):
                folder.truncate(file, done)
            loop = _Loop(
                config=config,
                folder=folder,
                policy=policy,
                rollout=rollout,
                judge=judge,
                grader=grader,
                chance=build.env_chance(config.env),
                update=update,
                critic=critic,
                stream=TaskStream(tasks=train_tasks, seed=derive(config.seed, _TASKS)),
                test_tasks=test_tasks,
                watch=watch,
                spent=spent,
            )
            return await loop.run(done)

    return asyncio.run(run())


@dataclass(slots=True, kw_only=True)
class _Loop:
    config: RunConfig
    folder: RunFolder
    policy: TrainablePolicy
    rollout: Rollout
    judge: Judge
    grader: Grader | None
    chance: bool
    update: PolicyUpdate
    critic: Critic | None
    stream: TaskStream
    test_tasks: tuple[Task, ...]
    watch: Watcher
    spent: Usage
    """What the judge has used up since the run began, in updates that a resume has cut away as well."""
    saved: int = 0
    """Updates after which the last checkpoint was saved."""
    warned: set[str] = field(default_factory=set)
    answers: AnswerWatch = field(init=False)
    null: NullProbe = field(init=False)
    budget: TurnBudget | None = field(init=False)

    def __post_init__(self) -> None:
        verify = self.config.verify
        self.answers = AnswerWatch(
            warn_below=verify.min_answered, stop_below=verify.stop_below, window=verify.answered_window
        )
        self.null = NullProbe(warn_after=verify.null_warn_after)
        matched = self.config.rollout.match_turns
        self.budget = None if matched is None else TurnBudget.of(matched)
        done = _stored_metrics(self.folder)
        self.null.recall(done)
        if self.budget is not None:
            self.budget.own = sum(update["turns"] for update in done)

    async def run(self, done: int) -> TrainResult:
        config, policy, self.saved = self.config, self.policy, done
        before = await self._evaluate(0, anew=done == 0) if config.evaluation.start else ()
        for number in range(done, config.optim.updates):
            metrics = await self._update(number)
            self.folder.append("metrics.jsonl", metrics)
            self.watch("update", metrics)
            finished = number + 1
            if finished % config.checkpoint.every == 0 or finished == config.optim.updates:
                state = {"tasks": _fingerprint(self.stream.tasks), "seed": config.seed}
                checkpoint.save(
                    self.folder.checkpoints,
                    finished,
                    policy,
                    self.update.optimizer,
                    self.update.names,
                    state,
                    keep=config.checkpoint.keep,
                    arrays=None if self.critic is None else self.critic.arrays(),
                )
                self.saved = finished
                kept = [found.update for found in checkpoint.complete(self.folder.checkpoints)]
                group_store.prune(self.folder.groups, kept, config.checkpoint.groups)
            if config.evaluation.every and finished % config.evaluation.every == 0 and finished < config.optim.updates:
                await self._evaluate(finished)
        after = await self._evaluate(config.optim.updates)
        return TrainResult(
            folder=self.folder, method=config.method, updates=config.optim.updates, before=before, after=after
        )

    async def _update(self, number: int) -> dict[str, Any]:
        config, clock = self.config, Clock()
        with clock.phase("rollout"):
            tasks = self.stream.draw(number, config.rollout.groups)
            seed = derive(config.seed, _ROLLOUT, number)
            groups = await self.rollout.groups(tasks, config.rollout.group_size, seed=seed)
            if self.budget is not None:
                played = [trajectory.n_turns for group in groups for trajectory in group.trajectories]
                more = self.budget.more(number, sum(played), len(played), len(groups))
                groups = await self.rollout.enlarged(groups, more, seed=seed)
                self.budget.own += sum(trajectory.n_turns for group in groups for trajectory in group.trajectories)
        verdicts: list[Verdict] = []
        probed: dict[str, Any] = {}
        try:
            check_failure_share(groups, config.rollout.max_failure_share)
            if config.judged:
                with clock.phase("credit"):
                    verdicts = await self._attribution().judge_groups(groups, seed=derive(config.seed, _CREDIT, number))
                probed = self.null.see(verdicts)
                self._warn(verdicts)
        except FailureShareError:
            for record in readable(number, groups, verdicts):
                self.folder.append("trajectories.jsonl", record)
            raise
        steps: Sequence[Any] = ()
        foretold: dict[str, Any] = {}
        if self.critic is not None:
            with clock.phase("critic"):
                steps, foretold = self.critic.see(groups, self.policy)
        with clock.phase("update"):
            rows = training_rows(
                groups,
                verdicts,
                config.advantage,
                centred=config.credit.centred,
                shared=config.credit.shared,
                steps=steps,
            )
            statistics = self.update.step(rows, seed=derive(config.seed, _SHUFFLE, number))
            self.policy.updated()
        with clock.phase("log"):
            for record in readable(number, groups, verdicts):
                self.folder.append("trajectories.jsonl", record)
            if number - self.saved < config.checkpoint.groups:
                group_store.save(self.folder.groups, number, groups)
        return {
            "update": number,
            **rollout_metrics(groups),
            **attribution_metrics(verdicts, groups),
            **probed,
            **foretold,
            **self._judge_stats(),
            **statistics,
            **continuation_metrics(rows),
            **({"env_stats": served} if (served := await self.rollout.hosts.stats()) else {}),
            "cpu_seconds": clock.cpu,
            "wall_seconds": clock.wall,
        }

    def _judge_stats(self) -> dict[str, Any]:
        """The judge's own counters of this update; what it has used up in all is written down apart."""
        stats = getattr(self.judge, "stats", None)
        if stats is None:
            return {}
        told = stats()
        self.spent += Usage(**{name: told[name] for name in _SPENT if name in told})
        self.folder.write(_SPENT_FILE, json.dumps({name: getattr(self.spent, name) for name in _SPENT}))
        return {"judge": told}

    def _warn(self, verdicts: Sequence[Verdict]) -> None:
        """Say once per run why judge or verifier fail, and whenever the judge begins to answer too rarely.

        Raises:
            FailureShareError: see ``AnswerWatch.see``.
        """
        for verdict in verdicts:
            if verdict.outcome in ("judge_failed", "verifier_failed") and verdict.outcome not in self.warned:
                self.warned.add(verdict.outcome)
                reason = verdict.detail.strip().rpartition("\n")[2]
                _log.warning(f"{verdict.outcome.replace('_', ' ')}, no credit for this group", reason=reason)
        if warning := self.null.warning():
            _log.warning(warning)
        if warning := self.answers.see(verdicts):
            details = [verdict.detail for verdict in verdicts if verdict.unanswered]
            _log.error(warning, last=details[-1].strip().rpartition("\n")[2] if details else "")

    def _attribution(self) -> Attribution:
        config, verify = self.config, self.config.verify
        branch = Branch(rollout=self.rollout, restore_rng=verify.restore_rng, keep_rows=verify.train_continuations)
        verifiers: dict[str, Callable[[], Verifier | None]] = {
            "monte_carlo": lambda: MonteCarloVerifier(
                branch=branch,
                continuations=verify.continuations,
                sequential=verify.sequential,
                signed=config.credit.sign == "signed",
                chance=self.chance,
            ),
            "anchor": AnchorVerifier,
            "trust": lambda: None,
        }
        return Attribution(
            judge=self.judge,
            verifier=verifiers[verify.mode](),
            trusted_delta=verify.trusted_delta,
            judge_deadline_s=verify.judge_deadline_s,
            rule=stage.credit_rule(config),
            probe=RandomJudge(max_length=1),
            probe_share=verify.null_probe,
            eligible_min=verify.eligible_min,
            eligible_max=verify.eligible_max,
            mixed_only=verify.mixed_only,
            budget=VerificationBudget(
                continuations=verify.continuations if verify.mode == "monte_carlo" else 0,
                max_share=verify.max_share,
                max_turns=verify.max_turns,
                max_tokens=verify.max_tokens,
            ),
        )

    async def _evaluate(self, done: int, *, anew: bool = True) -> tuple[Evaluation, ...]:
        """Measure after ``done`` updates at every temperature; results that a resumed run already has are read back.

        Raises:
            ConfigError: a result is not there and cannot be measured ``anew``, since the weights are others by now.
        """
        settings, found = self.config.evaluation, []
        for temperature in settings.temperatures:
            path = self.folder.evaluations / f"update-{done:06d}-T{temperature:g}.json"
            if path.exists() and (stored := Evaluation.load(path)).split == settings.split:
                found.append(stored)
                continue
            if not anew:
                raise ConfigError(
                    f"expected what was measured after {done} updates on split {settings.split!r} in {path}, got none, "
                    "and the weights of that time are gone; resume with the evaluation.split and "
                    "evaluation.temperatures that the run began with"
                )
            result = await evaluate(
                self.rollout,
                self.test_tasks,
                settings.episodes,
                temperature=temperature,
                seed=settings.seed,
                provenance=stage.provenance(self.config.env, settings.split),
                grader=self.grader,
            )
            result.save(path)
            self.watch("evaluation", {"update": done, "text": result.text(), **result.summary()})
            found.append(result)
        # Cached prefixes would change the rounding of what is sampled next.
        self.policy.forget()
        return tuple(found)


def _judge_usage(folder: RunFolder) -> Usage:
    """What the judge of an interrupted run has used up: the budget is one for the whole run."""
    path = folder.path / _SPENT_FILE
    return Usage(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Usage()


def _stored_metrics(folder: RunFolder) -> list[dict[str, Any]]:
    """Metrics of the updates that an interrupted run has done."""
    path, found = folder.path / "metrics.jsonl", []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(ValueError):  # The line that was being written when the run was stopped.
            found.append(json.loads(line))
    return found


def _fingerprint(tasks: Sequence[Task]) -> str:
    """Short hash of a task list, so that a changed one is noticed on resume."""
    return hashlib.blake2b("\n".join(task.id for task in tasks).encode(), digest_size=8).hexdigest() + f"/{len(tasks)}"
