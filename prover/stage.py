"""What episodes need, built from a config: rules, environments, a rollout."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from prover import build
from prover.config import EnvConfig, RunConfig
from prover.host import Host, HostPool, InlineHost, ProcessHost
from prover.protocols import Policy, TextEnv
from prover.records import Sampling, Task
from prover.rollout import EpisodeRules, Rollout


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
        record_states=config.method == "prover",
    )


def tasks(config: EnvConfig, split: str) -> tuple[Task, ...]:
    """The tasks of a split as records; see ``build.env_tasks`` for what it raises."""
    return tuple(Task(id=task, split=split) for task in build.env_tasks(config, split))


def host_pool(config: RunConfig) -> AbstractAsyncContextManager[HostPool]:
    """``rollout.concurrency`` environments, in this process or each in one of its own; closed on every exit."""
    factory: Callable[[], TextEnv] = build.env_factory(config.env)
    deadline = config.rollout.step_deadline_s
    inline = config.rollout.isolation == "inline"

    def make() -> Host:
        return InlineHost(factory, deadline) if inline else ProcessHost(factory, deadline)

    return HostPool(make, config.rollout.concurrency)


def rollout(config: RunConfig, policy: Policy, hosts: HostPool) -> Rollout:
    """Episodes of a policy under the config's rules."""
    return Rollout(policy=policy, hosts=hosts, rules=rules(config))
