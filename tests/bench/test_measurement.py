"""One measurement from plan to result file: what it holds, what is refused, and how it goes on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prover.bench import measurement
from prover.bench.contender import Contender, contender
from prover.bench.measurement import Plan, plan_of_config, plan_of_suite
from prover.bench.suite import load_suite
from prover.config import load_config
from prover.errors import ConfigError, DataError, FailureShareError
from prover.evaluate import Evaluation
from prover.testing import LineEnv

CHANCE = Contender(name="random", kind="random", fingerprint="random")


class Fragile(LineEnv):
    """The walk, in which some tasks cannot be started; every start is counted."""

    broken: frozenset[str] = frozenset()
    stop_after: int | None = None
    started: list[str]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        task = (options or {})["task"]
        if len(self.started) == self.stop_after:
            raise KeyboardInterrupt
        self.started.append(task)
        if task in self.broken:
            raise ValueError("out of order")
        return super().reset(seed=seed, options=options)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tasks that were started in ``Fragile``."""
    monkeypatch.setattr(Fragile, "started", [], raising=False)
    monkeypatch.setattr(Fragile, "broken", frozenset())
    monkeypatch.setattr(Fragile, "stop_after", None)
    return Fragile.started


@pytest.fixture
def plan(manifest: Callable[..., Path], started: list[str]) -> Plan:
    """The suite of the fragile walk."""
    return plan_of_suite(load_suite(manifest(), [f"env.kind={__name__}:Fragile"]))


def run(plan: Plan, path: Path, who: Contender = CHANCE, **options: Any) -> Evaluation:
    """A measurement at temperature 1 with seed 0."""
    return measurement.run(plan, who, **({"temperature": 1.0, "seed": 0, "path": path} | options))


def test_the_result_tells_how_it_came_about(plan: Plan, tmp_path: Path) -> None:
    """Suite, version, tasks, rules, policy, seed, versions, seconds and the whole config."""
    found = run(plan, tmp_path / "x.json")
    stored = json.loads((tmp_path / "x.json").read_text())
    setting = stored["setting"]
    assert stored["n"] == len(stored["episodes"]) == 9
    assert (setting["suite"]["name"], setting["suite"]["version"]) == ("walk", 1)
    assert setting["tasks"]["n"] == 9
    assert setting["rules"]["max_turns"] == 30
    assert setting["policy"] == {"name": "random", "kind": "random", "fingerprint": "random"}
    assert (setting["seed"], setting["leak"], setting["versions"]["prover"]) == (0, None, "0.1.0")
    assert setting["seconds"] >= 0
    assert "max_turns: 30" in setting["config"]
    assert Evaluation.load(tmp_path / "x.json") == found
    assert [path.name for path in tmp_path.glob("x*")] == ["x.json"]


def test_an_interrupted_measurement_repeats_no_task(plan: Plan, started: list[str], tmp_path: Path) -> None:
    """Stopped in the fifth episode and gone on with, it equals one that was not stopped."""
    whole = run(plan, tmp_path / "whole.json")
    started.clear()
    Fragile.stop_after = 4
    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()
    assert len(started) == 4
    Fragile.stop_after = None
    again = run(plan, tmp_path / "x.json", resume=True)
    assert again.episodes == whole.episodes
    assert sorted(started) == [f"start-{cell}" for cell in range(9)]


def test_a_result_that_is_there_is_kept(plan: Plan, started: list[str], tmp_path: Path) -> None:
    """With --resume it is read back and nothing is played; without, it is refused; of another seed, it is another."""
    first = run(plan, tmp_path / "x.json")
    started.clear()
    assert run(plan, tmp_path / "x.json", resume=True) == first
    assert started == []
    with pytest.raises(ConfigError, match=r"x\.json, which holds one; choose another with --out"):
        run(plan, tmp_path / "x.json")
    with pytest.raises(ConfigError, match="seed 0 then and 1 now"):
        run(plan, tmp_path / "x.json", resume=True, seed=1)


def test_few_failures_are_left_out_and_counted(plan: Plan, started: list[str], tmp_path: Path) -> None:
    """Two of nine episodes fail after their retries: no episode without success, and no error."""
    Fragile.broken = frozenset({"start-3", "start-4"})
    found = run(plan, tmp_path / "x.json")
    assert (found.n, found.failures) == (7, 2)
    assert started.count("start-3") == 3


