"""What a person sees of a run."""

from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from prover.display import Display, print_result
from prover.evaluate import Episode, Evaluation
from prover.folder import RunFolder
from prover.records import Provenance
from prover.train import TrainResult


def update(number: int, **changes: Any) -> dict[str, Any]:
    """Metrics of an update as the loop reports them."""
    return {
        "update": number,
        "success": 0.5,
        "contrast_groups": 6,
        "groups": 8,
        "proposals": 3,
        "measured": 2,
        "positive": 1,
        "mean_delta": 0.25,
        "outcomes": {"credited": 1, "measured": 1},
        "tokens": 900,
        "verifier_tokens": 100,
        "wall_seconds": {"rollout": 1.5, "update": 0.5},
        **changes,
    }


def evaluation(successes: int, n: int, **changes: Any) -> Evaluation:
    """An evaluation in which the first tasks are solved."""
    return Evaluation(
        split="test",
        temperature=1.0,
        episodes=tuple(
            Episode(task=f"t{index}", kind="", seed=0, success=index < successes, reward=0.0, turns=3, invalid=0)
            for index in range(n)
        ),
        **changes,
    )


def test_the_progress_line_shows_the_figures_of_the_run() -> None:
    """Success and contrast over recent updates, proposals, positive share, mean delta and tokens per second."""
    console = Console(file=StringIO(), width=200)
    with Display(5, console=console) as display:
        for number in range(5):
            display.watch("update", update(number, success=0.4 + 0.05 * number))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    # Mean of .4 .45 .5 .55 .6; 6 of 8 groups; 5 x 3 proposals; 5 of 10 positive; 5000 tokens in 10 seconds.
    figures = "success 50% | contrast 75% | proposals 15 | positive 50% | delta +0.25 | 500 tokens/s"
    assert f"update 5/5: {figures}" in text


def test_a_run_without_measurements_shows_no_deltas() -> None:
    """Plain GRPO has nothing to say about segments."""
    console = Console(file=StringIO(), width=200)
    with Display(5, console=console) as display:
        for number in range(5):
            display.watch("update", update(number, proposals=0, measured=0, positive=0, mean_delta=None))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    assert "contrast 75% | 500 tokens/s" in text


def test_the_result_has_rates_intervals_and_the_paired_difference(tmp_path: Path) -> None:
    """67 of 134 before and 70 after: Wilson intervals, n, and +2.2 points with the interval of three changed tasks."""
    console = Console(file=StringIO(), width=200)
    result = TrainResult(
        folder=RunFolder(tmp_path),
        method="prover",
        updates=40,
        before=(evaluation(67, 134),),
        after=(evaluation(70, 134),),
    )
    print_result(result, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    assert "50.0 [41.7, 58.3]" in text
    assert "52.2 [43.8, 60.5]" in text
    # Three of 134 differences are 1: mean .02239, sd .14850, standard error .01283, t(133) 1.978.
    assert "+2.2 [-0.3, +4.8]" in text
    assert str(tmp_path) in text


def test_the_result_says_how_much_can_be_had(tmp_path: Path) -> None:
    """Ceiling and label of the split stand beside the table."""
    console = Console(file=StringIO(), width=200)
    measured = evaluation(1, 2, provenance=Provenance(ceiling=0.934, manifest={"label": "mini"}))
    result = TrainResult(folder=RunFolder(tmp_path), method="prover", updates=1, before=(measured,), after=(measured,))
    print_result(result, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    assert "(test, mini)" in text
    assert "These tasks allow 93.4 % at most." in text


def test_the_result_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """Nothing of the table is cut off."""
    console = Console(file=StringIO(), width=80)
    print_result(
        TrainResult(
            folder=RunFolder(tmp_path),
            method="prover",
            updates=40,
            before=(evaluation(167, 600),),
            after=(evaluation(270, 600),),
        ),
        console,
    )
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    assert "…" not in text
    assert "600" in text


def test_failures_of_judge_and_verifier_are_shown() -> None:
    """A judge that is down is not mistaken for one that has nothing to say."""
    console = Console(file=StringIO(), width=200)
    with Display(5, console=console) as display:
        for number in range(5):
            display.watch("update", update(number, outcomes={"judge_failed": 2, "all_failed": 1}))
    assert "FAILED 10" in console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above


def test_a_terminal_gets_a_bar_with_the_figures_below() -> None:
    """On a terminal the figures are live; nothing is printed per update."""
    console = Console(file=StringIO(), width=80, force_terminal=True)
    with Display(2, console=console) as display:
        display.watch("update", update(0))
        display.watch("update", update(1))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    assert "2/2" in text
    assert "delta +0.25" in text
    assert "update 2/2:" not in text
