"""From a contender to something that plays: policies, hosts and conversations are opened here and closed again."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from prover import build, stage
from prover.backends.build import open_backend
from prover.bench.contender import ApiConfig, Contender
from prover.bench.text_rollout import ExpertHost, TextPlayer, TextRollout, at_random, expertly
from prover.chat import Usage
from prover.config import PolicyConfig, RunConfig
from prover.errors import ConfigError
from prover.evaluate import Plays, sampling_at
from prover.host import Host, HostPool
from prover.policies.api import ApiPolicy
from prover.records import Task


@asynccontextmanager
async def player(
    contender: Contender, config: RunConfig, temperature: float, first: Task, spent: Mapping[str, Any]
) -> AsyncIterator[tuple[Plays, Callable[[], dict[str, Any]]]]:
    """What plays under a config, and a function that tells what it has cost besides time.

    Args:
        contender: what is to play.
        config: rules, environment and policy, as ``Contender.under`` makes them.
        temperature: sampling temperature.
        first: a task to look at, so that what cannot play shows before anything is measured.
        spent: what that function told when an interrupted measurement was stopped.

    Raises:
        ConfigError: the contender cannot play this environment.
    """
    if contender.kind == "hf":
        policy = _loaded(config.policy.model_copy(update={"temperature": 1.0}), contender.fingerprint)
        async with stage.host_pool(config) as hosts:
            yield sampling_at(await stage.probed(stage.rollout(config, policy, hosts), first), temperature), dict
        # What is kept between requests rounds differently: the next measurement begins as in a fresh process.
        policy.forget()
        return
    rules = replace(stage.rules(config), record_states=False)
    if contender.kind == "random":
        async with stage.host_pool(config) as hosts:
            yield TextRollout(begin=at_random, hosts=hosts, rules=rules), dict
        return
    if contender.kind == "expert":
        factory = build.env_factory(config.env)
        if not hasattr(factory(), "expert"):
            raise ConfigError(
                f"expected an environment with an expert(seed) method, got {config.env.kind!r} without one; choose "
                "another policy"
            )
        # It acts on the environment itself, so that both are in this process, wherever others would be.
        async with HostPool(lambda: ExpertHost(factory, config.rollout.step_deadline_s), 1) as hosts:
            yield TextRollout(begin=expertly, hosts=hosts, rules=rules), dict
        return
    assert isinstance(contender.config, ApiConfig), "a chat model comes with its config"
    before = Usage(**spent.get("usage", {}))
    backend = open_backend(contender.config.policy.backend, spent=before)
    talker = ApiPolicy(
        backend=backend,
        text_format=rules.text_format,
        system=rules.system,
        mode=rules.mode,
        window=rules.window,
        max_tokens=contender.config.policy.max_reply_tokens,
        temperature=temperature,
        tell_actions=rules.admissible,
        usage=before,
    )

    async def begin_talk(host: Host, seed: int) -> TextPlayer:
        """A conversation of its own for each episode."""
        return talker.begin(seed)

    try:
        async with stage.host_pool(config) as hosts:
            yield TextRollout(begin=begin_talk, hosts=hosts, rules=rules), lambda: {"usage": asdict(talker.usage)}
    finally:
        await backend.aclose()


@lru_cache(maxsize=1)
def _loaded(config: PolicyConfig, fingerprint: str) -> Any:
    """The policy of a config; measurements that follow each other share it."""
    return build.policy(config)
