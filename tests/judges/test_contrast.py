"""Tests of prover.judges.contrast. Texts and tasks are written for the tests, in the manner of household games."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from episodes import TASK, played
from hypothesis import given
from hypothesis import strategies as st

from prover.judges.contrast import ContrastJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Proposal, TokenRow, Trajectory, Turn
from prover.segments import validate_segment

ROOM = "You are in a room. You see a shelf 1, a desk 1, a sinkbasin 1 and a drawer 1.\n\nYour task is to: {}."
SIGHTS = {"shelf 1": "a mug 2 and a pen 1", "desk 1": "a mug 1", "drawer 1": "nothing", "sinkbasin 1": "nothing"}
DEFAULT = "put a clean mug in shelf"


def answer(action: str) -> str:
    """What the room says to an action."""
    if action.startswith("go to "):
        place = action.removeprefix("go to ")
        return f"You arrive at {place}. On the {place}, you see {SIGHTS[place]}."
    if found := re.fullmatch(r"take (.+) from (.+)", action):
        return f"You pick up the {found[1]} from the {found[2]}."
    if found := re.fullmatch(r"move (.+) to (.+)", action):
        return f"You move the {found[1]} to the {found[2]}."
    if found := re.fullmatch(r"clean (.+) with (.+)", action):
        return f"You clean the {found[1]} using the {found[2]}."
    return "Nothing happens."


def run(
    actions: Sequence[str], *, success: bool = False, task: str = DEFAULT, states: Sequence[str] = ()
) -> Trajectory:
    """A trajectory of these actions; those that the room does not understand are invalid."""
    turns = tuple(
        Turn(
            text=action,
            action=action,
            result=answer(action),
            reward=0.0,
            invalid="env" if answer(action) == "Nothing happens." else None,
            state_key=states[t] if states else "",
        )
        for t, action in enumerate(actions)
    )
    return played(turns, success, opening=ROOM.format(task))


def judged(*members: Trajectory, seed: int = 0, **options: Any) -> Proposal | NoProposal:
    """The judge's answer for a group of these members."""
    group = Group(index=0, task=TASK, trajectories=members)
    return asyncio.run(ContrastJudge(**options).propose(group, seed=seed))


def named(*members: Trajectory, **options: Any) -> list[tuple[int, int]]:
    """First and last turn of each segment that is proposed for these members, in order."""
    group = Group(index=0, task=TASK, trajectories=members)
    found = asyncio.run(ContrastJudge(**options).propose_all(group, seed=0))
    assert isinstance(found, Sequence)
    return [(proposal.segment.start, proposal.segment.end) for proposal in found]


def turn_of(answered: Proposal | NoProposal) -> int:
    """The one turn that was proposed."""
    assert isinstance(answered, Proposal)
    assert answered.segment.start == answered.segment.end
    return answered.segment.start


WON = run(
    [
        "go to desk 1",
        "go to shelf 1",
        "take mug 2 from shelf 1",
        "go to sinkbasin 1",
        "clean mug 2 with sinkbasin 1",
        "go to shelf 1",
        "move mug 2 to shelf 1",
    ],
    success=True,
)


def test_first_fact_that_no_failure_reached() -> None:
    """When no failure ever held a mug, the turn that took one is proposed, and the reason says so."""
    lost = run(["go to desk 1", "go to shelf 1", "take pen 1 from shelf 1", "move pen 1 to shelf 1"])
    got = judged(lost, WON, lost)
    assert turn_of(got) == 2
    assert isinstance(got, Proposal)
    assert got.segment.trajectory == 1
    assert got.judge == "contrast"
    assert got.reason == "turn 2 'take mug 2 from shelf 1': 2 of 2 failures never reached 'take mug'"


def test_another_mug_counts_as_well() -> None:
    """A failure that took another mug has reached the same fact, so cleaning it is what sets the success apart."""
    lost = run(["go to desk 1", "take mug 1 from desk 1", "go to shelf 1", "move mug 1 to shelf 1"])
    assert turn_of(judged(WON, lost)) == 4


def test_rare_fact() -> None:
    """Where every fact occurs in some failure, the one that the fewest reached is proposed."""
    held = run(["take mug 1 from desk 1", "go to shelf 1"])
    cleaned = run(["take mug 1 from desk 1", "clean mug 1 with sinkbasin 1", "go to desk 1"])
    got = judged(WON, held, cleaned, held)
    assert turn_of(got) == 4
    assert isinstance(got, Proposal)
    assert "2 of 3 failures never reached 'clean mug'" in got.reason


def test_second_object() -> None:
    """With two objects to find, taking the second one is a fact of its own; taking the first one again is not."""
    task = "put two mugs in shelf"
    won = run(
        ["go to desk 1", "take mug 1 from desk 1", "move mug 1 to shelf 1", "take mug 2 from shelf 1", "go to shelf 1"],
        success=True,
        task=task,
    )
    lost = run(
        ["go to desk 1", "take mug 1 from desk 1", "move mug 1 to shelf 1", "take mug 1 from shelf 1", "go to shelf 1"],
        task=task,
    )
    got = judged(won, lost)
    assert turn_of(got) == 3
    assert isinstance(got, Proposal)
    assert "'take mug (number 2)'" in got.reason


