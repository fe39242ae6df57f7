"""Episodes of what plays by text: chance and experts, and what becomes of their failures."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from prover.bench.text_rollout import ExpertHost, TextPlayer, TextRollout, at_random, expertly
from prover.errors import ConfigError, ServiceError
from prover.evaluate import Episode
from prover.formats import Bare, Parsed
from prover.host import Host, HostPool, InlineHost
from prover.protocols import TextEnv
from prover.records import EndReason, Failure, Sampling, Task, Trajectory
from prover.rollout import EpisodeRules
from prover.testing import LineEnv

RULES = EpisodeRules(max_turns=4, sampling=Sampling(), text_format=Bare(), retries=1, record_states=False)


class Guided(LineEnv):
    """The walk, with an expert that goes right."""

    def expert(self, seed: int) -> Any:
        class Player:
            def act(self, observation: str, info: Mapping[str, Any]) -> str:
                return "right"

        return Player()


class Says:
    """Says the same whatever it sees, or raises it."""

    def __init__(self, what: tuple[str, Parsed] | Exception) -> None:
        self.what = what
        self.acts = 0

    async def act(self, observation: str, info: Mapping[str, Any]) -> tuple[str, Parsed]:
        self.acts += 1
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


def play(
    begin: Any, *cells: int, env: Callable[[], TextEnv] = Guided, host: type[Host] = ExpertHost
) -> list[Trajectory | Failure]:
    """Episodes from these cells, with seeds that are their places."""

    async def run() -> list[Trajectory | Failure]:
        async with HostPool(lambda: host(env), 2) as hosts:
            rollout = TextRollout(begin=begin, hosts=hosts, rules=RULES)
            tasks = [Task(id=f"start-{cell}", split="test") for cell in cells]
            return await rollout.episodes(tasks, seeds=list(range(len(cells))))

    return asyncio.run(run())


def always(player: TextPlayer) -> Any:
    """A ``Begin`` that gives this player."""

    async def begin(host: Host, seed: int) -> TextPlayer:
        return player

    return begin


def test_an_expert_plays_on_the_environment_itself() -> None:
    """From cell 7 it takes two turns, from cell 2 the turn cap ends the episode; there are no token rows."""
    near, far = play(expertly, 7, 2)
    assert isinstance(near, Trajectory)
    assert isinstance(far, Trajectory)
    assert ([turn.action for turn in near.turns], near.success, near.reward, near.end) == (
        ["right", "right"],
        True,
        1.0,
        EndReason.DONE,
    )
    assert (far.n_turns, far.success, far.end, far.rows) == (4, False, EndReason.TURN_CAP, ())
    assert Episode.of(near).turns == 2


def test_an_expert_needs_a_host_that_shows_it() -> None:
    """The failure says which."""
    (found,) = play(expertly, 7, host=InlineHost)
    assert isinstance(found, Failure)
    assert "expected an ExpertHost" in found.summary
    with pytest.raises(ConfigError):
        asyncio.run(expertly(InlineHost(Guided), 0))


def test_chance_depends_on_the_seed_alone() -> None:
    """The same again when it is played again; other seeds give other episodes."""
    first, again = play(at_random, *[4] * 8), play(at_random, *[4] * 8)
    actions = [[turn.action for turn in run.turns] for run in first if isinstance(run, Trajectory)]
    assert actions == [[turn.action for turn in run.turns] for run in again if isinstance(run, Trajectory)]
    assert len(set(map(tuple, actions))) > 4
    assert {action for some in actions for action in some} == {"left", "look", "right"}


def test_chance_needs_actions_to_choose_from() -> None:
    """An environment that lists none makes the episode fail, and says why."""

    class Silent(LineEnv):
        def _info(self) -> dict[str, Any]:
            return super()._info() | {"admissible_actions": []}

    (found,) = play(at_random, 4, env=Silent)
    assert isinstance(found, Failure)
    assert "lists info['admissible_actions'] for random play" in found.summary


def test_what_cannot_be_read_is_an_invalid_turn() -> None:
    """The environment hears the empty action; a cut reply is marked as such."""
    (found,) = play(always(Says(("...", Parsed(action="", invalid="truncated")))), 7)
    assert isinstance(found, Trajectory)
    assert {(turn.text, turn.action, turn.invalid, turn.truncated) for turn in found.turns} == {
        ("...", "", "truncated", True)
    }
    (found,) = play(always(Says(("dance", Parsed(action="dance")))), 7)
    assert isinstance(found, Trajectory)
    assert Episode.of(found).invalid == 4


def test_a_failed_call_voids_the_episode_at_once() -> None:
    """It is a failure, no reward of 0, and the client has retried already."""
    player = Says(ServiceError("expected an answer, got none", "timeout"))
    (found,) = play(always(player), 7)
    assert isinstance(found, Failure)
    assert (found.where, found.turn, player.acts) == ("policy.act", 0, 1)


def test_other_failures_are_tried_again() -> None:
    """Once, as the rules say."""
    player = Says(ValueError("out of order"))
    (found,) = play(always(player), 7)
    assert isinstance(found, Failure)
    assert (player.acts, found.summary) == (2, "ValueError: out of order")
