"""What records say: all expected values are worked out by hand."""

import pytest
from study_records import run

from prover.study.summary import ALL_STARTS, area, contrasts, rows


def test_area_counts_each_update_with_its_turns() -> None:
    """10 turns at .2 and 5 of the 10 at .4 are (2 + 2) / 15; a limit beyond the end is the end."""
    assert area([0.2, 0.4], [10, 10], limit=15) == pytest.approx(4 / 15)
    assert area([0.2, 0.4], [10, 30], limit=100) == pytest.approx((2 + 12) / 40)


def test_rows_are_means_over_seeds() -> None:
    """Success .3 and .5: mean .4, half interval 12.706 x .1 (t with one degree of freedom, error .1)."""
    (row,) = rows([run("grpo", 0, 0.3), run("grpo", 1, 0.5)])
    assert row.after["1"].mean == pytest.approx(0.4)
    assert row.after["1"].high == pytest.approx(0.4 + 12.7062 * 0.1, abs=1e-4)
    assert row.area.mean == pytest.approx(0.3)
    assert (row.seeds, row.turns, row.tokens, row.cpu) == (2, 20, 80, 3)


def test_differences_are_paired_by_seed() -> None:
    """Two seeds ten points apart, each gaining two and four points: 3 ± 12.7 x 1, not ± 12.7 x 7."""
    records = [run("grpo", 0, 0.30), run("grpo", 1, 0.40), run("more", 1, 0.44), run("more", 0, 0.32)]
    (found,) = contrasts(records, ["grpo"])
    assert (found.method, found.against) == ("more", "grpo")
    assert found.after["1"].mean == pytest.approx(0.03)
    assert found.after["1"].se == pytest.approx(0.01)


def test_a_run_without_its_partner_does_not_count() -> None:
    """Seed 2 of one method alone says nothing about a difference."""
    records = [run("grpo", 0, 0.3), run("more", 0, 0.4), run("more", 2, 0.9)]
    (found,) = contrasts(records, ["grpo"])
    assert (found.after["1"].mean, found.after["1"].n) == (pytest.approx(0.1), 1)


def test_two_references_are_compared_once() -> None:
    """The difference of the second to the first is not shown again the other way round."""
    records = [run("grpo", 0, 0.3), run("budget", 0, 0.4), run("more", 0, 0.5)]
    pairs = [(found.method, found.against) for found in contrasts(records, ["grpo", "budget"])]
    assert pairs == [("budget", "grpo"), ("more", "grpo"), ("more", "budget")]


def test_equal_turns_cut_the_dearer_run() -> None:
    """The method takes 20 turns an update and the other 10: of its updates only the first lies within 20 turns."""
    records = [run("grpo", 0, 0.3, success=(0.2, 0.4)), run("more", 0, 0.3, success=(0.2, 0.8), turns=(20, 20))]
    (found,) = contrasts(records, ["grpo"])
    assert found.area.mean == pytest.approx(0.5 - 0.3)
    assert found.area_at_equal_turns.mean == pytest.approx(0.2 - 0.3)
    assert found.turns == 2


def test_starts_are_shown_apart_and_together() -> None:
    """A gain of ten points from one start and none from the other are five together."""
    records = [
        run("grpo", 0, 0.3),
        run("more", 0, 0.4),
        run("grpo", 0, 0.5, start="two"),
        run("more", 0, 0.5, start="two"),
    ]
    found = {row.start: row.after["1"].mean for row in contrasts(records, ["grpo"])}
    assert found == {"one": pytest.approx(0.1), "two": pytest.approx(0.0), ALL_STARTS: pytest.approx(0.05)}


def test_seeds_are_what_is_independent() -> None:
    """Gains 0 and .2 in seed 0, .1 and .3 in seed 1: means .1 and .2, error .05; seed 2 lacks a start."""
    gains = {("one", 0): 0.0, ("two", 0): 0.2, ("one", 1): 0.1, ("two", 1): 0.3, ("one", 2): 0.9}
    records = [
        record
        for (start, seed), gain in gains.items()
        for record in (run("grpo", seed, 0.1, start=start), run("more", seed, 0.1 + gain, start=start))
    ]
    together = next(found for found in contrasts(records, ["grpo"]) if found.start == ALL_STARTS).after["1"]
    assert (together.mean, together.se, together.n) == (pytest.approx(0.15), pytest.approx(0.05), 2)
