"""Success rates, their intervals and their files."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from prover.errors import DataError, FailureShareError
from prover.evaluate import Episode, Evaluation, evaluate
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.protocols import Policy, TextEnv
from prover.records import Provenance, Sampling, Task, Trajectory
from prover.rollout import EpisodeRules, Rollout
from prover.testing import LineEnv, ScriptedPolicy, UniformPolicy

RULES = EpisodeRules(max_turns=3, sampling=Sampling(temperature=1.0, max_tokens=16), text_format=Bare())


def tasks(*cells: int) -> list[Task]:
    """The tasks that start in these cells."""
    return [Task(id=f"start-{cell}", split="test") for cell in cells]


def evaluated(
    policy: Policy,
    cells: tuple[int, ...],
    episodes: int,
    *,
    env: Callable[[], TextEnv] = LineEnv,
    seed: int = 0,
    temperature: float = 0.5,
) -> Evaluation:
    """An evaluation in a pool of its own, without retries."""

    async def play() -> Evaluation:
        async with HostPool(lambda: InlineHost(env), 8) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=replace(RULES, retries=0))
            return await evaluate(rollout, tasks(*cells), episodes, temperature=temperature, seed=seed)

    return asyncio.run(play())


def episode(task: str, success: bool, kind: str = "", turns: int = 1, invalid: int = 0) -> Episode:
    """How an episode ended."""
    return Episode(task=task, kind=kind, seed=0, success=success, reward=float(success), turns=turns, invalid=invalid)


def of(*episodes: Episode, failures: int = 0) -> Evaluation:
    """An evaluation that consists of these episodes."""
    return Evaluation(split="test", temperature=0.5, episodes=episodes, failures=failures)


def test_episodes_are_counted() -> None:
    """Three steps reach the goal from cells 6 to 8 and not from 5."""
    found = evaluated(ScriptedPolicy(["right"], repeat=True), (5, 6, 7, 8), 4)
    assert [(e.task, e.success, e.turns) for e in found.episodes] == [
        ("start-5", False, 3),
        ("start-6", True, 3),
        ("start-7", True, 2),
        ("start-8", True, 1),
    ]
    assert (found.n, found.successes, found.rate, found.failures) == (4, 3, 0.75, 0)
    assert (found.split, found.temperature) == ("test", 0.5)


@pytest.mark.parametrize(("episodes", "cells"), [(2, [5, 6]), (3, [5, 6, 7]), (7, [5, 6, 7, 5, 6, 7, 5])])
def test_tasks_repeat_in_their_order(episodes: int, cells: list[int]) -> None:
    """Episodes are spread evenly over the tasks, each with a seed of its own."""
    found = evaluated(ScriptedPolicy(["right"], repeat=True), (5, 6, 7), episodes)
    assert [e.task for e in found.episodes] == [f"start-{cell}" for cell in cells]
    assert len({e.seed for e in found.episodes}) == episodes


def test_invalid_turns_are_counted() -> None:
    """Actions without effect and cut replies are turns without a valid action."""
    policy = ScriptedPolicy(["jump", ([1] * 16, [0.0] * 16, "length"), "look"])
    (found,) = evaluated(policy, (5,), 1).episodes
    assert (found.turns, found.invalid) == (3, 2)


def test_requests_have_the_evaluation_temperature() -> None:
    """The rollout's own temperature stays as it is."""
    policy = ScriptedPolicy(["right"], repeat=True)
    evaluated(policy, (8,), 1, temperature=0.25)
    assert {request.sampling for request in policy.requests} == {Sampling(temperature=0.25, max_tokens=16)}


def test_no_states_are_stored() -> None:
    """An environment without snapshots can be evaluated."""

    class Plain(LineEnv):
        snapshot = None  # type: ignore[assignment]  # stands for an environment without the method

    assert evaluated(ScriptedPolicy(["right"], repeat=True), (8,), 1, env=Plain).rate == 1.0


def test_the_seed_repeats_an_evaluation() -> None:
    """Equal seeds give equal episodes, other seeds other ones."""
    policy = UniformPolicy(["left", "right"])
    first = evaluated(policy, (7, 8), 20)
    assert evaluated(policy, (7, 8), 20) == first
    assert [e.success for e in evaluated(policy, (7, 8), 20, seed=1).episodes] != [e.success for e in first.episodes]


