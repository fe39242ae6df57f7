"""What is shown of results: tables, differences, bars."""

from dataclasses import replace
from io import StringIO
from typing import Any

from rich.console import Console

from prover.bench.report import by_kind, comparison, print_all, progress, summary
from prover.bench.results import gathered
from prover.evaluate import Episode, Evaluation
from prover.records import Provenance


def result(marks: str, *, kinds: str = "", failures: int = 0, rewards: float = 0.0, **setting: Any) -> Evaluation:
    """One episode per task; 1 is a success, and another episode earns ``rewards``."""
    episodes = tuple(
        Episode(
            task=f"t{place}",
            kind=kinds[place : place + 1],
            seed=0,
            success=mark == "1",
            reward=1.0 if mark == "1" else rewards,
            turns=1,
            invalid=0,
        )
        for place, mark in enumerate(marks)
    )
    return Evaluation(
        split="test",
        temperature=0.5,
        episodes=episodes,
        failures=failures,
        provenance=Provenance(ceiling=0.96, manifest={"label": "mini"}),
        setting={"suite": {"name": "shop"}, "policy": {"name": "small", "kind": "hf"}, "seconds": 12.4} | setting,
    )


def shown(parts: Any) -> str:
    """Tables as text."""
    out = StringIO()
    print_all(parts, Console(file=out, width=140))
    return out.getvalue()


def test_a_result_is_shown_with_all_that_belongs_to_it() -> None:
    """Rate and interval, ceiling, reward, failures, label, a leak, n and seconds. Wilson for 1 of 2: 9.5 to 90.5."""
    found = result("10", rewards=0.25, failures=3, leak="split 'test' shares 2 ids")
    text = shown(summary(gathered([found])))
    row = next(line for line in text.splitlines() if "shop" in line)
    assert row.split()[:6] == ["shop", "small", "0.5", "50.0", "[9.5,", "90.5]"]
    assert row.split()[-3:] == ["2", "2", "12"]
    for part in ("ceiling 96.0", "reward 0.625", "FAILED 3", "mini", "LEAKED SPLIT: split 'test' shares 2 ids"):
        assert part in text


def test_seeds_show_what_several_tries_give() -> None:
    """Two seeds of two tasks: one task is solved once, so pass@2 is 1/2 and no task is solved both times."""
    text = shown(summary(gathered([result("10", seed=0), result("00", seed=1)])))
    assert "pass@2 0.500" in text
    assert "all of 2 0.000" in text


def test_task_types_have_a_table_of_their_own() -> None:
    """Where there are several."""
    assert "task type" not in shown(summary(gathered([result("10", kinds="aa")])))
    text = shown(summary(gathered([result("100", kinds="aab")])))
    assert "shop small T=0.5" in text
    assert [line.split()[0:2] for line in text.splitlines() if line.split()[:1] in (["a"], ["b"])] == [
        ["a", "50.0"],
        ["b", "0.0"],
    ]


def test_differences_are_named_or_not_shown() -> None:
    """Two gains of eight tasks, p = .5, show nothing; eight gains do, p = 2/256. What was played otherwise is told."""
    weak = shown(comparison([(result("00000000"), result("11000000"))]))
    assert "no difference shown" in weak
    assert "0.500" in weak
    strong = shown(
        comparison([(result("00000000", rules={"decoding": "free"}), result("11111111", rules={"decoding": "x"}))])
    )
    assert "+100.0" in strong
    # All eight differ alike, which tells no spread.
    assert "[+100.0" not in strong
    assert "higher" in strong
    assert "shop: the sides played differently (decoding: free, x)." in strong


def test_tasks_of_one_side_only_are_told() -> None:
    """Of four tasks that were played at all, two were played on both sides."""
    whole, part = result("1010"), result("10")
    assert "shop: 2 of 4 tasks have results on one side only." in shown(comparison([(whole, part)]))
    assert "one side only" not in shown(comparison([(whole, whole)]))


def test_rewards_stand_below_success() -> None:
    """They are no percentages."""
    text = shown(comparison([(result("10", rewards=0.25), result("10", rewards=0.75))]))
    row = next(line for line in text.splitlines() if "reward" in line)
    assert row.split()[3:6] == ["0.625", "0.875", "+0.250"]


def test_no_bar_without_a_terminal() -> None:
    """Nothing is written into files and pipes."""
    out = StringIO()
    with progress("shop small", Console(file=out)) as watch:
        watch(1, 2, 1, 0)
    assert out.getvalue() == ""


def test_a_bar_on_a_terminal_tells_success_and_failures() -> None:
    """It counts episodes, and goes away."""
    out = StringIO()
    with progress("shop [small]", Console(file=out, force_terminal=True, width=140)) as watch:
        watch(3, 4, 1, 1)
    assert "shop [small]" in out.getvalue()
    assert "success 33%, FAILED 1" in out.getvalue()


def test_task_types_have_intervals_and_the_label() -> None:
    """Each figure has its own below it, and the title says which data it is of; 0, 1 and 2 of 3 are 1 on average."""
    found = result("0001", kinds="aaab")
    worth = {"t0": 0.0, "t1": 1.0, "t2": 2.0}
    graded = [replace(e, metrics={"f1": worth[e.task]} if e.task in worth else {}) for e in found.episodes]
    lines = shown([by_kind(replace(found, episodes=tuple(graded)))]).splitlines()
    assert any(line.split() == ["shop", "small", "T=0.5", "mini"] for line in lines)
    place = next(index for index, line in enumerate(lines) if line.split()[:1] == ["a"])
    assert "1.000" in lines[place]
    # Student's t: the standard error of 0, 1, 2 is 1 / sqrt(3), and 4.303 of them for 2 degrees of freedom.
    assert lines[place + 1].split() == ["[-1.484,", "3.484]"]
