"""Plain sentences from made-up figures."""

from dataclasses import replace

import pytest

from prover.diagnosis.conclusion import conclusion
from prover.diagnosis.figures import Pivotality, Selector, Summary, Value
from prover.diagnosis.gains import Gain
from prover.estimates import MeanInterval


def mean(value: float, half: float = 0.05, n: int = 40) -> MeanInterval:
    """A mean with an interval of so much on either side."""
    return MeanInterval(mean=value, n=n, se=half / 2, low=value - half, high=value + half)


def selector(name: str, over_random: MeanInterval | None) -> Selector:
    """It names a segment in 60 of 100 groups."""
    return Selector(
        name=name,
        asked=100,
        fired=0 if over_random is None else 60,
        failed=0,
        measured=60,
        positive=30,
        positive_share95=(0.4, 0.6),
        delta=over_random,
        over_random=over_random,
        turn_share=0.1,
    )


def pivotality(difference: MeanInterval) -> Pivotality:
    """Only the difference is told of."""
    return Pivotality(best=mean(0.3), random=mean(0.1), difference=difference, claimed=0.5)


def rule(name: str, weight: float | None, relative: float, same_turns: float, half: float = 0.02) -> Gain:
    """A rule with its gains."""
    return Gain(
        rule=name,
        weight=weight,
        relative=mean(relative, half),
        same_turns=mean(same_turns, half),
        extra_turns=0.2,
    )


FOUND = Summary(
    batches=64,
    groups=512,
    group_size=8,
    continuations=8,
    judge="contrast",
    judged=True,
    success=mean(0.3),
    invalid_share=0.0,
    by_successes={0: 0.5, 1: 0.5},
    eligible=200,
    surveyed=200,
    unmeasured=(),
    values=(Value(place="0", rate=mean(0.3)),),
    pivotality=pivotality(mean(0.25)),
    selectors=(selector("contrast", mean(0.2)), selector("random_segment", mean(0.0)), selector("entropy", mean(0.1))),
    grpo=mean(0.5),
    gains=(rule("as configured", None, 0.08, 0.03), rule("contrast", 1.0, 0.08, 0.03)),
    cpu_seconds=600.0,
)


def test_where_credit_can_pay_all_three_sentences_say_so() -> None:
    """The judge is better than chance, turns are pivotal, and the gain at equal turns is above 0."""
    assert conclusion(FOUND) == (
        "Contrast points at turns worth more than random ones of the same successes: +.20 [+.15, +.25]; it names one "
        "in 60% of the eligible groups.",
        "Pivotality is +.25 [+.20, +.30], above +.15: single turns decide, which is where verified credit can pay.",
        "Per update, credit as configured changes the expected gain of GRPO by +8% [+6, +10], and that of GRPO with as "
        "many turns by +3% [+1, +5]: it can pay.",
    )


@pytest.mark.parametrize(
    ("over_random", "said"),
    [
        (mean(0.02), "Contrast is not shown to point at better turns than chance: +.02 [-.03, +.07]"),
        (mean(-0.2), "Contrast points at turns worth LESS than random ones of the same successes: -.20 [-.25, -.15]"),
        (None, "Contrast named nothing in 100 eligible groups."),
    ],
)
def test_a_poor_judge_is_called_so_and_a_better_one_is_named(over_random: MeanInterval | None, said: str) -> None:
    """Entropy is better than chance and ahead of it in each case."""
    found = replace(FOUND, selectors=(selector("contrast", over_random), *FOUND.selectors[1:]))
    aim = conclusion(found)[0]
    assert aim.startswith(said)
    assert aim.endswith("Better than that: entropy (+.10 [+.05, +.15]).")


def test_without_a_judge_the_others_are_told_of() -> None:
    """A config that measures every turn has no judge of single segments."""
    aim = conclusion(replace(FOUND, judge=None))[0]
    assert aim == (
        "The config names no judge that points at single segments. Better than that: contrast (+.20 [+.15, +.25])."
    )


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (
            mean(0.05),
            "Pivotality is +.05 [+.00, +.10], below +.15: even the best turn of a success is worth little more",
        ),
        (mean(0.13), "Pivotality is +.13 [+.08, +.18], below +.15 though not surely so: expect little"),
        (mean(0.17), "Pivotality is +.17 [+.12, +.22], above +.15 though not surely so: verified credit may pay"),
    ],
)
def test_pivotality_is_held_against_the_threshold(difference: MeanInterval, said: str) -> None:
    """Surely below, around, and the sides of it."""
    assert conclusion(replace(FOUND, pivotality=pivotality(difference)))[1].startswith(said)


@pytest.mark.parametrize(
    ("same_turns", "said"),
    [(0.01, "it is not shown to pay."), (-0.05, "it costs more than it brings.")],
)
def test_the_gain_is_judged_at_equal_turns(same_turns: float, said: str) -> None:
    """More per update is not enough where the continuations cost more than they bring."""
    found = replace(FOUND, gains=(rule("as configured", None, 0.08, same_turns),))
    assert conclusion(found)[2].endswith(said)


def test_the_rule_that_gains_most_is_named() -> None:
    """Lambda 4 gains more at equal turns than what is configured."""
    found = replace(FOUND, gains=(*FOUND.gains, rule("contrast", 4.0, 0.3, 0.2)))
    assert conclusion(found)[2].endswith(
        "it can pay. Of 3 rules contrast, λ 4 gains most at equal turns, +20% [+18, +22]."
    )


def test_a_method_without_a_judge_is_told_what_credit_would_do() -> None:
    """Plain GRPO is configured: the judge's credit at lambda 1 is told of instead."""
    found = replace(FOUND, judged=False, gains=(rule("as configured", None, 0, 0), rule("contrast", 1.0, 0.08, 0.03)))
    assert conclusion(found)[2].startswith("Per update, credit with λ 1 changes the expected gain of GRPO by +8%")


@pytest.mark.parametrize("grpo", [mean(0.04), mean(-0.2)])
def test_noise_is_called_noise(grpo: MeanInterval) -> None:
    """If GRPO's own gain may be 0, relative gains mean nothing."""
    assert conclusion(replace(FOUND, grpo=grpo))[2].startswith("What an update gains cannot be told from noise in 64")


def test_too_few_batches_are_called_too_few() -> None:
    """Two batches tell of turns and not of gains."""
    assert (
        conclusion(replace(FOUND, grpo=None, gains=()))[2] == "What an update gains takes at least 3 batches to tell."
    )


def test_without_eligible_groups_the_way_out_is_told() -> None:
    """Where nothing succeeds there is nothing to credit."""
    nothing = replace(FOUND, eligible=0, surveyed=0, pivotality=None, values=())
    assert conclusion(nothing)[0] == "Nothing could be measured: 0 of 512 groups are eligible."
    lost = replace(nothing, eligible=3, unmeasured=("no snapshot",))
    assert conclusion(lost)[0].endswith("3 of 512 groups are eligible, and of none the states came back (no snapshot).")


def test_successes_without_a_turn_to_name() -> None:
    """They were surveyed and hold no turn that a judge may name."""
    assert conclusion(replace(FOUND, pivotality=None))[1].startswith("No success has a turn that a judge may name")