def test_many_failures_are_no_result(plan: Plan, tmp_path: Path) -> None:
    """What finished is kept; once the environment works again, only the rest is played."""
    Fragile.broken = frozenset({"start-3", "start-4", "start-5"})
    with pytest.raises(
        FailureShareError, match=r"25% of 9 episodes to fail, got 3; the first .*ValueError: out of ord"
    ):
        run(plan, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()
    Fragile.broken = frozenset()
    Fragile.started.clear()
    assert run(plan, tmp_path / "x.json", resume=True).n == 9
    assert sorted(Fragile.started) == ["start-3", "start-4", "start-5"]


def test_a_broken_environment_is_an_error(plan: Plan, tmp_path: Path) -> None:
    """The message has the cause, the place and the task."""
    Fragile.broken = frozenset(f"start-{cell}" for cell in range(9))
    with pytest.raises(FailureShareError, match=r"9 of 9 failed; the first failed with error in env\.reset"):
        run(plan, tmp_path / "x.json")


def test_a_leaked_split_is_refused_and_marked(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """Refused before anything is played; allowed, the result says so wherever it is shown."""
    plan = plan_of_suite(load_suite(manifest(), ["trained_on=[train]"]))
    with pytest.raises(DataError, match="got a leaked split: split 'test' shares 9 ids"):
        run(plan, tmp_path / "x.json")
    found = run(plan, tmp_path / "x.json", allow_leak=True)
    assert found.setting["leak"].startswith("split 'test' shares 9 ids and 0 texts with 'train'")
    assert "[LEAKED SPLIT: split 'test' shares 9 ids" in found.text()


def test_missing_data_are_an_error(manifest: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is played; the message says how to get them."""
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    suite = load_suite(manifest(), ["env.kind=alfworld", "env.data=null", "split=valid_seen"])
    with pytest.raises(DataError, match="ALFWORLD_DATA is not set"):
        plan_of_suite(suite)


def test_progress_is_told(plan: Plan, started: list[str], tmp_path: Path) -> None:
    """After every episode: how many are done, of how many, with how many successes and failures."""
    Fragile.broken = frozenset({"start-0"})
    seen: list[tuple[int, ...]] = []
    found = run(plan, tmp_path / "x.json", watch=lambda *figures: seen.append(figures))
    assert [figures[0] + figures[3] for figures in seen] == list(range(1, 10))
    assert seen[-1] == (8, 9, found.successes, 1)


def test_episodes_are_as_many_as_asked_for(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """Beyond the number of tasks they are played again with other seeds."""
    found = run(plan_of_suite(load_suite(manifest()), 20), tmp_path / "x.json")
    assert (found.n, len(found.by_task())) == (20, 9)


def test_a_config_is_measured_as_its_evaluation_says(tmp_path: Path) -> None:
    """Split, episodes and turn cap are its own; on the split that is trained on there is nothing to leak."""
    settings = ["env.kind=line", "evaluation.split=train", "evaluation.episodes=12", "rollout.max_turns=3"]
    found = run(plan_of_config(load_config(overrides=settings)), tmp_path / "x.json")
    assert (found.split, found.n, max(episode.turns for episode in found.episodes)) == ("train", 12, 3)
    assert found.setting["leak"] is None


def test_a_model_is_measured_with_its_own_codec(
    line_policy: Path, manifest: Callable[..., Path], tmp_path: Path
) -> None:
    """An untrained model plays the walk from its folder; interrupted and gone on with, it samples the same."""
    plan = plan_of_suite(load_suite(manifest(more="temperatures: [0.5]\n")))
    who = contender(str(line_policy))
    whole = run(plan, tmp_path / "whole.json", who, temperature=0.5)
    assert whole.n == 9
    (tmp_path / "x.partial.jsonl").write_text(
        json.dumps({"head": dict(whole.setting) | {"temperature": 0.5}})
        + "".join(
            "\n" + json.dumps({"index": index, "seconds": 1.0, "episode": one})
            for index, one in enumerate(json.loads((tmp_path / "whole.json").read_text())["episodes"][:4])
        )
    )
    assert run(plan, tmp_path / "x.json", who, temperature=0.5, resume=True).episodes == whole.episodes


def test_turns_are_kept_where_they_are_asked_for(plan: Plan, tmp_path: Path) -> None:
    """One line per episode: what was seen, said and done, and how it ended."""
    found = run(plan, tmp_path / "x.json", keep_turns=True)
    lines = [json.loads(line) for line in (tmp_path / "x.turns.jsonl").read_text().splitlines()]
    assert [line["task"] for line in lines] == [f"start-{cell}" for cell in range(9)]
    assert [len(line["turns"]) for line in lines] == [episode.turns for episode in found.episodes]
    first = lines[8]
    assert first["opening"] == "You are in cell 8 of 0..9."
    assert first["success"] == (first["turns"][-1]["result"] == "You are in cell 9 of 0..9.")
    assert {turn["action"] for turn in first["turns"]} <= {"left", "look", "right"}


def test_turns_of_an_interrupted_measurement_stand_there_once(plan: Plan, started: list[str], tmp_path: Path) -> None:
    """A line that was cut, and one whose episode is not on disk, are left out; the rest is that of one go."""
    run(plan, tmp_path / "whole.json", keep_turns=True)
    whole = (tmp_path / "whole.turns.jsonl").read_text().splitlines()
    started.clear()
    Fragile.stop_after = 4
    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path / "x.json", keep_turns=True)
    turns = tmp_path / "x.turns.jsonl"
    turns.write_text(turns.read_text() + whole[7] + "\n" + whole[4][:20])
    Fragile.stop_after = None
    run(plan, tmp_path / "x.json", keep_turns=True, resume=True)
    assert sorted(turns.read_text().splitlines()) == sorted(whole)
