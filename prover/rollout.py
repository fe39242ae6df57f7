"""The only environment loop. The turn cap, deadlines, retries and failures live here.

``Rollout.groups`` samples G episodes of each task; ``Rollout.play`` is the loop itself, which ``branch`` enters in the
middle of an episode. The loop sees protocols only: any environment, any policy.
"""

import asyncio
import math
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from prover.errors import EnvError, FailureShareError, SnapshotError, TokenError
from prover.formats import Parsed, TextFormat
from prover.host import Host, HostPool
from prover.protocols import Policy
from prover.records import (
    EndReason,
    Failure,
    FailureCause,
    Group,
    Request,
    Sampling,
    Task,
    Trajectory,
    Turn,
)
from prover.seeds import derive
from prover.transcript import Mode, Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRules:
    """What holds for every episode and every continuation of a run."""

    max_turns: int
    """Turn cap of an episode; a continuation gets what is left of it."""
    sampling: Sampling
    text_format: TextFormat
    admissible: bool = False
    """Draw replies among the environment's admissible actions, where it lists them."""
    system: str = ""
    mode: Mode = "append"
    window: int = 2
    """Turns shown in window mode."""
    end_on_cut: bool = False
    """End the episode when a reply is cut by the token limit; else the environment receives the empty action."""
    train_on_cut: bool = True
    """Train on the tokens of a cut reply."""
    episode_deadline_s: float | None = None
    retries: int = 2
    """Further attempts, each in a fresh environment, after a failed one."""
    record_states: bool = True
    """Store a snapshot and a state key before every turn; needed for branching."""