def test_kinds_come_from_the_environment() -> None:
    """Results by task type add up to the whole."""

    class Typed(LineEnv):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            observation, info = super().reset(seed=seed, options=options)
            near = (options or {}).get("task") == "start-8"
            return observation, info | {"task_type": "near" if near else "far"}

    found = evaluated(ScriptedPolicy(["right"], repeat=True), (5, 6, 8), 6, env=Typed)
    kinds = found.by_kind()
    assert list(kinds) == ["far", "near"]
    assert [(kinds[kind].rate, kinds[kind].n) for kind in kinds] == [(0.5, 4), (1.0, 2)]
    summary = found.summary()["by_kind"]
    assert {kind: (part["success"], part["n"]) for kind, part in summary.items()} == {"far": (0.5, 4), "near": (1.0, 2)}


def broken_at(*cells: int) -> Callable[[], TextEnv]:
    """Environments that cannot start in some cells."""

    class Fragile(LineEnv):
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            if (options or {}).get("task") in {f"start-{cell}" for cell in cells}:
                raise ValueError("out of order")
            return super().reset(seed=seed, options=options)

    return Fragile


def test_failed_episodes_are_left_out_and_counted() -> None:
    """They are no episodes without success."""
    found = evaluated(ScriptedPolicy(["right"], repeat=True), (7, 8), 4, env=broken_at(7))
    assert (found.n, found.rate, found.failures) == (2, 1.0, 2)
    assert {e.task for e in found.episodes} == {"start-8"}


def test_an_evaluation_in_which_all_fails_is_an_error() -> None:
    """The first failure is told, rather than a result without a rate."""
    with pytest.raises(FailureShareError, match=r"got 2 of 2 failed(.|\n)*ValueError: out of order"):
        evaluated(ScriptedPolicy([]), (7, 8), 2, env=broken_at(7, 8))


def test_there_must_be_tasks() -> None:
    """An empty split is an error of its own."""
    with pytest.raises(DataError, match="at least one task"):
        evaluated(ScriptedPolicy([]), (), 2)


def test_training_is_the_same_before_and_after() -> None:
    """An evaluation between two updates changes none of their trajectories."""

    async def play() -> tuple[Any, Any]:
        async with HostPool(lambda: InlineHost(LineEnv), 4) as hosts:
            rollout = Rollout(policy=UniformPolicy(["left", "right"]), hosts=hosts, rules=RULES)
            before = await rollout.groups(tasks(5, 7), 4, seed=3)
            await evaluate(rollout, tasks(6, 7), 10, temperature=0.25, seed=3)
            return before, await rollout.groups(tasks(5, 7), 4, seed=3)

    before, after = (
        [
            (t.seed, t.turns, t.rows[0].ids.tolist(), t.rows[0].temperature)
            for group in groups
            for t in group.trajectories
        ]
        for groups in asyncio.run(play())
    )
    assert before == after
    assert {temperature for *_, temperature in before} == {1.0}


def test_rates_come_with_an_interval() -> None:
    """Wilson's interval of 67 in 134, and of 10 in 10."""
    half = of(*(episode(str(i), i < 67) for i in range(134)))
    assert half.interval() == pytest.approx((0.4165, 0.5835), abs=5e-5)
    whole = of(*(episode(str(i), True) for i in range(10)))
    assert whole.interval() == pytest.approx((0.7225, 1.0), abs=5e-5)


def test_nothing_has_no_rate() -> None:
    """Without episodes the rate is not a number, and the summary says None."""
    empty = of()
    assert math.isnan(empty.rate)
    assert empty.interval() is None
    assert [empty.summary()[key] for key in ("success", "interval95", "mean_turns", "invalid_share")] == [None] * 4


def test_a_summary_tells_turns_and_invalid_turns() -> None:
    """Means are over episodes, the share is over turns."""
    summary = of(episode("a", True, turns=2, invalid=1), episode("b", False, turns=6, invalid=1), failures=3).summary()
    assert (summary["mean_turns"], summary["invalid_share"], summary["failures"], summary["n"]) == (4.0, 0.25, 3, 2)
    assert summary["by_kind"] == {}


