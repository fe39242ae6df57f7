"""The whole of it: load the start policy, make the batches that are missing, tell what they say."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from prover import build, stage
from prover.config import RunConfig, effective_yaml
from prover.diagnosis.book import Batch, Book
from prover.diagnosis.figures import Summary, summary
from prover.diagnosis.probe import Probe, recording
from prover.diagnosis.rules import Rules
from prover.errors import ConfigError
from prover.judge_config import (
    AnchorJudgeConfig,
    ContrastJudgeConfig,
    DivergenceJudgeConfig,
    EntropyJudgeConfig,
    ExpertJudgeConfig,
    FixedJudgeConfig,
    JudgeConfig,
    RandomSegmentJudgeConfig,
)
from prover.protocols import Judge, TrainablePolicy
from prover.seeds import derive
from prover.tasks import TaskStream
from prover.update import PolicyUpdate

Watcher = Callable[[int, int], None]
"""Told how many of how many batches are done."""

_TASKS = (1 << 16) + 1
"""Seed path of the order of tasks, so that they are not those of a training run's first updates."""
UNREACHED = "unreached fact"
"""The contrast judge where it names a fact that no failure reached."""
TWO = "two segments"
"""The contrast judge of the config where it may name two segments of a group."""
_NOT_SINGLE = ("none", "every_turn")
"""Judges that point at nothing or at everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What is to be diagnosed."""

    config: RunConfig
    out: Path
    """Folder of the diagnosis."""
    batches: int = 64


def sections(config: RunConfig) -> dict[str, JudgeConfig]:
    """The selectors by name: those that need no model, and that of the config with its own settings.

    The expert is among them where the environment has one.
    """
    shipped: tuple[JudgeConfig, ...] = (
        ContrastJudgeConfig(),
        RandomSegmentJudgeConfig(),
        EntropyJudgeConfig(),
        DivergenceJudgeConfig(),
        AnchorJudgeConfig(),
        FixedJudgeConfig(),
    )
    found = {section.kind: section for section in shipped}
    found[UNREACHED] = ContrastJudgeConfig(rare=0.0, facts_only=True)
    if hasattr(build.env_factory(config.env).target(), "expert"):
        found["expert"] = ExpertJudgeConfig()
    if config.judge.kind not in _NOT_SINGLE:
        found[config.judge.kind] = config.judge
    if isinstance(config.judge, ContrastJudgeConfig) and config.judge.segments == 1:
        found[TWO] = config.judge.model_copy(update={"segments": 2})
    return found


def rules(config: RunConfig) -> Rules:
    """What is compared."""
    names = tuple(sections(config))
    return Rules(
        selectors=names,
        judge=config.judge.kind if config.judge.kind in names else None,
        continuations=config.verify.continuations,
        eligible_max=min(config.verify.eligible_max, config.rollout.group_size - 1),
    )


def diagnose(plan: Diagnosis, watch: Watcher = lambda done, batches: None) -> Summary:
    """Make the batches that the folder lacks, and save what all of them say in ``summary.json``.

    Raises:
        ConfigError: the folder holds a diagnosis of another config, or the config cannot be had.
        DataError: data of the environment or the policy are missing, or a file is damaged.
        FailureShareError: too many episodes failed.
    """
    config, book = plan.config, Book(plan.out)
    if plan.batches < 1:
        raise ConfigError(f"expected at least 1 batch, got {plan.batches}; raise --batches")
    book.begin(effective_yaml(config))
    # Continuations see what the episodes see, also when the folder is given again.
    config = config.model_copy(update={"env": config.env.kept_in(plan.out)})
    done = book.read()
    missing = [number for number in range(plan.batches) if number not in done]
    if missing:
        asyncio.run(_sample(config, book, done, missing, plan, watch))
    wanted = range(plan.batches)
    found = summary(
        [done[number] for number in wanted],
        book.gradients(wanted),
        rules(config),
        judged=config.judged,
        group_size=config.rollout.group_size,
    )
    found.save(plan.out / "summary.json")
    return found


async def _sample(
    config: RunConfig, book: Book, done: dict[int, Batch], missing: list[int], plan: Diagnosis, watch: Watcher
) -> None:
    """Make batches, keeping each as soon as it is whole."""
    policy: TrainablePolicy = build.policy(config.policy)
    tasks = stage.tasks(config.env, config.env.split)
    async with AsyncExitStack() as stack:
        hosts = await stack.enter_async_context(stage.host_pool(config))
        judges: Mapping[str, Judge] = {
            name: build.judge(section, policy, env=config.env, folder=plan.out)
            for name, section in sections(config).items()
        }
        for judge in judges.values():
            if hasattr(judge, "aclose"):
                stack.push_async_callback(judge.aclose)
        rollout = await stage.probed(recording(stage.rollout(config, policy, hosts)), tasks[0])
        probe = Probe(
            config=config,
            policy=policy,
            rollout=rollout,
            selectors=judges,
            rules=rules(config),
            stream=TaskStream(tasks=tasks, seed=derive(config.seed, _TASKS)),
            # At the policy that it is measured against, the KL term has no gradient.
            update=PolicyUpdate(
                policy.model,
                config.optim.model_copy(update={"kl": 0.0}),
                horizon=config.rollout.max_turns * config.policy.max_reply_tokens,
            ),
        )
        for number in missing:
            batch, gradients = await probe.batch(number)
            book.append(batch, gradients)
            done[number] = batch
            watch(len([made for made in done if made < plan.batches]), plan.batches)