@dataclass(slots=True)
class Place:
    """Where an episode is, for the record of a failure."""

    where: str = "env.reset"
    turn: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the loop did from its first turn to the end of the episode."""

    turns: tuple[Turn, ...]
    reward: float
    success: bool
    end: EndReason
    tokens: int
    """Tokens that the policy sampled."""
    metrics: dict[str, float]
    """Of the last observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Plays episodes of one policy in a pool of environments.

    Results depend on the seeds alone: not on the concurrency, and not on what else is being played.
    """

    policy: Policy
    hosts: HostPool
    rules: EpisodeRules

    async def groups(self, tasks: Sequence[Task], size: int, *, seed: int) -> list[Group]:
        """``size`` episodes of each task; members of a group share the task and the environment's seed."""
        members = [
            self._attempt(task, member, seed=derive(seed, index, member), env_seed=derive(seed, index))
            for index, task in enumerate(tasks)
            for member in range(size)
        ]
        done = await asyncio.gather(*members)
        return [
            Group(
                index=index,
                task=task,
                trajectories=tuple(t for t in part if isinstance(t, Trajectory)),
                failures=tuple(f for f in part if isinstance(f, Failure)),
                env_seed=derive(seed, index),
            )
            for index, task in enumerate(tasks)
            for part in [done[index * size : (index + 1) * size]]
        ]

    async def enlarged(self, groups: Sequence[Group], more: Sequence[int], *, seed: int) -> list[Group]:
        """The groups with so many more members each, from the ``seed`` that they were played from."""
        sizes = [len(group.trajectories) + len(group.failures) for group in groups]
        added = await asyncio.gather(
            *(
                self._attempt(group.task, member, seed=derive(seed, index, member), env_seed=derive(seed, index))
                for index, (group, size, n) in enumerate(zip(groups, sizes, more, strict=True))
                for member in range(size, size + n)
            )
        )
        found, start = [], 0
        for group, n in zip(groups, more, strict=True):
            part, start = added[start : start + n], start + n
            trajectories = tuple(run for run in part if isinstance(run, Trajectory))
            failures = tuple(run for run in part if isinstance(run, Failure))
            found.append(
                replace(
                    group,
                    trajectories=group.trajectories + trajectories,
                    failures=group.failures + failures,
                )
            )
        return found

    async def episodes(self, tasks: Sequence[Task], *, seeds: Sequence[int]) -> list[Trajectory | Failure]:
        """One episode per task and seed, in order."""
        pairs = zip(tasks, seeds, strict=True)
        return list(await asyncio.gather(*(self._attempt(task, 0, seed=seed, env_seed=seed) for task, seed in pairs)))

    async def _attempt(self, task: Task, member: int, *, seed: int, env_seed: int) -> Trajectory | Failure:
        """One episode, retried in a fresh environment while it fails; a failure is a record, never a reward of 0."""
        place = Place()
        for tries_left in range(self.rules.retries, -1, -1):
            try:
                async with self.hosts.host() as host, asyncio.timeout(self.rules.episode_deadline_s):
                    return await self._episode(host, task, member, seed=seed, env_seed=env_seed, place=place)
            except Exception as error:
                if not tries_left:
                    return failure_of(error, place, task=task.id, member=member, seed=seed)
                place.where, place.turn = "env.reset", -1
        raise AssertionError("unreachable: the last try returns")

    async def _episode(
        self, host: Host, task: Task, member: int, *, seed: int, env_seed: int, place: Place
    ) -> Trajectory:
        opening, info = await host.reset(task.id, env_seed)
        rules = self.rules
        transcript = Transcript.open(
            self.policy.codec,
            system=rules.system,
            observation=opening,
            temperature=rules.sampling.temperature,
            mode=rules.mode,
            window=rules.window,
        )
        version = self.policy.version
        played = await self.play(host, transcript, info, seed=seed, first_turn=0, place=place)
        return Trajectory(
            task=replace(task, kind=str(info.get("task_type", ""))),
            member=member,
            seed=seed,
            policy_version=version,
            opening=opening,
            turns=played.turns,
            rows=transcript.rows(),
            reward=played.reward,
            success=played.success,
            end=played.end,
            metrics=played.metrics,
        )

    async def play(
        self, host: Host, transcript: Transcript, info: dict[str, Any], *, seed: int, first_turn: int, place: Place
    ) -> Played:
        """Let policy and environment alternate from ``first_turn`` until the episode ends.

        Args:
            host: environment whose current state precedes ``first_turn``.
            transcript: conversation up to and including the current observation.
            info: info of the current observation.
            seed: entropy of the sampling; turn t samples with ``derive(seed, t)``.
            first_turn: 0 for an episode; the turn of the snapshot for a continuation.
            place: kept up to date for the record of a failure.
        """
        rules, limit = self.rules, self.policy.context_limit
        turns: list[Turn] = []
        tokens = 0
        success, end = success_of(info), EndReason.TURN_CAP
        for turn in range(first_turn, rules.max_turns):
            prompt = transcript.prompt()
            if len(prompt) + rules.sampling.max_tokens > limit:
                end = EndReason.CONTEXT
                break
            place.where, place.turn = "env.snapshot", turn
            snapshot, state_key = await host.checkpoint() if rules.record_states else (None, "")
            place.where = "policy.generate"
            choices = self.choices(info)
            request = Request(
                ids=prompt, sampling=rules.sampling, seed=derive(seed, turn), choices=tuple(choices) or None
            )
            completion = (await self.policy.generate([request]))[0]
            cut = completion.finish == "length"
            tokens += len(completion.ids)
            text = transcript.sampled(completion, trained=rules.train_on_cut or not cut)
            parsed = Parsed(action="", invalid="truncated") if cut else rules.text_format.read(text)
            if not cut and completion.ids in choices:
                # The environment hears its own words: a vocabulary may know them up to case and spacing only.
                parsed = Parsed(action=choices[completion.ids])
            observation, reward, over = "", 0.0, False
            if not (cut and rules.end_on_cut):
                place.where = "env.step"
                observation, gained, terminated, truncated, info = await host.step(parsed.action)
                reward, success, over = reward_of(gained), success_of(info), terminated or truncated
            turns.append(
                Turn(
                    text=text,
                    action=parsed.action,
                    result=observation,
                    reward=reward,
                    invalid=parsed.invalid or ("env" if info.get("invalid_action") else None),
                    truncated=cut,
                    snapshot=snapshot,
                    state_key=state_key,
                    prompt_length=transcript.prompt_length,
                )
            )
            if over or (cut and rules.end_on_cut):
                end = EndReason.DONE if over else EndReason.CUT
                break
            transcript.observed(observation)
        return Played(
            turns=tuple(turns),
            reward=sum(t.reward for t in turns),
            success=success,
            end=end,
            tokens=tokens,
            metrics=metrics_of(info),
        )

    def choices(self, info: dict[str, Any]) -> dict[tuple[int, ...], str]:
        """The admissible actions by their token sequences; none where decoding is free or none are listed.

        Raises:
            TokenError: the policy can say none of those that are listed.
        """
        choices: dict[tuple[int, ...], str] = {}
        listed = (info.get("admissible_actions") or ()) if self.rules.admissible else ()
        for action in listed:
            try:
                ids = self.policy.codec.action(self.rules.text_format.write(action))
            except TokenError:  # The policy has no tokens for this action, so it could not have written it either.
                continue
            if len(ids) <= self.rules.sampling.max_tokens:
                choices[ids] = action
        if listed and not choices:
            raise TokenError(
                f"expected a policy that can say the admissible actions in at most {self.rules.sampling.max_tokens} "
                f"tokens, got one that can say none of {len(listed)} (e.g. {listed[0]!r}); use a policy with these "
                "words (`prover sft` makes one), raise policy.max_reply_tokens, or set policy.decoding=free"
            )
        return choices


