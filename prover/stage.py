"""What episodes need, built from a config: rules, environments, a rollout."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog

from prover import build
from prover.config import RunConfig
from prover.credit import CreditRule
from prover.env_config import EnvConfig
from prover.errors import ConfigError, TokenError
from prover.host import Host, HostPool, InlineHost, ProcessHost, ThreadHost
from prover.protocols import Policy, TextEnv
from prover.records import Provenance, Sampling, Task
from prover.rollout import EpisodeRules, Rollout

_log = structlog.get_logger(__name__)


def rules(config: RunConfig) -> EpisodeRules:
    """The rules of episodes and continuations that the config spells out."""
    text_format = build.text_format(config.format)
    return EpisodeRules(
        max_turns=config.rollout.max_turns,
        sampling=Sampling(temperature=config.policy.temperature, max_tokens=config.policy.max_reply_tokens),
        text_format=text_format,
        admissible=config.policy.decoding == "admissible",
        system=config.transcript.system,
        mode=config.transcript.mode,
        window=config.transcript.window,
        end_on_cut=config.rollout.on_cut == "end",
        train_on_cut=config.rollout.train_on_cut,
        episode_deadline_s=config.rollout.episode_deadline_s,
        retries=config.rollout.retries,
        record_states=config.judged or config.advantage.omega > 0,
    )


def credit_rule(config: RunConfig) -> CreditRule:
    """What the config makes of a measured difference; divided as the advantages are, where it asks for that."""
    credit, std = config.credit, config.advantage.std
    return CreditRule(
        weight=credit.weight,
        sign=credit.sign,
        min_z=credit.min_z,
        min_delta=credit.min_delta,
        tau=credit.tau,
        measure=credit.measure,
        std=("ddof1" if std == "none" else std) if credit.normalised else "none",
        cap=credit.cap,
        top=credit.top,
    )


def tasks(config: EnvConfig, split: str) -> tuple[Task, ...]:
    """The tasks of a split as records; see ``build.env_tasks`` for what it raises."""
    return tuple(Task(id=task, split=split) for task in build.env_tasks(config, split))


def provenance(config: EnvConfig, split: str) -> Provenance:
    """What the environment says of a split, where it says anything."""
    env: Any = build.env_factory(config)()
    try:
        return Provenance(
            ceiling=env.ceiling(split) if hasattr(env, "ceiling") else None,
            manifest=env.manifest() if hasattr(env, "manifest") else {},
        )
    finally:
        env.close()


def host_pool(config: RunConfig) -> AbstractAsyncContextManager[HostPool]:
    """``rollout.concurrency`` environments as ``rollout.isolation`` says; closed on every exit."""
    factory: Callable[[], TextEnv] = build.env_factory(config.env)
    deadline = config.rollout.step_deadline_s
    kinds: dict[str, type[Host]] = {"inline": InlineHost, "thread": ThreadHost, "process": ProcessHost}
    kind = kinds[config.rollout.isolation]
    return HostPool(lambda: kind(factory, deadline), config.rollout.concurrency)


async def probed(player: Rollout, task: Task) -> Rollout:
    """The rollout, after a look at one task: can the policy read the prompt and say what the environment understands?

    Raises:
        ConfigError: the first prompt does not fit into the context, or the policy can say no admissible action.
        EnvError: the environment does not start the task.
    """
    policy, rules = player.policy, player.rules
    async with player.hosts.host() as host:
        opening, info = await host.reset(task.id, 0)
    prompt = len(policy.codec.opening(rules.system, opening))
    if prompt + rules.sampling.max_tokens > policy.context_limit:
        raise ConfigError(
            f"expected a first prompt and a reply of {rules.sampling.max_tokens} tokens to fit into context_limit "
            f"{policy.context_limit}, got a prompt of {prompt} tokens in task {task.id!r}; raise context_limit"
        )
    try:
        said = len(player.choices(info))
    except TokenError as error:
        raise ConfigError(f"{error} (task {task.id!r})") from error
    if said and said < (listed := len(set(info["admissible_actions"]))):
        _log.warning("the policy cannot say every admissible action", task=task.id, actions=listed, sayable=said)
    return player


def rollout(config: RunConfig, policy: Policy, hosts: HostPool) -> Rollout:
    """Episodes of a policy under the config's rules."""
    return Rollout(policy=policy, hosts=hosts, rules=rules(config))
