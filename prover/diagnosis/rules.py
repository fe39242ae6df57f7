"""Which rules of credit are compared, and what each adds to GRPO's advantages.

Where every ratio is 1 the gradient is linear in the advantages. So a rule is GRPO's gradient plus lambda times that of
its credits alone, and one gradient serves every lambda.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prover import stage
from prover.attribution import Verdict
from prover.batch import training_rows
from prover.config import AdvantageConfig, RunConfig
from prover.credit import CreditRule
from prover.diagnosis.survey import FIRST, SECOND, Course
from prover.methods import METHODS
from prover.objective import TrainRow
from prover.records import Credit, Estimate, Group, Proposal, Segment

GRPO = "grpo"
GIGPO = "gigpo"
BEST = "best turn"
"""The turn of the success with the largest difference in the first pass; a reference of aim, not a judge."""
EVERY = "every turn"
"""All turns of the success, signed."""
CONFIGURED = "as configured"
WEIGHTS = (1.0, 4.0, 8.0)
"""Lambdas that are compared."""
_VARIANTS = ("signed", "centred", "shared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A rule that is compared: GRPO's gradient plus a part of another, so many times."""

    name: str
    weight: float | None
    """lambda; None where the part is a rule as it is."""
    part: str


def part_names(selectors: Sequence[str], judge: str | None) -> list[str]:
    """Names of the gradients of a batch, GRPO's first.

    Args:
        selectors: Who points.
        judge: The one of them that variants of the rule are made with; None where there is none.
    """
    variants = [] if judge is None else [f"{judge}, {variant}" for variant in _VARIANTS]
    return [GRPO, GIGPO, *selectors, *variants, BEST, EVERY, CONFIGURED]


def compared(selectors: Sequence[str], judge: str | None) -> list[Compared]:
    """All rules but GRPO, in the order in which they are shown."""
    _, gigpo, *credits, configured = part_names(selectors, judge)
    whole = [Compared(name=name, weight=None, part=name) for name in (configured, gigpo)]
    return whole + [Compared(name=name, weight=weight, part=name) for name in credits for weight in WEIGHTS]


def parts(
    config: RunConfig,
    groups: Sequence[Group],
    courses: Sequence[Course],
    verdicts: Mapping[str, Sequence[Verdict]],
    judge: str | None,
) -> dict[str, list[TrainRow]]:
    """All rows of a batch by part: with GRPO's advantages, and with what each part adds to them at lambda 1.

    Args:
        config: Says what is made ``as configured``.
        groups: The batch.
        courses: The chosen success of each eligible group that was surveyed.
        verdicts: What was measured of each selector's segments.
        judge: As in ``part_names``.
    """
    grpo = AdvantageConfig(**METHODS[GRPO]["advantage"])
    base = training_rows(groups, [], grpo)

    def added(
        found: Sequence[Verdict],
        rule: CreditRule,
        settings: AdvantageConfig = grpo,
        *,
        centred: bool = False,
        shared: bool = False,
    ) -> list[TrainRow]:
        earned = _credited(found, rule, groups)
        rows = training_rows(groups, earned, settings, centred=centred, shared=shared)
        return [
            replace(row, advantages_T=row.advantages_T - under.advantages_T)
            for row, under in zip(rows, base, strict=True)
        ]

    gains, signed = CreditRule(), CreditRule(sign="signed")
    made = {GRPO: base, GIGPO: added([], gains, AdvantageConfig(**METHODS[GIGPO]["advantage"]))}
    made |= {name: added(found, gains) for name, found in verdicts.items()}
    if judge is not None:
        found = verdicts[judge]
        variants = (added(found, signed), added(found, signed, centred=True), added(found, gains, shared=True))
        made |= {f"{judge}, {name}": rows for name, rows in zip(_VARIANTS, variants, strict=True)}
    made[BEST] = added(best_turns(courses), gains)
    made[EVERY] = added(every_turn(courses), signed)
    mine = verdicts[judge] if judge is not None and config.judged else []
    made[CONFIGURED] = added(
        mine,
        stage.credit_rule(config),
        config.advantage,
        centred=config.credit.centred,
        shared=config.credit.shared,
    )
    return made


def best_turns(courses: Sequence[Course]) -> list[Verdict]:
    """The best turn of each run by the first pass, measured by the second."""
    chosen = [(course, course.best()) for course in courses]
    return [_measured(course, segment, BEST, SECOND) for course, segment in chosen if segment is not None]


def every_turn(courses: Sequence[Course]) -> list[Verdict]:
    """Each turn of each run, the last one and idle ones as well."""
    return [
        _measured(course, Segment(trajectory=course.trajectory, start=turn, end=turn), EVERY, FIRST)
        for course in courses
        for turn in range(course.n_turns)
    ]


def _measured(course: Course, segment: Segment, name: str, which: int) -> Verdict:
    proposal = Proposal(segment=segment, reason="", judge=name)
    estimate = course.estimate(segment, which)
    return Verdict(group=course.group, outcome="measured", proposal=proposal, estimate=estimate)


def _credited(verdicts: Sequence[Verdict], rule: CreditRule, groups: Sequence[Group]) -> list[Verdict]:
    """The measured ones with what a rule makes of them."""
    rewards = {group.index: group.rewards_G for group in groups}
    of_group: dict[int, list[tuple[Verdict, Segment, Estimate]]] = {}
    for verdict in verdicts:
        if verdict.estimate is not None and verdict.proposal is not None:
            measured = (verdict, verdict.proposal.segment, verdict.estimate)
            of_group.setdefault(verdict.group, []).append(measured)
    return [
        replace(verdict, credit=Credit(segment=segment, amount=amount) if amount else None)
        for index, found in of_group.items()
        for (verdict, segment, _), amount in zip(
            found, rule.amounts([estimate for *_, estimate in found], rewards[index]), strict=True
        )
    ]