def test_wrong_place_is_no_progress() -> None:
    """Putting the object where the task does not want it is not proposed before a fact, although no failure did it."""
    won = run(
        [
            "take mug 1 from desk 1",
            "move mug 1 to drawer 1",
            "take mug 1 from drawer 1",
            "clean mug 1 with sinkbasin 1",
            "x",
        ],
        success=True,
    )
    lost = run(["take mug 1 from desk 1", "go to shelf 1"])
    assert turn_of(judged(won, lost)) == 3


def test_exploration_comes_last() -> None:
    """Seeing the object first is proposed only where no fact sets the success apart; an empty drawer comes after it."""
    won = run(["go to drawer 1", "go to desk 1", "go to shelf 1"], success=True)
    lost = run(["go to sinkbasin 1", "x"])
    got = judged(won, lost)
    assert turn_of(got) == 1
    assert isinstance(got, Proposal)
    assert "ever saw 'mug'" in got.reason
    assert turn_of(judged(won, run(["go to desk 1", "go to sinkbasin 1"]))) == 0


def test_events_do_not_count_beside_facts() -> None:
    """A detour that no failure made is not proposed where the success has facts, even such as failures reached."""
    won = run(["go to drawer 1", "take mug 1 from desk 1", "go to shelf 1"], success=True)
    lost = run(["take mug 1 from desk 1", "go to shelf 1"])
    assert isinstance(judged(won, lost), NoProposal)


def test_nothing_distinctive() -> None:
    """When failures did all that the success did before its last turn, there is no proposal."""
    won = run(["go to desk 1", "take mug 1 from desk 1", "go to shelf 1"], success=True)
    lost = run(["go to desk 1", "take mug 1 from desk 1", "go to drawer 1"])
    assert judged(won, lost) == NoProposal(reason="nothing_distinctive", detail="no turn sets it apart from 1 failures")


@pytest.mark.parametrize("members", [(WON,), (run(["go to desk 1"]),), (WON, WON)])
def test_no_contrast(members: tuple[Trajectory, ...]) -> None:
    """A group without failures or without successes has nothing to contrast."""
    got = judged(*members)
    assert isinstance(got, NoProposal)
    assert got.reason == "no_contrast"


def test_last_and_invalid_turns() -> None:
    """Neither the last turn nor one that had no effect is proposed, however distinctive."""
    won = run(["go to desk 1", "clean mug 1", "take mug 1 from desk 1"], success=True)
    lost = run(["go to desk 1", "go to shelf 1"])
    assert isinstance(judged(won, lost), NoProposal)


def test_states_of_failures() -> None:
    """A turn that leads to a state that a failure visited, or that changes no state, is not proposed."""
    actions = ["go to desk 1", "take mug 1 from desk 1", "clean mug 1 with sinkbasin 1", "go to shelf 1"]
    lost = run(["go to desk 1", "go to shelf 1", "go to desk 1"], states=["s", "desk", "held"])
    won = run(actions, success=True, states=["s", "desk", "held", "clean"])
    assert turn_of(judged(won, lost)) == 2
    unchanged = run(actions, success=True, states=["s", "desk", "held", "held"])
    assert isinstance(judged(unchanged, lost), NoProposal)


def test_shortest_success_is_judged() -> None:
    """The success with the fewest turns is judged, wherever it stands."""
    lost = run(["go to desk 1", "go to shelf 1"])
    longer = run([*["go to drawer 1"] * 3, *(turn.action for turn in WON.turns)], success=True)
    got = judged(longer, lost, WON)
    assert isinstance(got, Proposal)
    assert got.segment.trajectory == 2


def test_openings_without_a_task_line() -> None:
    """Without "task:" or the like, the last paragraph of the opening is taken as the task; an empty one is fine."""
    for opening, turn in (("A room with things.\n\nBring the mug.", 2), ("", 1)):
        members = [
            played(run(actions).turns, success, opening=opening)
            for actions, success in (
                (["go to desk 1", "take pen 1 from shelf 1", "take mug 1 from desk 1", "go to desk 1"], True),
                (["go to desk 1", "go to drawer 1"], False),
            )
        ]
        assert turn_of(judged(*members)) == turn


ACTIONS = st.sampled_from([*(turn.action for turn in WON.turns), "take pen 1 from shelf 1", "go to drawer 1", "", "x"])
RUNS = st.lists(ACTIONS, max_size=8)


def test_how_rare_a_fact_must_be() -> None:
    """One of three failures cleaned a mug: a share of 1/3 takes that, one below takes none, and 1 takes all."""
    held = run(["take mug 1 from desk 1", "go to shelf 1"])
    cleaned = run(["take mug 1 from desk 1", "clean mug 1 with sinkbasin 1", "go to desk 1"])
    members = (WON, held, cleaned, held)
    assert named(*members, rare=1 / 3, segments=9) == [(4, 4)]
    assert named(*members, rare=1.0, segments=9) == [(4, 4), (2, 2)]
    assert isinstance(judged(*members, rare=0.3), NoProposal)


