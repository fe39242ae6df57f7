"""The report of a study."""

from dataclasses import replace

from study_records import run

from prover.study.table import markdown, report


def test_columns_line_up() -> None:
    """Cells are padded to the widest of their column."""
    assert markdown(["a", "bc"], [["xyz", "1"]]) == "| a   | bc |\n| --- | -- |\n| xyz | 1  |"


def test_a_certain_difference_is_bold() -> None:
    """Gains of 9, 10, 10, 10 and 11 points: error .316, +10 ± 2.776 x .316; of two pairs none is called certain."""
    base = [run("grpo", seed, 0.30) for seed in range(5)]
    five = [run("more", seed, 0.40 + gain) for seed, gain in enumerate((-0.01, 0, 0, 0, 0.01))]
    two = [run("less", 0, 0.40), run("less", 1, 0.41)]
    text = report([*base, *five, *two], ["grpo"])
    assert "**+10.0 ±0.9**" in text
    assert "| +10.5 ±6.4 " in text


def test_the_start_is_shown_once_and_costs_are_means() -> None:
    """20 turns are .0 thousand; the start was measured by one run of four."""
    runs = [replace(run("grpo", 0, 0.3), before={"1": 0.25}), run("grpo", 1, 0.5)]
    text = report(runs, ["grpo"])
    assert text.count("before training") == 1
    assert "| one   | before training |       | 25.0" in text
    assert "40.0 ±127.1" in text


def test_worth_of_segments_is_weighted_by_their_number() -> None:
    """One run measured 1 segment worth 1, the other 3 worth 0: .25 on average."""
    runs = [
        replace(run("more", seed, 0.3), measured=n, credited=1, mean_delta=d)
        for seed, n, d in ((0, 1, 1.0), (1, 3, 0.0))
    ]
    assert "| one   | more   | 2        | 1        | +0.25      |" in report(runs, ["more"])


def test_what_is_asked_comes_first() -> None:
    """The plan's own sentence, and none where it has none."""
    assert report([run("grpo", 0, 0.3)], ["grpo"], about="does it pay?").startswith("does it pay?\n\nSuccess in %")
    assert report([run("grpo", 0, 0.3)], ["grpo"]).startswith("Success in %")
