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
from prover.objective import Aggregation, TrainRow, row_weights
from prover.records import Credit, Estimate, Group, Proposal, Segment

GRPO = "grpo"
GIGPO = "gigpo"
DIVIDED = "advantage.std ddof1"
"""GRPO with advantages that are divided by the group's standard deviation."""
BEST = "best turn"
"""The turn of the success with the largest difference in the first pass; a reference of aim, not a judge."""
EVERY = "every turn"
"""All turns of the success, signed."""
CONFIGURED = "as configured"
CONTINUED = "train_continuations"
"""What training on the continuations of the config's judge adds."""
WEIGHTS = (1.0, 4.0, 8.0, 16.0)
"""Lambdas that are compared."""
_GAINS = CreditRule()
_SIGNED = CreditRule(sign="signed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Something else that can be made of the segments that the config's judge names."""

    name: str
    """What has to be set for it."""
    rule: CreditRule = _GAINS
    centred: bool = False
    shared: bool = False
    first: int | None = None
    """Continuations per state that are looked at; None for all."""
    most: int | None = None
    """Successes of a group up to which it counts; None for all eligible ones."""
    plus: str | None = None
    """A part that is added once, whatever lambda is."""

    @property
    def credits_alike(self) -> bool:
        """Whether it only adds a part, so that its credits are those of the judge's plain rule."""
        return replace(self, name="", plus=None) == Variant(name="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A rule that is compared: GRPO's gradient plus a part of another, so many times."""

    name: str
    weight: float | None
    """lambda; None where the part is a rule as it is."""
    part: str
    plus: str | None = None
    """A part that is added once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All that a diagnosis compares."""

    selectors: tuple[str, ...]
    """Who points."""
    judge: str | None
    """The one of them that variants are made with; None where there is none."""
    continuations: int
    """K, per state."""
    eligible_max: int
    """Successes of a group up to which it is judged."""

    def variants(self) -> list[Variant]:
        """How large, how sure, how many: what can be made of the segments of the config's judge."""
        if self.judge is None:
            return []
        return [
            Variant(name="signed", rule=_SIGNED),
            Variant(name="centred", rule=_SIGNED, centred=True),
            Variant(name="shared", shared=True),
            Variant(name="min_delta .25", rule=CreditRule(min_delta=0.25)),
            Variant(name="min_z 1", rule=CreditRule(min_z=1.0)),
            Variant(name="tau .9", rule=CreditRule(tau=0.9)),
            Variant(name="normalised", rule=CreditRule(std="ddof1"), plus=DIVIDED),
            *(Variant(name=f"continuations {k}", first=k) for k in (1, 2, 4, 8) if k < self.continuations),
            *(Variant(name=f"eligible_max {most}", most=most) for most in (1, 3) if most < self.eligible_max),
            Variant(name="omega 1", plus=GIGPO),
            Variant(name=CONTINUED, plus=CONTINUED),
        ]

    def named(self, variant: Variant) -> str:
        """The part of a variant."""
        return f"{self.judge}, {variant.name}"

    def parts(self) -> list[str]:
        """Names of the gradients of a batch, GRPO's first."""
        own = [self.named(variant) for variant in self.variants() if not variant.credits_alike]
        continued = [] if self.judge is None else [CONTINUED]
        return [GRPO, GIGPO, DIVIDED, *self.selectors, *own, *continued, BEST, EVERY, CONFIGURED]

    def compared(self) -> list[Compared]:
        """All rules but GRPO, in the order in which they are shown; those of the judge last."""
        found = [Compared(name=name, weight=None, part=name) for name in (CONFIGURED, GIGPO, DIVIDED)]
        credits: list[tuple[str, str, str | None]] = [(name, name, None) for name in (*self.selectors, BEST, EVERY)]
        for variant in self.variants():
            part = str(self.judge) if variant.credits_alike else self.named(variant)
            credits.append((self.named(variant), part, variant.plus))
        return found + [
            Compared(name=name, weight=weight, part=part, plus=plus)
            for name, part, plus in credits
            for weight in WEIGHTS
        ]


def parts(
    config: RunConfig,
    rules: Rules,
    groups: Sequence[Group],
    courses: Sequence[Course],
    chosen: int,
    verdicts: Mapping[str, Sequence[Verdict]],
) -> dict[str, list[TrainRow]]:
    """All rows of a batch by part: with GRPO's advantages, and with what each part adds to them at lambda 1.

    Args:
        config: Says what is made ``as configured``.
        rules: What is compared.
        groups: The batch.
        courses: All runs that were surveyed; the chosen success of each eligible group first.
        chosen: How many are chosen ones.
        verdicts: What was measured of each selector's segments.
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
            for row, under in zip((row for row in rows if not row.continued), base, strict=True)
        ]

    made = {
        GRPO: base,
        GIGPO: added([], _GAINS, AdvantageConfig(**METHODS[GIGPO]["advantage"])),
        DIVIDED: added([], _GAINS, grpo.model_copy(update={"std": "ddof1"})),
    }
    made |= {name: added(found, _GAINS) for name, found in verdicts.items()}
    for variant in rules.variants():
        if not variant.credits_alike:
            found = judged(verdicts, rules, variant, groups, courses)
            made[rules.named(variant)] = added(found, variant.rule, centred=variant.centred, shared=variant.shared)
    own = verdicts[rules.judge] if rules.judge is not None else []
    if rules.judge is not None:
        made[CONTINUED] = _continued(added([], _GAINS), own, groups, grpo, config.optim.aggregation)
    made[BEST] = added(best_turns(courses[:chosen]), _GAINS)
    made[EVERY] = added(every_turn(courses[:chosen]), _SIGNED)
    mine = own if config.judged else []
    made[CONFIGURED] = added(
        mine,
        stage.credit_rule(config),
        config.advantage,
        centred=config.credit.centred,
        shared=config.credit.shared,
    )
    if config.verify.train_continuations:
        made[CONFIGURED] = _continued(made[CONFIGURED], mine, groups, config.advantage, config.optim.aggregation)
    return made


def judged(
    verdicts: Mapping[str, Sequence[Verdict]],
    rules: Rules,
    variant: Variant,
    groups: Sequence[Group],
    courses: Sequence[Course],
) -> list[Verdict]:
    """What a variant would have measured of the segments of the config's judge."""
    wins = {group.index: group.n_success for group in groups}
    of_run = {(course.group, course.trajectory): course for course in courses}
    found = []
    for verdict in verdicts[rules.judge] if rules.judge is not None else ():
        if variant.most is not None and wins[verdict.group] > variant.most:
            continue
        if variant.first is not None and verdict.estimate is not None and verdict.proposal is not None:
            segment = verdict.proposal.segment
            fewer = of_run[verdict.group, segment.trajectory].estimate(segment, FIRST, variant.first)
            verdict = replace(verdict, estimate=fewer)
        found.append(verdict)
    return found


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


def _continued(
    rows: Sequence[TrainRow],
    verdicts: Sequence[Verdict],
    groups: Sequence[Group],
    settings: AdvantageConfig,
    aggregation: Aggregation,
) -> list[TrainRow]:
    """What is added to GRPO's rows, and the continuations that are trained on beside them.

    In a run each row then counts less. Here all are scaled up by as much, so that the gradient can be added to GRPO's.
    """
    together = [*rows, *(row for row in training_rows(groups, verdicts, settings) if row.continued)]
    times = float(row_weights(rows, aggregation, horizon=1)[0] / row_weights(together, aggregation, horizon=1)[0])
    return [replace(row, advantages_T=times * row.advantages_T) for row in together]


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
