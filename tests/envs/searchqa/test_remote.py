"""Episodes whose passages come from a server that fails, is killed, and comes back or does not."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer

from prover.envs.searchqa import SearchQAEnv
from prover.formats import Bare
from prover.host import Host, HostPool, InlineHost, ThreadHost
from prover.records import Completion, Group, Request, Sampling, Task, Trajectory
from prover.retrieval import Retriever
from prover.retrieval.build import open_retriever
from prover.retriever_config import HttpRetrieverConfig
from prover.rollout import EpisodeRules, Rollout
from prover.testing import UniformPolicy

GROUPS, SIZE = 8, 8
RULES = EpisodeRules(
    max_turns=6, sampling=Sampling(max_tokens=400), text_format=Bare(), admissible=True, record_states=False
)


class Searching(UniformPolicy):
    """Draws a search while it may search, then an answer; something happens when it is asked for the ``at``-th time."""

    def __init__(self, at: int = 0, happens: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._left = at
        self._happens = happens

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self._left -= 1
        if self._left == 0:
            self._happens()
        return await super().generate([self._eager(request) for request in requests])

    def _eager(self, request: Request) -> Request:
        choices = request.choices or ()
        searches = tuple(ids for ids in choices if self.codec.decode(ids).startswith("<search>"))
        return replace(request, choices=searches or choices)


def play(policy: Searching, kind: type[Host], retriever: Retriever | None) -> list[Group]:
    """Sixty-four episodes of eight questions, all at once; each is decided by its seed and what it reads."""

    async def groups() -> list[Group]:
        def host() -> Host:
            return kind(lambda: SearchQAEnv(retriever=retriever))

        async with HostPool(host, GROUPS * SIZE) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=RULES)
            tasks = [Task(id=name, split="train") for name in SearchQAEnv().tasks("train")[:GROUPS]]
            return await rollout.groups(tasks, SIZE, seed=5)

    return asyncio.run(groups())


def told(trajectory: Trajectory) -> tuple[Any, ...]:
    """All that an episode did, saw and earned."""
    turns = tuple((turn.text, turn.result, turn.reward) for turn in trajectory.turns)
    return (turns, trajectory.reward, trajectory.success, trajectory.end)


def by_member(groups: Sequence[Group]) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Every episode that was played, by task and member."""
    return {(t.task.id, t.member): told(t) for group in groups for t in group.trajectories}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, int], tuple[Any, ...]]:
    """The same episodes with the retriever in this process."""
    return by_member(play(Searching(), InlineHost, None))


def client(server: FaultyServer, **options: Any) -> Retriever:
    """What asks the server, and keeps its answers."""
    config = HttpRetrieverConfig(url=server.url, dialect="verl_agent", pause_s=0.05, longest_pause_s=0.3, **options)
    return open_retriever(config)


def test_nothing_is_lost(tmp_path: Path, expected: dict[tuple[str, int], tuple[Any, ...]]) -> None:
    """One request of twenty fails, and the server is killed and restarted: every episode is played, and the same."""
    passages = SearchQAEnv()._library.passages()
    with FaultyServer(tmp_path, passages, "verl_agent") as server:

        def restart() -> None:
            server.kill()
            server.start()

        retriever = client(server, read_s=0.5, retries=99)
        groups = play(Searching(150, restart), ThreadHost, retriever)
        retriever.close()
        faults = sum(server.faults().values())
    assert [group.failures for group in groups] == [()] * GROUPS
    assert by_member(groups) == expected
    assert faults >= 3
    assert len(expected) == GROUPS * SIZE
    assert len(set(expected.values())) > GROUPS * SIZE / 2


def test_an_outage_is_no_reward_of_zero(tmp_path: Path, expected: dict[tuple[str, int], tuple[Any, ...]]) -> None:
    """When the server does not come back, an episode is played as it should be, or is a failure that says why."""
    passages = SearchQAEnv()._library.passages()
    with FaultyServer(tmp_path, passages, "verl_agent") as server:
        retriever = client(server, read_s=20.0, retries=2)
        server.wait()
        groups = play(Searching(150, server.kill), ThreadHost, retriever)
        retriever.close()
    failures = [failure for group in groups for failure in group.failures]
    played = by_member(groups)
    assert len(played) + len(failures) == GROUPS * SIZE
    assert failures
    assert {failure.where for failure in failures} == {"env.step"}
    assert all("ServiceError" in failure.detail and "server runs" in failure.detail for failure in failures)
    assert played == {member: expected[member] for member in played}
