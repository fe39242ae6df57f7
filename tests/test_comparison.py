"""The paired comparison of two results: differences, p values, and what is refused."""

from dataclasses import replace

import pytest

from prover.comparison import compare, compare_means, differing_rules
from prover.errors import DataError
from prover.evaluate import Episode, Evaluation
from prover.records import Provenance


def episode(task: str, success: bool, reward: float | None = None, **metrics: float) -> Episode:
    """How an episode ended."""
    gained = float(success) if reward is None else reward
    return Episode(task=task, kind="", seed=0, success=success, reward=gained, turns=1, invalid=0, metrics=metrics)


def of(*episodes: Episode, **setting: object) -> Evaluation:
    """An evaluation that consists of these episodes."""
    return Evaluation(split="test", temperature=0.5, episodes=episodes, setting=setting)


def marks(text: str, **setting: object) -> Evaluation:
    """One episode per task; 1 is a success."""
    return of(*(episode(f"t{place}", mark == "1") for place, mark in enumerate(text)), **setting)


def test_comparison_is_paired_by_task() -> None:
    """Each shared task gives one difference of rates; tasks that only one side played are left out."""
    before = of(
        *(episode("a", s) for s in (True, False)),
        *(episode("b", s) for s in (False, False)),
        episode("only before", True),
    )
    after = of(
        *(episode("b", s) for s in (True, False)),
        *(episode("a", s) for s in (True, True)),
        episode("only after", False),
    )
    found = compare(before, after).difference
    # a: 1 - 0.5, b: 0.5 - 0: both differ by a half, so there is no spread.
    assert (found.mean, found.n, found.se) == (0.5, 2, 0.0)


def test_one_task_gives_no_interval() -> None:
    """Many episodes of one task are one piece of evidence."""
    found = compare(of(*[episode("a", False)] * 9), of(*[episode("a", True)] * 9)).difference
    assert (found.mean, found.n, found.se, found.low, found.high) == (1.0, 1, None, None, None)


def test_results_without_common_tasks_are_not_compared() -> None:
    """The message says how many tasks each side has."""
    with pytest.raises(DataError, match="got 1 and 2 tasks none in common"):
        compare(of(episode("a", True)), of(episode("b", True), episode("c", True)))


def test_a_comparison_shows_rates_on_the_common_tasks() -> None:
    """What only one side has played changes neither rate."""
    before = of(episode("a", False), episode("b", True), episode("only before", True))
    after = of(episode("a", True), episode("b", True), episode("only after", False))
    found = compare(before, after)
    assert (found.before, found.after, found.difference.mean) == (0.5, 1.0, 0.5)


def test_results_under_different_labels_are_not_compared() -> None:
    """Figures of a small corpus do not stand beside those of another."""
    one = of(episode("a", True))
    with pytest.raises(DataError, match="on data without a label and one on mini"):
        compare(one, replace(one, provenance=Provenance(manifest={"label": "mini"})))


def test_tasks_played_once_are_compared_by_mcnemar() -> None:
    """Seven gains and one loss: 2 (1 + 8) / 2**8 = .0703, which shows nothing; eight gains and no loss show one."""
    found = compare(marks("0000000100"), marks("1111111000"))
    assert (found.test, found.p, found.verdict) == ("McNemar", 18 / 256, "no difference shown")
    found = compare(marks("0000000000"), marks("1111111100"))
    assert (found.p, found.verdict) == (2 / 256, "higher")
    assert compare(marks("1111111100"), marks("0000000000")).verdict == "lower"


def test_equal_results_show_no_difference() -> None:
    """Without any change the p value is 1."""
    found = compare(marks("1010"), marks("1010"))
    assert (found.difference.mean, found.p, found.verdict) == (0.0, 1.0, "no difference shown")


def test_repeated_tasks_are_compared_by_permutation() -> None:
    """Six tasks gain a half each: of 64 ways to choose signs two give as large a mean."""
    before = of(*(episode(f"t{place}", False) for place in range(6) for _ in range(2)))
    after = of(*(episode(f"t{place}", member == 0) for place in range(6) for member in range(2)))
    found = compare(before, after)
    assert (found.test, found.p, found.verdict) == ("permutation", 2 / 64, "higher")


