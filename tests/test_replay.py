"""ReplayEnv: snapshots by doing everything again."""

import asyncio
import importlib
import pickle
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from prover.checks import check_text_env
from prover.errors import EnvError, SnapshotError, UnknownNameError
from prover.host import InlineHost
from prover.replay import ReplayEnv
from prover.testing import CoinEnv, LineEnv

TASKS = {"train": [f"start-{cell}" for cell in range(9)]}


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module ``planted`` can be imported, in worker processes too."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def bare(name: str = "NoSnapshot") -> Any:
    """A planted environment without snapshots."""
    return getattr(importlib.import_module("planted"), name)()


def started(env: gymnasium.Env[str, str], task: str = "start-3", **options: Any) -> ReplayEnv:
    """A replayed environment after reset."""
    replay = ReplayEnv(env, **options)
    replay.reset(seed=5, options={"task": task})
    return replay


def test_it_keeps_the_whole_contract() -> None:
    """An environment with nothing but Gymnasium's API passes every rule once it is replayed."""
    report = check_text_env(lambda: ReplayEnv(bare(), tasks=TASKS))
    assert [r.rule for r in report.results if r.status != "ok"] == ["restore_in_process"]


def test_restore_brings_back_answer_state_and_chance() -> None:
    """After restoring, the same tosses fall the same way, whatever was done in between and in whichever instance."""
    env = started(bare())
    env.step("toss")
    _, _, _, _, info = env.step("hop")
    snapshot, key = env.snapshot(), env.state_key()
    future = [env.step("toss")[:4] for _ in range(4)]
    for other in (env, ReplayEnv(bare())):
        assert other.restore(pickle.loads(pickle.dumps(snapshot))) == ("Nothing happens.", info)
        assert other.state_key() == key
        assert [other.step("toss")[:4] for _ in range(4)] == future


def test_an_answer_that_differs_is_a_snapshot_error() -> None:
    """An environment that resets to another text each time cannot be restored, and cannot be stepped after that."""
    env = started(bare("Unrepeatable"))
    snapshot = env.snapshot()
    with pytest.raises(SnapshotError, match=r"expected reset\(seed=5\) to answer as it was recorded, got another"):
        env.restore(snapshot)
    with pytest.raises(EnvError, match="expected a running episode"):
        env.step("look")


@pytest.mark.parametrize("field", ["observation", "reward", "terminated", "truncated"])
def test_every_part_of_a_recorded_step_is_compared(field: str) -> None:
    """Observation, reward and both flags have to come back."""

    class Twisted(gymnasium.Wrapper[str, str, str, str]):
        twist = False

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            names = ("observation", "reward", "terminated", "truncated")
            *answer, info = self.env.step(action)
            parts: dict[str, Any] = dict(zip(names, answer, strict=True))
            if self.twist:
                parts |= {field: {"observation": "else", "reward": 0.5}.get(field, True)}
            return (*(parts[name] for name in names), info)  # type: ignore[return-value]  # the four names, in order

    inner = Twisted(bare())
    env = started(inner)
    env.step("look")
    snapshot = env.snapshot()
    env.restore(snapshot)
    inner.twist = True
    with pytest.raises(SnapshotError, match=r"expected step 1 \('look'\)"):
        env.restore(snapshot)


def test_a_time_limit_is_replayed_with_its_counter() -> None:
    """LineEnv under a limit of 10: each of 8 continuations from step 4 starts alike and gets exactly 6 steps."""

    async def lengths() -> list[tuple[str, int]]:
        host = InlineHost(lambda: ReplayEnv(gymnasium.wrappers.TimeLimit(LineEnv(), 10)))
        await host.reset("start-3", seed=0)
        for _ in range(4):
            await host.step("look")
        snapshot = await host.snapshot()
        found = []
        for _ in range(8):
            observation, _ = await host.restore(snapshot)
            steps, over = 0, False
            while not over:
                _, _, terminated, truncated, _ = await host.step("look")
                steps, over = steps + 1, terminated or truncated
            found.append((observation, steps))
        return found

    assert asyncio.run(lengths()) == [("You are in cell 3 of 0..9.", 6)] * 8


def test_reseed_is_recorded_and_replayed() -> None:
    """A snapshot after a reseed holds it, for environments with and without a reseed of their own."""
    for inner in (CoinEnv(turns=1), bare()):
        env, task, action = ReplayEnv(inner), *(("coin", "open") if isinstance(inner, CoinEnv) else ("start-0", "toss"))
        outcomes = set()
        for seed in range(20):
            env.reset(seed=1, options={"task": task})
            env.reseed(seed)
            snapshot = env.snapshot()
            outcome = env.step(action)[:2]
            env.restore(snapshot)
            assert env.step(action)[:2] == outcome
            outcomes.add(outcome)
        assert len(outcomes) == 2


def test_keys_follow_the_history_or_the_observation() -> None:
    """Two ways into one cell have two keys by history and one by observation; seeds are in neither."""
    for key, equal in (("history", False), ("observation", True)):
        env = started(bare(), key=key)
        first = env.state_key()
        env.step("right")
        assert env.state_key() != first
        env.step("left")
        assert (env.state_key() == first) == equal
        env.reset(seed=77, options={"task": "start-3"})
        assert env.state_key() == first


def test_a_seed_is_drawn_where_none_is_given() -> None:
    """An unseeded episode can be restored too, and follows from the last seed."""
    openings = []
    for _ in range(2):
        env = ReplayEnv(bare())
        env.reset(seed=3)
        opening, _ = env.reset()
        snapshot = env.snapshot()
        assert env.restore(snapshot)[0] == opening
        openings.append(opening)
    assert openings[0] == openings[1]


def test_tasks_come_from_the_environment_or_by_hand() -> None:
    """The environment's own tasks are passed on; others are given; none is an error."""
    assert ReplayEnv(LineEnv()).tasks("train") == LineEnv().tasks("train")
    assert ReplayEnv(bare(), tasks={"mine": ["start-2"]}).tasks("mine") == ["start-2"]
    with pytest.raises(UnknownNameError, match="expected a split of"):
        ReplayEnv(bare(), tasks={"mine": ["start-2"]}).tasks("other")
    with pytest.raises(UnknownNameError, match="lists none"):
        ReplayEnv(bare()).tasks("train")


def test_misuse_is_told() -> None:
    """Stepping a finished or unbegun episode and restoring something else are errors of their kind."""
    env = started(LineEnv(), "start-8")
    env.step("right")
    with pytest.raises(EnvError, match="after it"):
        env.step("look")
    with pytest.raises(SnapshotError, match="expected a History, got int"):
        env.restore(3)  # type: ignore[arg-type]  # the misuse
    with pytest.raises(EnvError, match="running episode"):
        ReplayEnv(LineEnv()).snapshot()


def test_a_step_that_raises_leaves_nothing_to_go_on_with() -> None:
    """After an exception in a step, only reset and restore are left."""
    env = started(importlib.import_module("planted").Failing("step", after=1))
    env.step("look")
    snapshot = env.snapshot()
    with pytest.raises(ValueError, match="planted"):
        env.step("look")
    with pytest.raises(EnvError, match="running episode"):
        env.step("look")
    with pytest.raises(ValueError, match="planted"):
        env.restore(snapshot)
