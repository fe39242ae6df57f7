"""ExpertJudge, on a line of cells 0 to 9 whose expert does not know that the goal is on the right."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from episodes import played

from prover.envs.alfworld.env import ALFWorldEnv
from prover.judges.expert import ExpertJudge
from prover.protocols import Judge, TextEnv
from prover.records import Group, NoProposal, Proposal, Task, Trajectory, Turn
from prover.testing import LineEnv


class Guide:
    """Goes left until it has seen cell 4 or 8, or right at once if it is lucky; from then on right."""

    def __init__(self, lucky: bool) -> None:
        self.knows = lucky

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """One step."""
        self.knows = self.knows or "cell 4 " in observation or "cell 8 " in observation
        return "right" if self.knows else "left"


class GuidedLine(LineEnv):
    """A line with guides; every second seed that is asked for has a lucky one."""

    seeds: ClassVar[list[int]] = []
    closed = 0

    def expert(self, seed: int) -> Guide:
        """The guide of a seed."""
        if seed not in self.seeds:
            self.seeds.append(seed)
        return Guide(lucky=self.seeds.index(seed) % 2 == 1)

    def close(self) -> None:
        """Count it."""
        type(self).closed += 1


class Cliff(GuidedLine):
    """Cell 5 ends the episode, which has failed then."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """As on the line otherwise."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or "cell 5 " in observation, truncated, info


@pytest.fixture(autouse=True)
def _fresh() -> None:
    GuidedLine.seeds.clear()
    GuidedLine.closed = 0


def episode(env: TextEnv, task: str, actions: Sequence[str]) -> Trajectory:
    """What these actions do, with snapshots."""
    opening, info = env.reset(seed=0, options={"task": task})
    turns = []
    for action in actions:
        snapshot = env.snapshot()
        result, reward, _, _, info = env.step(action)
        turns.append(Turn(text=action, action=action, result=result, reward=reward, snapshot=snapshot))
    return played(turns, info["success"], task=Task(id=task, split="train"), opening=opening)


def line(start: int, *actions: str) -> Trajectory:
    """An episode on the line."""
    return episode(LineEnv(), f"start-{start}", actions)


def group(*runs: Trajectory) -> Group:
    """These runs of a task."""
    return Group(index=0, task=runs[0].task, trajectories=runs)


def judged(*runs: Trajectory, env: Any = GuidedLine, **options: int) -> Proposal | NoProposal:
    """The judge's answer, with one sample unless told otherwise."""
    judge = ExpertJudge(env, **({"samples": 1} | options))
    assert isinstance(judge, Judge)
    return asyncio.run(judge.propose(group(*runs), seed=0))


def told(answer: Proposal | NoProposal) -> tuple[int, int, str]:
    """The run and the turn that were named, and what the expert needs."""
    assert isinstance(answer, Proposal)
    assert answer.segment.length == 1
    return answer.segment.trajectory, answer.segment.start, answer.reason.partition(": ")[2]


LUCKY = ("right", "right", "right")


def test_turn_that_saves_the_most() -> None:
    """From cell 7 the guide goes to 4 and then to 9: 3 + 5 turns; in cell 8 it knows, and needs one."""
    lost = line(6, "look", "look")
    assert told(judged(lost, line(6, *LUCKY))) == (1, 1, "the expert needs 8 turns before it and 1 after it")


def test_first_of_equals() -> None:
    """Known from the start by the cell 8, the way back is as long as the way there: a turn each."""
    run = line(8, "left", "left", "right", "right", "right")
    assert told(judged(run)) == (0, 2, "the expert needs 3 turns before it and 2 after it")


def test_what_was_seen_before_is_remembered() -> None:
    """One that began in cell 7 would look for the goal on the left, and need 8 turns; this one has seen cell 8."""
    assert told(judged(line(8, "left", "right", "right")))[2] == "the expert needs 2 turns before it and 1 after it"


def test_samples_are_averaged() -> None:
    """The lucky one needs 2 turns from cell 7, the other 8; the same two play from every state."""
    assert told(judged(line(6, *LUCKY), samples=2)) == (0, 1, "the expert needs 5 turns before it and 1 after it")
    assert len(GuidedLine.seeds) == 2


def test_who_does_not_get_there_needs_the_limit() -> None:
    """Stopped after 5 turns, or fallen off a cliff."""
    assert told(judged(line(6, *LUCKY), limit=5))[2] == "the expert needs 5 turns before it and 1 after it"
    assert told(judged(line(6, *LUCKY), env=Cliff))[2] == "the expert needs 100 turns before it and 1 after it"


def test_no_turn_that_helps() -> None:
    """A look saves nothing, and the last turn is never named."""
    answer = judged(line(8, "look", "right"))
    assert answer == NoProposal(reason="nothing_closer", detail="no turn of 1 saves the expert a turn")


def test_what_is_missing_is_named() -> None:
    """A success, a turn that may be named, a state, an expert."""
    won = line(6, *LUCKY)
    stored = replace(won, turns=(won.turns[0], replace(won.turns[1], snapshot=None), won.turns[2]))
    assert judged(line(6, "look")) == NoProposal(reason="no_success")
    assert judged(line(8, "right")) == NoProposal(reason="no_valid_segment", detail="none of 1 turns")
    assert judged(stored) == NoProposal(reason="no_snapshots", detail="there is no state before turn 1")
    assert judged(won, env=LineEnv) == NoProposal(reason="no_expert", detail="LineEnv has no expert(seed)")


def test_groups_are_judged_at_the_same_time() -> None:
    """In one environment, each as it is judged alone; afterwards it is closed."""
    runs = [line(6, *LUCKY), line(8, "left", "left", "right", "right", "right"), line(8, "look", "right")]
    judge = ExpertJudge(GuidedLine, samples=3)

    async def ask() -> list[Proposal | NoProposal]:
        answers = await asyncio.gather(*(judge.propose(group(run), seed=0) for run in runs))
        await judge.aclose()
        await judge.aclose()
        return list(answers)

    assert asyncio.run(ask()) == [judged(run, samples=3) for run in runs]
    assert GuidedLine.closed == 1


def test_household_expert_knows_what_was_done() -> None:
    """With the clean thing in its hands two turns before the end, it goes and puts it down, and cleans it no more."""
    env = ALFWorldEnv(task_types=["pick_clean_then_place_in_recep"])
    task = env.tasks("train")[0]
    observation, info = env.reset(options={"task": task})
    player, actions = env.expert(0), list[str]()
    while not info["success"]:
        actions.append(player.act(observation, info))
        observation, _, _, _, info = env.step(actions[-1])
    run = episode(env, task, actions)
    last = run.turns[-2:]
    assert [turn.action.split()[0] for turn in last] == ["go", "move"]
    idle = [replace(turn, invalid="env") for turn in run.turns[:-2]]
    answer = judged(replace(run, turns=(*idle, *last)), env=ALFWorldEnv, samples=3)
    assert told(answer)[1:] == (len(actions) - 2, "the expert needs 2 turns before it and 1 after it")
    free = judged(run, env=ALFWorldEnv, samples=3)
    assert free == judged(run, env=ALFWorldEnv, samples=3)