def test_one_task_shows_nothing() -> None:
    """There is no p value, so no difference is claimed."""
    found = compare(marks("0"), marks("1"))
    assert (found.p, found.verdict) == (None, "no difference shown")


def test_rewards_and_metrics_are_compared_as_well() -> None:
    """Means of tasks, paired; a metric of one side only is left out."""
    before = of(episode("a", False, 0.25, f1=0.5), episode("b", False, 0.5, f1=0.0))
    after = of(episode("a", False, 0.75, f1=0.5, em=1.0), episode("b", False, 0.5, f1=1.0, em=1.0))
    found = compare_means(before, after)
    assert {name: one.difference.mean for name, one in found.items()} == {"reward": 0.25, "f1": 0.5}


SUITE = {"env": "line", "suite": {"name": "walk", "version": 1}, "rules": {"max_turns": 5, "decoding": "free"}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env": "coin"}, "same environment, got line and coin"),
        ({"suite": {"name": "run", "version": 1}}, "same suite, got walk and run"),
        ({"suite": {"name": "walk", "version": 2}}, "same version of suite 'walk', got 1 and 2"),
        ({"rules": {"max_turns": 9}}, "same turn cap, got 5 and 9"),
    ],
)
def test_what_is_not_alike_is_not_compared(change: dict[str, object], message: str) -> None:
    """The message names what differs, with both values."""
    with pytest.raises(DataError, match=message):
        compare(marks("10", **SUITE), marks("10", **(SUITE | change)))


def test_results_without_a_setting_are_compared_with_any() -> None:
    """What an older result does not tell is not held against it."""
    assert compare(marks("10"), marks("10", **SUITE)).difference.mean == 0


def test_other_ways_to_play_are_told() -> None:
    """They are a property of what is compared, not a reason to refuse."""
    other = SUITE | {"rules": {"max_turns": 5, "decoding": "admissible"}}
    assert differing_rules(marks("10", **SUITE), marks("10", **other)) == ["decoding: free, admissible"]


def test_other_data_are_told() -> None:
    """Where both environments describe them, by what differs; equal ones are not mentioned."""
    one, other = (
        replace(marks("10"), provenance=Provenance(manifest={"corpus": name, "splits": 3})) for name in ("a", "b")
    )
    assert differing_rules(one, other) == ["data: other corpus"]
    assert differing_rules(one, marks("10")) == []


def test_an_overridden_suite_is_told() -> None:
    """Its name and version are those of the manifest, and what is in it is not."""
    one, other = (SUITE | {"suite": {"name": "walk", "version": 1, "digest": digest}} for digest in ("a", "b"))
    assert differing_rules(marks("10", **one), marks("10", **one)) == []
    (told,) = differing_rules(marks("10", **one), marks("10", **other))
    assert "overridden on one side" in told


def test_figures_of_other_graders_are_left_out() -> None:
    """What two chat models say does not belong side by side; success does. One model's figures are compared."""
    one, other = ({"model": name, "figures": ["semantic"]} for name in "ab")
    sides = [of(episode("a", True, semantic=s, em=s), episode("b", False, semantic=0.0, em=s)) for s in (0.0, 1.0)]
    before, after = replace(sides[0], setting={"grader": one}), replace(sides[1], setting={"grader": other})
    assert set(compare_means(before, after)) == {"em"}
    assert "semantic cannot be compared" in differing_rules(before, after)[0]
    alike = replace(sides[1], setting={"grader": one})
    assert compare_means(before, alike)["semantic"].difference.mean == 0.5
    assert differing_rules(before, alike) == []


def test_a_figure_without_common_tasks_is_left_out() -> None:
    """It may be missing in some episodes."""
    before = of(episode("a", True, semantic=1.0), episode("b", True))
    after = of(episode("a", True), episode("b", True, semantic=1.0))
    assert compare_means(before, after) == {}
