"""What is printed of a diagnosis."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from prover.diagnosis.figures import Pivotality, Selector, Summary, Value
from prover.diagnosis.gains import Gain
from prover.diagnosis.table import print_summary
from prover.estimates import MeanInterval


def mean(value: float, half: float) -> MeanInterval:
    """A mean with an interval of so much on either side."""
    return MeanInterval(mean=value, n=9, se=half / 2, low=value - half, high=value + half)


GAINS = tuple(
    Gain(
        rule=rule,
        weight=weight,
        relative=mean(0.01 * (weight or 7), 1.02),
        same_turns=mean(-0.13, 0.5),
        extra_turns=0.25,
    )
    for rule, weights in (
        ("as configured", (None,)),
        ("advantage.std ddof1", (1.0, 4.0, 8.0, 16.0)),
        ("contrast, train_continuations", (1.0, 4.0, 8.0, 16.0)),
    )
    for weight in weights
)
FOUND = Summary(
    batches=8,
    groups=64,
    group_size=8,
    continuations=4,
    judge="contrast",
    judged=True,
    success=mean(0.25, 0.05),
    invalid_share=0.125,
    by_successes={0: 0.5, 2: 0.25, 8: 0.25},
    eligible=16,
    surveyed=16,
    unmeasured=(),
    values=(Value(place="0", rate=mean(0.02, 0.05)), Value(place="0.5", rate=mean(0.5, 0.1))),
    pivotality=Pivotality(best=mean(0.3, 0.1), random=mean(0.1, 0.05), difference=mean(0.2, 0.1), claimed=0.45),
    selectors=(
        Selector(
            name="contrast",
            asked=16,
            fired=12,
            failed=0,
            measured=12,
            positive=6,
            positive_share95=(0.25, 0.75),
            delta=mean(0.22, 0.1),
            over_random=mean(0.12, 0.1),
            turn_share=0.2,
        ),
        Selector(
            name="mute",
            asked=16,
            fired=0,
            failed=3,
            measured=0,
            positive=0,
            positive_share95=None,
            delta=None,
            over_random=None,
            turn_share=0.0,
        ),
    ),
    grpo=mean(0.4, 0.1),
    gains=GAINS,
    cpu_seconds=83.0,
)


def shown(capsys: pytest.CaptureFixture[str], found: Summary = FOUND) -> list[str]:
    """Lines of the tables and notes."""
    print_summary(found, Path("out"), Console(width=80))
    return capsys.readouterr().out.splitlines()


def test_everything_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In 80 columns nothing is cut off; shares are in %, differences in rates."""
    lines = shown(capsys)
    assert not any("…" in line for line in lines)
    words = [line.split() for line in lines]
    assert ["0", "2", "[0,", "7]"] in words
    assert ["0.5", "50", "[40,", "60]"] in words
    assert ["pivotality", "+.20", "[+.10,", "+.30]"] in words
    assert ["contrast", "75", "50", "[25,", "75]", "+.22", "+.12", "[+.02,", "+.22]", "20"] in words
    assert ["mute", "0", "n/a", "n/a", "0"] in words
    assert ["as", "configured", "+7", "±102", "-13", "±50", "25"] in words
    cells = ["+1", "±102", "+4", "±102", "+8", "±102", "+16", "±102", "-13", "±50", "25"]
    assert ["advantage.std", "ddof1", *cells] in words
    title = words.index(["The", "same,", "segments", "of", "contrast,", "with", "other", "settings"])
    assert words.index(["train_continuations", *cells]) > title
    assert lines[0] == "8 batches, 64 groups of 8, 83 CPU-seconds, K = 4"
    assert lines[2] == "groups by successes in %: 0: 50, 2: 25, 8: 25; eligible 25 % (16 surveyed)"


def test_the_conclusion_comes_last(capsys: pytest.CaptureFixture[str]) -> None:
    """After where the records are."""
    lines = shown(capsys)
    assert lines[-5] == "Every batch: out/batches.jsonl; these figures: out/summary.json"
    assert lines[-3].startswith("Contrast points at turns worth more")
    assert lines[-1].startswith("Per update, credit as configured")


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Judges that failed, successes that could not be surveyed; without gains there is no table of them."""
    text = "\n".join(shown(capsys, replace(FOUND, gains=(), unmeasured=("no snapshot", "another"))))
    assert "Judges that failed: mute in 3 groups" in text
    assert "2 successes could not be surveyed, for one: no snapshot" in text
    assert "First-order" not in text