def test_facts_that_no_failure_reached() -> None:
    """Asked for these alone, neither a rare fact nor a sight is proposed, and an unreached fact is."""
    held = run(["take mug 1 from desk 1", "go to shelf 1"])
    cleaned = run(["take mug 1 from desk 1", "clean mug 1 with sinkbasin 1", "go to desk 1"])
    assert isinstance(judged(WON, held, cleaned, held, rare=0.0, facts_only=True), NoProposal)
    assert named(WON, held, rare=0.0, facts_only=True) == [(4, 4)]
    seen = run(["go to drawer 1", "go to desk 1", "go to shelf 1"], success=True)
    lost = run(["go to sinkbasin 1", "x"])
    assert named(seen, lost) == [(1, 1)]
    assert isinstance(judged(seen, lost, facts_only=True), NoProposal)


def test_several_segments() -> None:
    """The best first: the unreached facts in their order, then what was seen first; the one asked for is the first."""
    lost = run(["go to sinkbasin 1", "go to drawer 1"])
    assert named(WON, lost, segments=2) == [(2, 2), (4, 4)]
    assert named(WON, lost, segments=9) == [(2, 2), (4, 4), (0, 0)]
    assert turn_of(judged(WON, lost, segments=9)) == 2


def test_context_comes_before_the_turn() -> None:
    """So many turns before it, as many as there are, none that had no effect, and at most ``max_length`` in all."""
    lost = run(["go to sinkbasin 1", "go to drawer 1"])
    assert named(WON, lost, context=1) == [(1, 2)]
    assert named(WON, lost, context=3) == [(0, 2)]
    assert named(WON, lost, context=3, max_length=2) == [(1, 2)]
    clumsy = run(["go to desk 1", "dance", "go to shelf 1", "take mug 2 from shelf 1", "go to desk 1"], success=True)
    assert named(clumsy, lost, context=3) == [(2, 3)]


def test_segments_with_context_do_not_overlap() -> None:
    """A later choice leaves out turns of earlier ones, and a turn inside one is not named again."""
    lost = run(["go to sinkbasin 1", "go to drawer 1"])
    assert named(WON, lost, segments=9, context=3) == [(0, 2), (3, 4)]


def test_what_the_policy_does_anyway_is_left_out() -> None:
    """The mug is taken with probability .9 and cleaned with .4: by default cleaning is it.

    Turns without tokens stay; a bound that nothing meets leaves no proposal.
    """
    lost = run(["go to sinkbasin 1", "go to drawer 1"])
    taken, cleaned = (2, 2), (4, 4)
    probabilities = np.array([1.0, 1.0, 0.9, 1.0, 0.4])
    row = TokenRow(
        ids=np.arange(5),
        turn_of_token=np.arange(5),
        loss_mask=np.ones(5, np.bool_),
        logprobs=np.log(probabilities),
        support=(None,) * 5,
    )
    sampled = replace(WON, rows=(row,))
    assert named(sampled, lost, segments=9, min_alternative=0.0)[:2] == [taken, cleaned]
    assert named(sampled, lost, segments=9, min_alternative=0.05)[:2] == [taken, cleaned]
    assert named(sampled, lost, segments=9) == [cleaned]
    assert isinstance(judged(sampled, lost, min_alternative=0.7), NoProposal)
    assert named(WON, lost, segments=9, min_alternative=0.7) == named(WON, lost, segments=9)


@given(RUNS, st.lists(RUNS, min_size=1, max_size=4), st.integers(0, 3), st.integers(1, 4), st.floats(0, 1))
def test_segments_are_valid_and_disjoint(
    won: list[str], lost: list[list[str]], context: int, max_length: int, rare: float
) -> None:
    """Whatever the settings, every segment can be measured and no turn is in two of them."""
    judge = ContrastJudge(max_length, rare, segments=3, context=context)
    success = run(won, success=True)
    group = Group(index=0, task=TASK, trajectories=(success, *map(run, lost)))
    found = asyncio.run(judge.propose_all(group, seed=0))
    segments = [] if isinstance(found, NoProposal) else [proposal.segment for proposal in found]
    assert len(segments) <= 3
    assert all(validate_segment(segment, success, max_length) is None for segment in segments)
    turns = [turn for segment in segments for turn in range(segment.start, segment.end + 1)]
    assert len(turns) == len(set(turns))


@given(RUNS, st.lists(RUNS, min_size=1, max_size=4), st.integers(0, 99))
def test_valid_and_independent_of_order(won: list[str], lost: list[list[str]], seed: int) -> None:
    """Whatever is proposed is valid, and neither the failures' order nor the seed plays a part."""
    judge = ContrastJudge()
    assert isinstance(judge, Judge)
    failures = [run(actions) for actions in lost]
    success = run(won, success=True)
    got = judged(success, *failures)
    if isinstance(got, Proposal):
        assert validate_segment(got.segment, success, judge.max_length) is None
    assert judged(success, *reversed(failures), seed=seed) == got