def test_results_survive_a_file(tmp_path: Path) -> None:
    """What is loaded equals what was saved, and no other file is left."""
    path = tmp_path / "result.json"
    saved = of(episode("a", True, kind="x", turns=2), episode("b", False), failures=1)
    saved.save(path)
    assert Evaluation.load(path) == saved
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        '{"split": "test"}',
        '{"split": "test", "temperature": 1, "failures": 0, "episodes": [{}]}',
    ],
)
def test_files_that_hold_no_result_are_refused(text: str | None, tmp_path: Path) -> None:
    """Missing, empty and other files are named."""
    path = tmp_path / "result.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=r"expected a result file .*result\.json"):
        Evaluation.load(path)


def test_repeated_tasks_are_clustered_in_the_interval() -> None:
    """Ten tasks five times, half of them solved: sd .527, standard error .167, t(9) 2.262, so 50 +- 37.7 points."""
    episodes = [episode(f"t{number}", number % 2 == 0) for number in range(10) for _ in range(5)]
    low, high = of(*episodes).interval() or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.5 - 0.37703, 0.5 + 0.37703), abs=1e-4)


def test_fewer_episodes_than_tasks_are_spread_over_the_split() -> None:
    """Four episodes of eight tasks play every second one, not the first four."""
    found = evaluated(ScriptedPolicy(["right"], repeat=True), range(8), 4)
    assert [e.task for e in found.episodes] == ["start-0", "start-2", "start-4", "start-6"]


def scored(task: str, reward: float, **metrics: float) -> Episode:
    """An episode with a graded reward and metrics; 1 is a success."""
    return Episode(task=task, kind="", seed=0, success=reward == 1, reward=reward, turns=1, invalid=0, metrics=metrics)


def test_metrics_of_the_environment_are_averaged_by_task() -> None:
    """Two episodes of one task count as much as one of another: f1 ((1 + 0) / 2 + 0.75) / 2 and the reward likewise."""
    found = of(scored("a", 1.0, f1=1.0), scored("a", 0.0, f1=0.0), scored("b", 0.5, f1=0.75))
    means = found.means()
    assert {name: mean.mean for name, mean in means.items()} == {"reward": 0.5, "f1": 0.625}
    # Two tasks, sd .1767767, standard error .125, t(1) 12.7062.
    assert means["f1"].low == pytest.approx(0.625 - 12.7062 * 0.125, abs=1e-4)
    assert found.summary()["metrics"]["f1"]["tasks"] == 2


def test_a_reward_that_only_repeats_the_success_is_no_metric() -> None:
    """Rates are not shown twice."""
    assert of(episode("a", True), episode("b", False)).means() == {}


def test_a_metric_may_be_missing_in_some_episodes() -> None:
    """It is averaged over those that have it."""
    assert of(scored("a", 1.0, f1=0.5), scored("b", 1.0)).means()["f1"].mean == 0.5


def test_metrics_of_the_last_observation_are_kept() -> None:
    """What the environment reports in the end stands in the episode."""

    class Measured(LineEnv):
        def step(self, action: str) -> Any:
            observation, reward, terminated, truncated, info = super().step(action)
            return observation, reward, terminated, truncated, info | {"metrics": {"cell": int(observation[16])}}

    found = evaluated(ScriptedPolicy(["right"], repeat=True), (3, 5), 2, env=Measured)
    assert [episode.metrics for episode in found.episodes] == [{"cell": 6.0}, {"cell": 8.0}]


def test_the_line_shows_ceiling_label_and_metrics() -> None:
    """Whoever reads a rate sees how high it can be, on what it was measured, and n."""
    found = replace(
        of(scored("a", 1.0, f1=1.0), scored("b", 0.5, f1=0.25), failures=1),
        provenance=Provenance(ceiling=0.934, manifest={"label": "mini"}),
    )
    # Wilson for 1 of 2: centre .5, half-width .4055 (z 1.95996).
    assert found.text().startswith("success 50.0 [9.5, 90.5] % (ceiling 93.4), reward 0.750 [")
    assert "f1 0.625 [" in found.text()
    assert found.text().endswith("n=2, FAILED 1, [mini]")


def test_provenance_is_stored_with_the_result(tmp_path: Path) -> None:
    """What was saved is what is read back."""
    found = replace(of(scored("a", 0.5, f1=0.25)), provenance=Provenance(ceiling=0.5, manifest={"label": "mini"}))
    found.save(tmp_path / "result.json")
    assert Evaluation.load(tmp_path / "result.json") == found


