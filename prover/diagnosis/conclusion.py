"""What the figures mean, in plain sentences."""

from prover.diagnosis.figures import Selector, Summary
from prover.diagnosis.gains import LEAST, Gain
from prover.diagnosis.rules import CONFIGURED
from prover.estimates import MeanInterval

PIVOTAL = 0.15
"""Pivotality below which a single turn is hardly worth more than any other: measured where credit did not pay."""


def conclusion(summary: Summary) -> tuple[str, ...]:
    """Whether the judge points at turns that matter, whether there are such turns, and whether credit would pay."""
    if summary.surveyed == 0:
        return (
            f"Nothing could be measured: {summary.eligible} of {summary.groups} groups are eligible"
            + (f", and of none the states came back ({summary.unmeasured[0]})." if summary.unmeasured else "."),
            "Verified credit needs groups in which some members succeed and some fail: take a stronger policy or other "
            "tasks.",
        )
    return (_aim(summary), _regime(summary), _gain(summary))


def _aim(summary: Summary) -> str:
    judge = summary.selector(summary.judge)
    others = [one for one in summary.selectors if one.name not in (summary.judge, "random_segment")]
    ahead = [one for one in others if _beats(one, judge)]
    best = max(ahead, key=lambda one: 0.0 if one.over_random is None else one.over_random.mean, default=None)
    tip = f" Better than that: {best.name} ({_delta(best.over_random)})." if best and best.over_random else ""
    if judge is None:
        return "The config names no judge that points at single segments." + tip
    if judge.over_random is None:
        return f"{judge.name.capitalize()} named nothing in {judge.asked} eligible groups.{tip}"
    low, high = judge.over_random.low, judge.over_random.high
    fires = f"it names one in {_percent(judge.fired / max(judge.asked, 1))} of the eligible groups"
    if low is not None and low > 0:
        what = "points at turns worth more than random ones of the same successes"
    elif high is not None and high < 0:
        what = "points at turns worth LESS than random ones of the same successes"
    else:
        what = "is not shown to point at better turns than chance"
    return f"{judge.name.capitalize()} {what}: {_delta(judge.over_random)}; {fires}.{tip}"


def _beats(one: Selector, judge: Selector | None) -> bool:
    """Whether a selector beats chance, and is ahead of the judge."""
    mine, other = one.over_random, None if judge is None else judge.over_random
    return mine is not None and mine.low is not None and mine.low > 0 and (other is None or mine.mean > other.mean)


def _regime(summary: Summary) -> str:
    if summary.pivotality is None:
        return "No success has a turn that a judge may name, so there is nothing to credit."
    found = summary.pivotality.difference
    told = f"Pivotality is {_delta(found)}"
    if found.high is not None and found.high < PIVOTAL:
        return (
            f"{told}, below +.15: even the best turn of a success is worth little more than any other; expect little."
        )
    if found.low is not None and found.low > PIVOTAL:
        return f"{told}, above +.15: single turns decide, which is where verified credit can pay."
    if found.mean < PIVOTAL:
        return f"{told}, below +.15 though not surely so: expect little, or measure more."
    return f"{told}, above +.15 though not surely so: verified credit may pay, measure more."


def _gain(summary: Summary) -> str:
    grpo = summary.grpo
    if grpo is None:
        return f"What an update gains takes at least {LEAST} batches to tell."
    wanted = (CONFIGURED, None) if summary.judged else (summary.judge, 1.0)
    rule = next((one for one in summary.gains if (one.rule, one.weight) == wanted), None)
    if rule is None:
        return "The config has no credit whose gain could be told."
    if grpo.low is None or grpo.low <= 0 or rule.relative is None or rule.same_turns is None:
        return (
            f"What an update gains cannot be told from noise in {summary.batches} batches, GRPO's own gain included: "
            "take more batches."
        )
    how = "as configured" if summary.judged else "with λ 1"
    most = max(summary.gains, key=lambda one: -1.0 if one.same_turns is None else one.same_turns.mean)
    tip = ""
    if most is not rule and most.same_turns is not None and most.same_turns.mean > rule.same_turns.mean:
        tip = f" Of {len(summary.gains)} rules {named(most)} gains most at equal turns, {gain(most.same_turns)}."
    return (
        f"Per update, credit {how} changes the expected gain of GRPO by {gain(rule.relative)}, and that of GRPO with "
        f"as many turns by {gain(rule.same_turns)}: {_judgement(rule.same_turns)}.{tip}"
    )


def _judgement(mean: MeanInterval) -> str:
    if mean.low is not None and mean.low > 0:
        return "it can pay"
    if mean.high is not None and mean.high < 0:
        return "it costs more than it brings"
    return "it is not shown to pay"


def _delta(mean: MeanInterval | None) -> str:
    return "n/a" if mean is None else delta(mean)


def delta(mean: MeanInterval) -> str:
    """A difference of success rates with its interval and number of tasks."""
    if mean.low is None or mean.high is None:
        return f"{signed(mean.mean)} (n={mean.n})"
    return f"{signed(mean.mean)} [{signed(mean.low)}, {signed(mean.high)}]"


def signed(value: float) -> str:
    """A difference of rates without its 0."""
    return f"{value:+.2f}".replace("0.", ".", 1)


def gain(mean: MeanInterval) -> str:
    """A relative gain in % with its interval."""
    half = "" if mean.low is None or mean.high is None else f" [{100 * mean.low:+.0f}, {100 * mean.high:+.0f}]"
    return f"{100 * mean.mean:+.0f}%{half}"


def named(rule: Gain) -> str:
    """A rule with its lambda."""
    return rule.rule if rule.weight is None else f"{rule.rule}, λ {rule.weight:g}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