def success_of(info: dict[str, Any]) -> bool:
    """The environment's verdict.

    Raises:
        EnvError: there is none.
    """
    if "success" not in info:
        raise EnvError(
            f"expected info['success'] from reset, restore and step, got the keys {sorted(info)}; "
            "let the environment report whether the task is solved"
        )
    if info["success"] not in (True, False):  # bool("False") and bool(nan) would be successes.
        raise EnvError(f"expected info['success'] to be true or false, got {info['success']!r}; let it be a bool")
    return bool(info["success"])


def metrics_of(info: dict[str, Any]) -> dict[str, float]:
    """What the environment measured besides; empty where it measures nothing.

    Raises:
        EnvError: these are no names of finite numbers.
    """
    metrics = info.get("metrics", {})
    try:
        read = {str(name): float(value) for name, value in metrics.items()}
    except (AttributeError, TypeError, ValueError):
        read = {"": math.nan}
    if not all(map(math.isfinite, read.values())):
        raise EnvError(f"expected info['metrics'] to map names to finite numbers, got {metrics!r}; correct it")
    return read


def reward_of(value: float) -> float:
    """The reward of a step.

    Raises:
        EnvError: it is not finite.
    """
    reward = float(value)
    if not math.isfinite(reward):
        raise EnvError(f"expected a finite reward from step, got {reward}; correct the environment")
    return reward


def failure_of(error: Exception, place: Place, *, task: str, member: int, seed: int) -> Failure:
    """The record of a failed attempt."""
    if isinstance(error, TimeoutError):
        cause = FailureCause.TIMEOUT
    else:
        cause = FailureCause.MISMATCH if isinstance(error, SnapshotError) else FailureCause.ERROR
    detail = "".join(traceback.format_exception(error))
    return Failure(cause=cause, where=place.where, task=task, member=member, seed=seed, turn=place.turn, detail=detail)


def check_failure_share(groups: Sequence[Group], limit: float) -> None:
    """Stop a run in which too many episodes yield nothing.

    Raises:
        FailureShareError: more than ``limit`` of the episodes failed, or every one did.
    """
    failures = [failure for group in groups for failure in group.failures]
    total = len(failures) + sum(len(group.trajectories) for group in groups)
    if failures and (len(failures) > limit * total or len(failures) == total):
        first = failures[0]
        raise FailureShareError(
            f"expected at most {limit:.0%} of {total} episodes to fail, got {len(failures)}; the first failed with "
            f"{first.cause} in {first.where} at turn {first.turn} of task {first.task!r}: "
            f"{first.summary}; the run's trajectories.jsonl has the tracebacks"
        )
