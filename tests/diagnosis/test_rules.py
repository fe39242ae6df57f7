"""What each rule adds to GRPO's advantages."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from episodes import TASK, played
from surveyed import course, turn

from prover.attribution import Verdict
from prover.config import RunConfig, load_config
from prover.diagnosis.rules import Rules, Variant, best_turns, every_turn, judged, parts
from prover.diagnosis.survey import Course
from prover.records import Continuation, Estimate, Group, Proposal, Segment, TokenRow, Trajectory, Turn

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


RULES = Rules(selectors=("sharp",), judge="sharp", continuations=8, eligible_max=3)
GROUP = Group(index=0, task=TASK, trajectories=tuple(trajectory(member) for member in range(4)))


def verdict(segment: Segment, found: Course = SUCCESS) -> Verdict:
    """A measured segment."""
    estimate: Estimate = found.estimate(segment)
    proposal = Proposal(segment=segment, reason="", judge="sharp")
    return Verdict(group=0, outcome="measured", proposal=proposal, estimate=estimate)


def made(config: RunConfig, groups: list[Group], verdicts: Sequence[Verdict]) -> dict[str, list[list[float]]]:
    """Advantages of the four tokens of each member, and of each continuation, by part."""
    courses = [replace(SUCCESS, group=group.index) for group in groups]
    found = parts(config, RULES, groups, courses, len(courses), {"sharp": verdicts})
    return {name: [row.advantages_T[1:].tolist() for row in rows] for name, rows in found.items()}


def added(*verdicts: Verdict, config: RunConfig | None = None, group: Group = GROUP) -> dict[str, list[list[float]]]:
    """The same of one group."""
    return made(config or load_config(None, ["env.kind=line"]), [group], verdicts)


NOTHING = [[0.0] * 4] * 3


def test_every_part_is_there_and_in_order() -> None:
    """GRPO comes first; names and rows agree."""
    assert sorted(added(verdict(turn(1)))) == sorted(RULES.parts())
    assert RULES.parts()[0] == "grpo"
    assert replace(RULES, judge=None).parts() == [
        *("grpo", "gigpo", "advantage.std ddof1", "sharp", "best turn", "every turn", "as configured")
    ]


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
    rows = made(config, [GROUP, other], found)
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


def test_thresholds_keep_what_is_large_or_sure() -> None:
    """From 0 of 8 to 2 is 1.3 standard errors, from 2 to 6 is 2.1, from 2 to 3 is half of one.

    The first is a gain with probability 1 - 9/18 x 8/17 x 7/16 = .897: with uniform priors the rate before is the least
    of nine uniform numbers and that after the third of nine others, lower if the lowest three are all of the latter.
    """
    first, second = added(verdict(turn(0))), added(verdict(turn(1)))
    for name, of_first in (("min_delta .25", 0.25), ("min_z 1", 0.25), ("tau .9", 0)):
        assert first[f"sharp, {name}"] == [[of_first, 0, 0, 0], *NOTHING]
        assert second[f"sharp, {name}"] == [[0, 0.5, 0, 0], *NOTHING]
    small = replace(SUCCESS, passes=(course([2, 3, 3, 3], [0, 0, 0, 0]).passes))
    third = added(verdict(turn(0), small))
    assert third["sharp"][0] == [0.125, 0, 0, 0]
    for name in ("min_delta .25", "min_z 1", "tau .9"):
        assert third[f"sharp, {name}"] == [[0] * 4, *NOTHING]


def test_credit_is_divided_as_the_advantages_are() -> None:
    """One success of four has a deviation of 1/2: a gain of 1/2 counts 1, advantages of 3/4 and -1/4 twice as much."""
    found = added(verdict(turn(1)))
    assert found["sharp, normalised"][0] == pytest.approx([0, 1, 0, 0], rel=1e-3)
    assert found["advantage.std ddof1"][0] == pytest.approx([0.75] * 4, rel=1e-3)
    assert found["advantage.std ddof1"][1] == pytest.approx([-0.25] * 4, rel=1e-3)


def test_fewer_continuations_are_the_first_ones() -> None:
    """Successes come first: before turn 1 there is 1 and after it are 6, so that the first of both succeeded."""
    few = course([1, 1, 6, 4], [0, 0, 0, 0])
    found = parts(load_config(None, ["env.kind=line"]), RULES, [GROUP], [few], 1, {"sharp": [verdict(turn(1), few)]})
    at = {name: rows[0].advantages_T[2] for name, rows in found.items()}
    assert [at[f"sharp, continuations {k}"] for k in (1, 2, 4)] == [0, 0.5, 0.75]
    assert at["sharp"] == 0.625


def test_groups_with_more_successes_can_be_left_out() -> None:
    """Where up to three are eligible, one is a variant; a group of two successes earns nothing in it."""
    second = replace(GROUP.trajectories[1], success=True)
    group = replace(GROUP, trajectories=(GROUP.trajectories[0], second, *GROUP.trajectories[2:]))
    assert added(verdict(turn(1)))["sharp, eligible_max 1"] == [[0, 0.5, 0, 0], *NOTHING]
    assert added(verdict(turn(1)), group=group)["sharp, eligible_max 1"] == [[0] * 4, *NOTHING]
    wide = [one.name for one in replace(RULES, eligible_max=7).variants()]
    assert {"eligible_max 1", "eligible_max 3"} <= {*wide}


def test_what_a_variant_would_have_measured() -> None:
    """Two continuations of each state instead of eight; a verdict without an estimate stays as it is."""
    silent = Verdict(group=0, outcome="no_proposal:nothing_distinctive")
    few = Variant(name="few", first=2)
    found = judged({"sharp": [verdict(turn(1)), silent]}, RULES, few, [GROUP], [SUCCESS])
    assert found[0].estimate is not None
    assert (found[0].estimate.before.n, found[0].estimate.after.n) == (2, 2)
    assert found[1] == silent
    assert judged({"sharp": []}, replace(RULES, judge=None), few, [GROUP], [SUCCESS]) == []


def test_continuations_are_trained_on() -> None:
    """Two from one state, of one and three tokens, one successful: 1/2 and -1/2, at the scale of the rollouts' tokens.

    The rollouts have 16 tokens and all together 20: a weight of 1/20 times 20/16 is the 1/16 of the rollouts alone.
    """
    played = tuple(
        Continuation(success=won, reward=float(won), turns=length, tokens=length, rows=(continued(length),))
        for won, length in ((True, 1), (False, 3))
    )
    alike = (Continuation(success=True, reward=1.0, turns=1, tokens=1, rows=(continued(1),)),) * 2
    found = verdict(turn(1))
    assert found.estimate is not None
    found = replace(found, estimate=replace(found.estimate, played=(played, alike)))
    rows = added(found)["train_continuations"]
    assert rows[:4] == [[0] * 4, *NOTHING]
    assert rows[4:] == [pytest.approx([0, 0, 0, 0.625]), pytest.approx([0, -0.625, -0.625, -0.625])]
    assert added(found)["sharp"] == [[0, 0.5, 0, 0], *NOTHING]
    assert added(found)["as configured"] == [[0, 0.5, 0, 0], *NOTHING]
    settings = load_config(None, ["env.kind=line", "verify.train_continuations=true"])
    assert added(found, config=settings)["as configured"] == [[0, 0.625, 0, 0], *NOTHING, *rows[4:]]


def continued(length: int) -> TokenRow:
    """A row whose last tokens were sampled."""
    row = GROUP.trajectories[0].rows[0]
    return replace(row, loss_mask=np.arange(5) >= 5 - length)


def test_rules_are_compared_at_four_weights() -> None:
    """Selectors and variants at 1, 4, 8 and 16; what the config says, GiGPO and divided advantages as they are."""
    found = RULES.compared()
    assert [(one.name, one.weight) for one in found[:3]] == [
        *(("as configured", None), ("gigpo", None), ("advantage.std ddof1", None))
    ]
    assert [one.weight for one in found if one.name == "sharp"] == [1, 4, 8, 16]
    assert len(found) == 3 + 4 * (3 + len(RULES.variants()))
    assert {one.part for one in found} <= {*RULES.parts()}


def test_what_only_adds_a_part_has_the_judges_credits() -> None:
    """GiGPO and continuations come on top of the plain rule; divided credit on top of divided advantages."""
    plus = {one.name: (one.part, one.plus) for one in RULES.compared() if one.plus is not None}
    assert plus == {
        "sharp, normalised": ("sharp, normalised", "advantage.std ddof1"),
        "sharp, omega 1": ("sharp", "gigpo"),
        "sharp, train_continuations": ("sharp", "train_continuations"),
    }
