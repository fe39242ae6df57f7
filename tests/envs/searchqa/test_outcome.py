"""What a finished episode answered."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from prover.envs.searchqa import SearchQAEnv, outcome
from prover.envs.searchqa.outcome import Outcome
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.records import Sampling, Task, Trajectory
from prover.rollout import EpisodeRules, Rollout
from prover.testing import ScriptedPolicy


def played(folder: Path, replies: Sequence[str]) -> Trajectory:
    """An episode of a scripted policy."""
    rules = EpisodeRules(max_turns=len(replies), sampling=Sampling(max_tokens=200), text_format=Bare())

    async def play() -> Trajectory:
        make = partial(SearchQAEnv, data=str(folder))
        async with HostPool(lambda: InlineHost(make), 1) as hosts:
            rollout = Rollout(policy=ScriptedPolicy(replies), hosts=hosts, rules=rules)
            (found,) = await rollout.episodes([Task(id="q1", split="train")], seeds=[0])
            assert isinstance(found, Trajectory)
            return found

    return asyncio.run(play())


def test_outcome(folder: Path) -> None:
    """Question, gold answers and answer of an episode that ended, from its last action and its task."""
    questions = SearchQAEnv(data=str(folder)).questions
    replies = ["<search>Ada Quist</search>", "<think>so</think><answer> Marrow  Bay </answer>"]
    assert outcome(played(folder, replies), questions, "tags") == Outcome(
        question="Where was Ada Quist born", answers=("Marrow Bay", "the Bay of Marrow"), answer="Marrow Bay"
    )
    assert outcome(played(folder, ["<search>Ada</search>"]), questions, "tags") is None
    assert outcome(played(folder, ["dunno"]), questions, "tags") is None
