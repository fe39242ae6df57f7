"""What each rule adds to GRPO's advantages."""

from dataclasses import replace

import numpy as np
import pytest
from episodes import TASK, played
from surveyed import course, turn

from prover.attribution import Verdict
from prover.config import RunConfig, load_config
from prover.diagnosis.rules import best_turns, compared, every_turn, part_names, parts
from prover.diagnosis.survey import Course
from prover.records import Estimate, Group, Proposal, Segment, TokenRow, Trajectory, Turn

SUCCESS = course([0, 2, 6, 4], [0, 4, 4, 4])
"""Four turns; by the first pass turns 0, 1, 2 are worth 1/4, 1/2 and -1/4, and the last one 1/2."""


def trajectory(member: int) -> Trajectory:
    """Four turns of one token each; the first member succeeded."""
    row = TokenRow(
        ids=np.arange(5),
        turn_of_token=np.array([-1, 0, 1, 2, 3]),
        loss_mask=np.array([False, True, True, True, True]),
        logprobs=np.zeros(5),
        support=(None,) * 5,
    )
    turns = tuple(
        Turn(text=str(t), action=str(t), result="", reward=0.0, state_key=f"{member} {t}" if t else "start")
        for t in range(4)
    )
    return played(turns, member == 0, member=member, rows=(row,))


GROUP = Group(index=0, task=TASK, trajectories=tuple(trajectory(member) for member in range(4)))


def verdict(segment: Segment, found: Course = SUCCESS) -> Verdict:
    """A measured segment."""
    estimate: Estimate = found.estimate(segment)
    proposal = Proposal(segment=segment, reason="", judge="sharp")
    return Verdict(group=0, outcome="measured", proposal=proposal, estimate=estimate)


def added(*verdicts: Verdict, config: RunConfig | None = None, group: Group = GROUP) -> dict[str, list[list[float]]]:
    """Advantages of the four tokens of each member, by part."""
    made = parts(config or load_config(None, ["env.kind=line"]), [group], [SUCCESS], {"sharp": verdicts}, "sharp")
    return {name: [row.advantages_T[1:].tolist() for row in rows] for name, rows in made.items()}


NOTHING = [[0.0] * 4] * 3


def test_every_part_is_there_and_in_order() -> None:
    """GRPO comes first; names and rows agree."""
    assert [*added(verdict(turn(1)))] == part_names(["sharp"], "sharp")
    assert part_names(["sharp"], None) == ["grpo", "gigpo", "sharp", "best turn", "every turn", "as configured"]


def test_a_credit_stands_alone() -> None:
    """GRPO's advantages are 3/4 and -1/4; the selector's part is its gain of 1/2 on its own turn, nothing elsewhere."""
    found = added(verdict(turn(1)))
    assert found["grpo"] == [[0.75] * 4, *[[-0.25] * 4] * 3]
    assert found["sharp"] == [[0, 0.5, 0, 0], *NOTHING]


def test_losses_count_where_credit_is_signed() -> None:
    """Turn 2 lost 1/4: nothing for gains only; signed -1/4; centred the mean of -1/16 is taken off all four tokens."""
    found = added(verdict(turn(2)))
    assert found["sharp"] == [[0] * 4, *NOTHING]
    assert found["sharp, signed"] == [[0, 0, -0.25, 0], *NOTHING]
    assert found["sharp, centred"] == [[0.0625, 0.0625, -0.1875, 0.0625], *NOTHING]


def test_credit_is_shared_with_successes_that_did_the_same() -> None:
    """The second member succeeds as well, by the same action in the same state at turn 0, and parts after it."""
    second = replace(GROUP.trajectories[1], success=True)
    group = replace(GROUP, trajectories=(GROUP.trajectories[0], second, *GROUP.trajectories[2:]))
    found = added(verdict(turn(0)), group=group)
    assert found["sharp, shared"] == [[0.25, 0, 0, 0], [0.25, 0, 0, 0], *NOTHING[:2]]
    assert found["sharp"][1] == [0.0] * 4


def test_gigpo_compares_visits_of_one_state() -> None:
    """All four start alike: the discounted return of the success, .95^3, against a mean of a quarter of it."""
    found = added(verdict(turn(1)))["gigpo"]
    assert found[0] == pytest.approx([0.75 * 0.95**3, 0, 0, 0])
    assert found[1] == pytest.approx([-0.25 * 0.95**3, 0, 0, 0])


def test_the_best_turn_is_credited_afresh() -> None:
    """The first pass chooses turn 1, to which the second gives nothing; turn 0 would earn 1 by the second."""
    (best,) = best_turns([SUCCESS])
    assert best.proposal is not None
    assert best.proposal.segment == turn(1)
    assert best.estimate is not None
    assert (best.estimate.delta, best.estimate.before.n) == (0, 4)
    assert added(verdict(turn(1)))["best turn"] == [[0] * 4, *NOTHING]


def test_every_turn_gets_its_difference() -> None:
    """All four, signed, with the known success after the last one."""
    assert len(every_turn([SUCCESS])) == 4
    assert added(verdict(turn(1)))["every turn"] == [[0.25, 0.5, -0.25, 0.5], *NOTHING]


def test_the_configured_rule_is_what_the_config_says() -> None:
    """Lambda 4 with a cap of 1.5, without a baseline: credit of 1.5 where GRPO's advantages are taken away."""
    settings = ["env.kind=line", "credit.weight=4.0", "credit.cap=1.5", "advantage.baseline=none"]
    found = added(verdict(turn(1)), config=load_config(None, settings))["as configured"]
    assert found == [[-0.75, 1.5 - 0.75, -0.75, -0.75], *[[0.25] * 4] * 3]


def test_the_best_of_a_group_can_be_chosen() -> None:
    """Of turns 0 and 1 of one group, worth 1/4 and 1/2, only the latter earns as configured; by itself each does."""
    other = replace(GROUP, index=1)
    elsewhere = replace(verdict(turn(0)), group=1)
    config = load_config(None, ["env.kind=line", "credit.top=1"])
    found = [verdict(turn(0)), verdict(turn(1)), elsewhere]
    made = parts(config, [GROUP, other], [SUCCESS], {"sharp": found}, "sharp")
    rows = {name: [row.advantages_T[1:].tolist() for row in rows] for name, rows in made.items()}
    assert rows["as configured"] == [[0, 0.5, 0, 0], *NOTHING, [0.25, 0, 0, 0], *NOTHING]
    assert rows["sharp"] == [[0.25, 0.5, 0, 0], *NOTHING, [0.25, 0, 0, 0], *NOTHING]


def test_a_method_without_a_judge_earns_nothing_as_configured() -> None:
    """Plain GRPO adds nothing to itself."""
    config = load_config(None, ["env.kind=line", "method=grpo"])
    assert added(verdict(turn(1)), config=config)["as configured"] == [[0] * 4, *NOTHING]


def test_what_was_not_measured_earns_nothing() -> None:
    """A judge that fell silent leaves GRPO as it is."""
    silent = Verdict(group=0, outcome="no_proposal:nothing_distinctive")
    assert added(silent)["sharp"] == [[0] * 4, *NOTHING]


def test_rules_are_compared_at_three_weights() -> None:
    """Each selector and variant at 1, 4 and 8; what the config says and GiGPO as they are."""
    found = [(one.name, one.weight) for one in compared(["sharp"], "sharp")]
    assert found[:2] == [("as configured", None), ("gigpo", None)]
    assert [weight for name, weight in found if name == "sharp"] == [1, 4, 8]
    assert len(found) == 2 + 3 * 6
