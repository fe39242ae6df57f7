"""Result files: names, and what is joined and paired."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prover.bench.contender import Contender
from prover.bench.results import Key, file_name, gathered, pairs, read
from prover.errors import DataError
from prover.evaluate import Episode, Evaluation


def result(
    suite: str = "walk", policy: str = "p", kind: str = "hf", *, seed: int = 0, heat: float = 1.0, marks: str = "10"
) -> Evaluation:
    """A result of one episode per task; 1 is a success."""
    episodes = tuple(
        Episode(task=f"t{place}", kind="", seed=seed, success=mark == "1", reward=float(mark), turns=1, invalid=0)
        for place, mark in enumerate(marks)
    )
    setting: dict[str, Any] = {"suite": {"name": suite}, "policy": {"name": policy, "kind": kind}, "seed": seed}
    return Evaluation(split="test", temperature=heat, episodes=episodes, setting=setting)


def test_names_of_files() -> None:
    """A temperature stands there only where it means something."""
    model = Contender(name="small", kind="hf", fingerprint="")
    chance = Contender(name="random", kind="random", fingerprint="")
    assert file_name("walk", model, 0.5, 3) == "walk-small-T0.5-s3.json"
    assert file_name("walk", chance, 0.5, 3) == "walk-random-s3.json"


def test_seeds_are_joined_and_tasks_count_once() -> None:
    """Task t0 is solved with both seeds, t1 with one: the rate is (1 + 1/2) / 2, and pass@2 is 1."""
    (found,) = gathered([result(marks="10", seed=0), result(marks="11", seed=1)]).values()
    assert (found.n, found.rate, found.repeats) == (4, 0.75, 2)
    best = found.pass_at(2)
    assert best is not None
    assert (best.mean, best.n) == (1.0, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": {"name": "walk", "version": 2}}, "version 1 and 2"),
        ({"rules": {"max_turns": 1}}, r"rules .*9.* and .*1"),
        ({"policy": {"name": "p", "kind": "hf", "fingerprint": "b"}}, "policy .* and .*'fingerprint': 'b'"),
    ],
)
def test_seeds_of_something_else_are_not_joined(change: dict[str, Any], message: str) -> None:
    """A folder may hold results of before and after a change; they are no one figure."""
    known = {"suite": {"name": "walk", "version": 1}, "rules": {"max_turns": 9}}
    first, second = (replace(one, setting=dict(one.setting) | known) for one in (result(seed=0), result(seed=1)))
    assert len(gathered([first, second])) == 1
    with pytest.raises(DataError, match=f"differ in their seed alone, got {message}"):
        gathered([first, replace(second, setting=dict(second.setting) | change)])


def test_of_equal_seeds_the_last_counts() -> None:
    """As in a run's evaluations, of which the last one is wanted."""
    (found,) = gathered([result(marks="00"), result(marks="11")]).values()
    assert found.rate == 1.0


def test_a_folder_is_read_by_suite_policy_and_temperature(tmp_path: Path) -> None:
    """Other files are left alone."""
    for number, one in enumerate([result("run"), result("walk"), result("walk", heat=0.5)]):
        one.save(tmp_path / f"{number}.json")
    (tmp_path / "walk.partial.jsonl").write_text("{}")
    (tmp_path / "empty").mkdir()
    keys = [Key(suite=suite, split="test", policy="p", temperature=heat) for suite, heat in (("run", 1), ("walk", 1))]
    assert [*read(tmp_path)] == [*keys, Key(suite="walk", split="test", policy="p", temperature=0.5)]
    with pytest.raises(DataError, match="got none"):
        read(tmp_path / "empty")


def test_what_has_no_temperature_is_compared_with_any() -> None:
    """Chance is measured once, whatever the temperatures of the other side."""
    chance = gathered([result(policy="random", kind="random")])
    model = gathered([result(heat=1.0), result(heat=0.5)])
    assert [after.temperature for _, after in pairs(chance, model)] == [1.0, 0.5]


def test_only_alike_suites_are_paired() -> None:
    """Suites of one side only are left out; without a pair the message names both sides."""
    assert len(pairs(gathered([result("a"), result("b")]), gathered([result("b"), result("c")]))) == 1
    with pytest.raises(DataError, match="got a, split test at 1, b, split test at 1 and c, split test at 1"):
        pairs(gathered([result("a"), result("b")]), gathered([result("c")]))


def test_two_policies_on_one_side_are_refused() -> None:
    """It would not be clear which is meant."""
    with pytest.raises(DataError, match=r"one policy a side, got p, q for walk\. Name the result files"):
        pairs(gathered([result(), result(policy="q")]), gathered([result()]))