def test_values_that_are_all_alike_have_no_interval() -> None:
    """A hundred equal rewards tell nothing of their spread; a rate of 1 has Wilson's interval all the same."""
    found = of(*(scored(f"t{number}", 0.5) for number in range(100)))
    assert (found.means()["reward"].mean, found.means()["reward"].low) == (0.5, None)
    # Twice each: ten tasks, as if of ten episodes.
    whole = of(*(episode(f"t{number}", True) for number in range(10) for _ in range(2)))
    assert whole.interval() == pytest.approx((0.7225, 1.0), abs=5e-5)


def test_rates_that_are_all_alike_are_not_certain() -> None:
    """Every one of ten tasks is solved in one of two episodes: Wilson's interval of 5 of 10, not one without width."""
    found = of(*(episode(f"t{number}", success) for number in range(10) for success in (True, False)))
    assert found.interval() == pytest.approx((0.2366, 0.7634), abs=5e-5)


def test_one_task_has_a_rate_without_an_interval() -> None:
    """Three successes of four episodes of a task tell nothing of other tasks."""
    found = of(*(episode("t", success) for success in (True, True, True, False)))
    assert found.interval() is None
    assert found.text() == "success 75.0 [n/a] %, n=4"


def test_every_task_counts_the_same() -> None:
    """One task is solved in all of three episodes, another in none of one: the rate is a half, not three quarters."""
    found = of(*[episode("a", True)] * 3, episode("b", False))
    assert (found.rate, found.successes, found.n) == (0.5, 3, 4)


def test_pass_at_k_is_averaged_over_tasks() -> None:
    """Of four tries one succeeds in the first task (1/2 within two), none in the second; all of two never succeed."""
    found = of(*(episode("a", number == 0) for number in range(4)), *[episode("b", False)] * 4)
    best, worst = found.pass_at(2), found.all_of(2)
    assert best is not None
    assert worst is not None
    assert (best.mean, best.n, worst.mean) == (0.25, 2, 0.0)
    assert found.pass_at(8) is None
    assert set(found.summary()["pass_at_k"]) == {"2", "4"}
    assert found.summary()["pass_at_k"]["4"]["mean"] == 0.5


def test_one_task_with_too_few_episodes_makes_pass_at_k_unknown() -> None:
    """An average over the other tasks alone would not be one of the suite."""
    assert of(*[episode("a", True)] * 2, episode("b", True)).pass_at(2) is None


def test_settings_are_stored_with_the_result(tmp_path: Path) -> None:
    """And a leak among them is told in the line for people."""
    found = replace(of(episode("a", True)), setting={"suite": {"name": "walk"}, "leak": "3 ids"})
    found.save(tmp_path / "result.json")
    assert Evaluation.load(tmp_path / "result.json") == found
    assert found.text().endswith("n=1, [LEAKED SPLIT: 3 ids]")


class Graded:
    """A grader that knows only the walks that begin below cell 5, and counts."""

    about: ClassVar[dict[str, Any]] = {"figures": ["liked"], "model": "nobody"}

    def __init__(self) -> None:
        self.seen: list[str] = []

    def check(self) -> None:
        """There is nothing to check."""

    async def grade(self, run: Trajectory) -> dict[str, float]:
        self.seen.append(run.task.id)
        return {"liked": 1.0} if run.task.id < "start-5" else {}

    def stats(self) -> dict[str, float]:
        return {}

    async def aclose(self) -> None:
        """There is nothing to close."""


def test_a_grader_adds_figures_that_may_be_missing() -> None:
    """They are means over the tasks that have them, with their number; who gave them stands with the result."""
    grader = Graded()

    async def run() -> Evaluation:
        async with HostPool(lambda: InlineHost(LineEnv), 4) as hosts:
            rollout = Rollout(policy=UniformPolicy(), hosts=hosts, rules=replace(RULES, admissible=True))
            return await evaluate(rollout, tasks(3, 4, 5), 3, temperature=1.0, seed=0, grader=grader)

    found = asyncio.run(run())
    assert grader.seen == [episode.task for episode in found.episodes]
    mean = found.means()["liked"]
    assert (mean.mean, mean.n) == (1.0, 2)
    assert "liked 1.000 (2 tasks)" in found.text()
    assert found.setting == {"grader": Graded.about}
