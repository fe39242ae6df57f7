"""TextRollout: episodes of what plays by text and has no tokens: chance, an environment's expert, a chat model.

The rules, retries and failures are those of ``prover.rollout``. Its trajectories have no token rows, so that nothing
can be trained on them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from prover.errors import ConfigError, EnvError, ServiceError
from prover.formats import Parsed
from prover.host import Host, HostPool, InlineHost
from prover.records import EndReason, Failure, Task, Trajectory, Turn
from prover.rollout import EpisodeRules, Place, failure_of, metrics_of, reward_of, success_of
from prover.seeds import generator


class TextPlayer(Protocol):
    """Plays one episode by text."""

    async def act(self, observation: str, info: Mapping[str, Any]) -> tuple[str, Parsed]:
        """The next reply, as it was written and as it is read."""


Begin = Callable[[Host, int], Awaitable[TextPlayer]]
"""Gives a player for the episode that was just reset in a host, from a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRollout:
    """Plays episodes of text players in a pool of environments; see ``Rollout``."""

    begin: Begin
    hosts: HostPool
    rules: EpisodeRules

    async def episodes(self, tasks: Sequence[Task], *, seeds: Sequence[int]) -> list[Trajectory | Failure]:
        """One episode per task and seed, in order."""
        if len(tasks) == 1:  # Awaited in place: players that never wait would all play before one is known to end.
            return [await self._attempt(tasks[0], seeds[0])]
        return list(await asyncio.gather(*map(self._attempt, tasks, seeds)))

    async def _attempt(self, task: Task, seed: int) -> Trajectory | Failure:
        """One episode, retried in a fresh environment; what a service does not answer was retried by its client."""
        place = Place()
        for tries_left in range(self.rules.retries, -1, -1):
            try:
                async with self.hosts.host() as host, asyncio.timeout(self.rules.episode_deadline_s):
                    return await self._episode(host, task, seed, place)
            except Exception as error:
                if not tries_left or isinstance(error, ServiceError):
                    return failure_of(error, place, task=task.id, member=0, seed=seed)
                place.where, place.turn = "env.reset", -1
        raise AssertionError("unreachable: the last try returns")

    async def _episode(self, host: Host, task: Task, seed: int, place: Place) -> Trajectory:
        opening, info = await host.reset(task.id, seed)
        kind, success, observation = str(info.get("task_type", "")), success_of(info), opening
        player = await self.begin(host, seed)
        turns: list[Turn] = []
        end = EndReason.TURN_CAP
        for turn in range(self.rules.max_turns):
            place.where, place.turn = "policy.act", turn
            text, parsed = await player.act(observation, info)
            place.where = "env.step"
            observation, gained, terminated, truncated, info = await host.step(parsed.action)
            success = success_of(info)
            turns.append(
                Turn(
                    text=text,
                    action=parsed.action,
                    result=observation,
                    reward=reward_of(gained),
                    invalid=parsed.invalid or ("env" if info.get("invalid_action") else None),
                    truncated=parsed.invalid == "truncated",
                )
            )
            if terminated or truncated:
                end = EndReason.DONE
                break
        return Trajectory(
            task=replace(task, kind=kind),
            member=0,
            seed=seed,
            policy_version=0,
            opening=opening,
            turns=tuple(turns),
            rows=(),
            reward=sum(turn.reward for turn in turns),
            success=success,
            end=end,
            metrics=metrics_of(info),
        )


async def at_random(host: Host, seed: int) -> TextPlayer:
    """Chance as a ``Begin``: uniform over the admissible actions."""
    return _Chance(seed)


async def expertly(host: Host, seed: int) -> TextPlayer:
    """The environment's own expert as a ``Begin``.

    Raises:
        ConfigError: the host cannot show its environment's expert.
    """
    if not isinstance(host, ExpertHost):
        raise ConfigError(f"expected an ExpertHost for an expert, got {type(host).__name__}; play it in this process")
    return _Script(await host.expert(seed))


class ExpertHost(InlineHost):
    """An environment in this process whose expert may be asked: it acts on the environment itself."""

    async def expert(self, seed: int) -> Any:
        """A scripted player of the current episode, see ``TextEnv``.

        Raises:
            EnvError: the environment has none, or it failed.
        """
        return await self._call("expert", seed)


class _Chance:
    def __init__(self, seed: int) -> None:
        self._rng = generator(seed)

    async def act(self, observation: str, info: Mapping[str, Any]) -> tuple[str, Parsed]:
        listed = info.get("admissible_actions") or ()
        if not listed:
            raise EnvError(
                "expected an environment that lists info['admissible_actions'] for random play, got none; choose "
                "another policy"
            )
        action = str(listed[int(self._rng.integers(len(listed)))])
        return action, Parsed(action=action)


class _Script:
    def __init__(self, player: Any) -> None:
        self._player = player

    async def act(self, observation: str, info: Mapping[str, Any]) -> tuple[str, Parsed]:
        action = str(self._player.act(observation, info))
        return action, Parsed(action=action)
