"""Hosts: deadlines, errors and ends of environments in this process and in worker processes."""

import asyncio
import gc
import importlib
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from prover.errors import ConfigError, EnvError, EnvTimeoutError, SnapshotError, UnknownNameError
from prover.host import EnvFactory, Host, HostPool, InlineHost, ProcessHost, ThreadHost
from prover.testing import CoinEnv, LineEnv

GENEROUS = 60.0
KINDS = pytest.mark.parametrize("kind", [InlineHost, ThreadHost, ProcessHost])
HostKind = type[InlineHost] | type[ThreadHost] | type[ProcessHost]


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module ``planted`` can be imported, in worker processes too."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def no_worker_is_left() -> Any:
    """Every test ends with as many worker processes as it began with."""
    yield
    gc.collect()
    assert multiprocessing.active_children() == []


def faulty(name: str, *args: Any, **options: Any) -> EnvFactory:
    """A factory of a planted environment."""
    return partial(getattr(importlib.import_module("planted"), name), *args, **options)


def failing(call: str, how: str = "raise", **options: Any) -> EnvFactory:
    """A factory of LineEnv that fails in a call."""
    return faulty("Failing", call, how, **options)


async def closing(host: Host, use: Callable[[Host], Any]) -> Any:
    """Use a host and close it."""
    try:
        return await use(host)
    finally:
        await host.close()


@KINDS
def test_a_host_passes_everything_on(kind: HostKind) -> None:
    """Reset, step, checkpoint, restore and state keys give what the environment gives."""

    async def use(host: Host) -> None:
        assert (await host.reset("start-7", seed=0))[0] == "You are in cell 7 of 0..9."
        saved, key = await host.checkpoint()
        assert (saved, key) == (await host.snapshot(), await host.state_key())
        assert (await host.step("right"))[:4] == ("You are in cell 8 of 0..9.", 0.0, False, False)
        _, reward, terminated, truncated, info = await host.step("right")
        assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
        assert (await host.restore(saved))[0] == "You are in cell 7 of 0..9."
        assert await host.state_key() == key
        await host.reseed(3)  # LineEnv has no reseed; nothing happens
        assert (await host.step("\ud800\0"))[0] == "Nothing happens."
        assert not host.broken

    asyncio.run(closing(kind(LineEnv, GENEROUS), use))


@KINDS
def test_continuations_differ_by_reseed_alone(kind: HostKind) -> None:
    """64 continuations of one snapshot: all equal with the restored RNG, mixed with fresh seeds."""

    async def use(host: Host) -> None:
        await host.reset("coin", seed=0)
        snapshot = await host.snapshot()
        fresh, same = [], []
        for seed in range(64):
            await host.restore(snapshot)
            same.append((await host.step("open"))[1])
            await host.restore(snapshot)
            await host.reseed(seed)
            fresh.append((await host.step("open"))[1])
        assert len(set(same)) == 1
        assert 0.3 < sum(fresh) / 64 < 0.7

    asyncio.run(closing(kind(CoinEnv, GENEROUS), use))


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        *((InlineHost, call) for call in ("make", "reset", "step", "snapshot", "restore")),
        *((ProcessHost, call) for call in ("make", "step")),
    ],
)
def test_an_exception_becomes_an_env_error_with_its_traceback(kind: HostKind, call: str) -> None:
    """Wherever the environment raises, the error names the call, holds the traceback, and breaks the host."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)
        await host.step("look")
        await host.restore(await host.snapshot())

    host = kind(failing(call), GENEROUS)
    with pytest.raises(EnvError, match=rf"(?s)ValueError: planted in {call}.*Traceback.*in fail"):
        asyncio.run(closing(host, use))
    assert host.broken
    with pytest.raises(EnvError, match="take a new host"):
        asyncio.run(host.step("look"))


@KINDS
def test_errors_of_the_tree_keep_their_class(kind: HostKind) -> None:
    """A wrong snapshot is told by its class, and so is an unknown task."""
    with pytest.raises(UnknownNameError, match="start-10"):
        asyncio.run(closing(InlineHost(LineEnv), lambda host: host.reset("start-10", seed=0)))
    with pytest.raises(SnapshotError, match="expected a LineState, got int"):
        asyncio.run(closing(kind(LineEnv), lambda host: host.restore(3)))


@KINDS
def test_an_environment_without_snapshots_says_what_to_do(kind: HostKind) -> None:
    """Asking a bare Gymnasium environment for a snapshot names ReplayEnv."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)
        await host.checkpoint()

    with pytest.raises(SnapshotError, match=r"snapshot\(\), got NoSnapshot.*ReplayEnv"):
        asyncio.run(closing(kind(faulty("NoSnapshot"), GENEROUS), use))


def test_a_late_answer_is_dropped_inline() -> None:
    """A step that comes back after its deadline raises, and the host gives no more."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)
        with pytest.raises(EnvTimeoutError, match=r"step\(\) within 0.001 s"):
            await host.step("right")
        with pytest.raises(EnvError, match="take a new host"):
            await host.step("right")

    asyncio.run(closing(InlineHost(failing("step", "sleep", seconds=0.05), 0.001), use))


@pytest.mark.parametrize("seconds", [3600.0, 0.2])
def test_a_hanging_or_late_worker_is_killed(seconds: float) -> None:
    """A step past its deadline raises at the deadline, its process is gone, and nothing arrives later."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)
        await host.step("right")
        host.step_deadline = 0.05
        with pytest.raises(EnvTimeoutError, match=r"step\(\) within 0.05 s"):
            await host.step("right")
        assert multiprocessing.active_children() == []
        await asyncio.sleep(0.3)
        with pytest.raises(EnvError, match="take a new host"):
            await host.step("right")

    asyncio.run(closing(ProcessHost(failing("step", "sleep", after=1, seconds=seconds), GENEROUS), use))


@pytest.mark.parametrize("kind", [ThreadHost, ProcessHost])
def test_the_event_loop_runs_while_a_worker_works(kind: HostKind) -> None:
    """Another coroutine goes on while a step takes its time."""

    async def use(host: Host) -> int:
        await host.reset("start-3", seed=0)
        step = asyncio.ensure_future(host.step("right"))
        ticks = 0
        while not step.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert (await step)[0] == "You are in cell 4 of 0..9."
        return ticks

    assert asyncio.run(closing(kind(failing("step", "sleep", seconds=0.2), GENEROUS), use)) > 1


def test_a_late_answer_of_a_thread_is_dropped() -> None:
    """A step past its deadline raises at the deadline; what comes later reaches nobody, and the thread ends then."""
    before = threading.active_count()

    async def use() -> None:
        host = ThreadHost(failing("step", "sleep", seconds=0.3), 0.05)
        await host.reset("start-3", seed=0)
        with pytest.raises(EnvTimeoutError, match=r"step\(\) within 0.05 s"):
            await host.step("right")
        with pytest.raises(EnvError, match="take a new host"):
            await host.step("right")
        await host.close()
        assert threading.active_count() == before + 1, "nobody waited for the thread"
        while threading.active_count() > before:
            await asyncio.sleep(0.01)

    asyncio.run(use())


def test_threads_wait_side_by_side() -> None:
    """As many steps are in flight at once as there are hosts."""
    meeting = threading.Barrier(16, timeout=GENEROUS)

    class Meets(LineEnv):
        """Goes on when sixteen of its kind are in ``step``."""

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            meeting.wait()
            return super().step(action)

    async def use() -> list[str]:
        hosts = [ThreadHost(Meets, GENEROUS) for _ in range(16)]
        await asyncio.gather(*(host.reset("start-3", seed=0) for host in hosts))
        answers = await asyncio.gather(*(host.step("right") for host in hosts))
        await asyncio.gather(*(host.close() for host in hosts))
        return [answer[0] for answer in answers]

    assert asyncio.run(use()) == ["You are in cell 4 of 0..9."] * 16


def test_a_forgotten_thread_host_takes_its_thread_along() -> None:
    """A host that nobody closed lets go of its thread when it is collected."""
    before = threading.active_count()
    host = ThreadHost(LineEnv, GENEROUS)
    asyncio.run(host.reset("start-3", seed=0))
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "prover-env"]
    del host
    gc.collect()
    thread.join(GENEROUS)
    assert threading.active_count() == before


def test_making_and_reset_have_a_deadline_of_their_own() -> None:
    """An environment that cannot be made in time is given up, whatever steps may take."""
    host = ProcessHost(failing("reset", "sleep"), reset_deadline=1.0)
    with pytest.raises(EnvTimeoutError, match=r"within 1\.0 s"):
        asyncio.run(closing(host, lambda h: h.reset("start-3", seed=0)))


def test_the_end_of_a_worker_is_an_error() -> None:
    """A worker that exits in a step is an EnvError with its exit code, not a hang."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)
        await host.step("right")

    with pytest.raises(EnvError, match="exit code 3"):
        asyncio.run(closing(ProcessHost(failing("step", "exit"), GENEROUS), use))


def test_a_keyboard_interrupt_passes_through() -> None:
    """It is no failure of the environment."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(use(InlineHost(failing("reset", "interrupt"))))


def test_cancellation_passes_through_and_ends_the_worker() -> None:
    """A cancelled call leaves no process whose answer could be taken for that of the next call."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)
        step = asyncio.ensure_future(host.step("right"))
        await asyncio.sleep(0.05)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        assert host.broken
        assert multiprocessing.active_children() == []

    asyncio.run(closing(ProcessHost(failing("step", "sleep"), GENEROUS), use))


def test_closing_during_a_call_ends_it() -> None:
    """The call in flight raises instead of waiting for ever."""

    async def use(host: Host) -> None:
        await host.reset("start-3", seed=0)
        step = asyncio.ensure_future(host.step("right"))
        await asyncio.sleep(0.05)
        await host.close()
        with pytest.raises(EnvError, match="end of the worker"):
            await step

    asyncio.run(closing(ProcessHost(failing("step", "sleep"), GENEROUS), use))


@pytest.mark.parametrize("how", ["raise", "sleep"])
def test_a_worker_that_cannot_close_is_killed(how: str) -> None:
    """Closing twice is allowed, and an environment that fails in close keeps no process alive."""
    host = ProcessHost(failing("close", how), GENEROUS)

    async def use() -> None:
        await host.reset("start-3", seed=0)
        await host.close()
        await host.close()

    asyncio.run(use())
    assert host.broken


def test_a_forgotten_host_takes_its_worker_along() -> None:
    """Garbage collection ends the process."""

    async def use() -> None:
        host = ProcessHost(LineEnv, GENEROUS)
        await host.reset("start-3", seed=0)
        assert len(multiprocessing.active_children()) == 1

    asyncio.run(use())
    gc.collect()
    assert multiprocessing.active_children() == []


def test_the_end_of_the_interpreter_takes_workers_along() -> None:
    """A program that never closes its host ends, and so does the worker, even in the middle of a step."""
    program = (
        "import asyncio, functools, time\n"
        "from prover.host import ProcessHost\n"
        "from prover.testing import LineEnv\n"
        "async def main():\n"
        "    host = ProcessHost(LineEnv)\n"
        "    await host.reset('start-3', 0)\n"
        "    print(host._process.pid)\n"
        "    globals()['kept'] = host\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert not Path(f"/proc/{int(done.stdout)}").exists()
    assert done.stderr == ""


def test_a_factory_that_does_not_pickle_is_refused() -> None:
    """The message says what kind of factory a worker needs."""
    host = ProcessHost(lambda: LineEnv())
    with pytest.raises(ConfigError, match="picklable factory"):
        asyncio.run(host.reset("start-3", seed=0))
    assert host.broken


def test_answers_that_do_not_pickle_are_errors() -> None:
    """A snapshot that cannot leave the worker is an EnvError, not a hang."""

    async def use(host: Host) -> None:
        await host.reset("empty", seed=0)
        await host.snapshot()

    with pytest.raises(EnvError, match=r"(?s)snapshot\(\).*pickle"):
        asyncio.run(closing(ProcessHost(faulty("Unpicklable"), GENEROUS), use))


def test_a_pool_reuses_working_hosts_and_replaces_broken_ones() -> None:
    """After a failure the next user gets a fresh environment; otherwise the same one."""
    made: list[Host] = []

    def make() -> Host:
        made.append(InlineHost(LineEnv))
        return made[-1]

    async def use() -> None:
        async with HostPool(make, size=1) as pool:
            for _ in range(3):
                async with pool.host() as host:
                    await host.reset("start-3", seed=0)
            assert len(made) == 1
            with pytest.raises(UnknownNameError):
                async with pool.host() as host:
                    await host.reset("nowhere", seed=0)
            async with pool.host() as host:
                await host.reset("start-3", seed=0)
            assert len(made) == 2
        assert all(host.broken for host in made)

    asyncio.run(use())


def test_a_pool_hands_out_no_more_than_its_size() -> None:
    """With two hosts, five users are never more than two at a time, and all get their turn."""
    lent = most = served = 0

    async def user(pool: HostPool) -> None:
        nonlocal lent, most, served
        async with pool.host() as host:
            lent += 1
            most = max(most, lent)
            await host.reset("start-3", seed=0)
            await asyncio.sleep(0)
            lent -= 1
            served += 1

    async def use() -> None:
        async with HostPool(partial(InlineHost, LineEnv), size=2) as pool:
            await asyncio.gather(*(user(pool) for _ in range(5)))

    asyncio.run(use())
    assert (most, served) == (2, 5)


def test_a_pool_closes_workers_that_are_handed_out() -> None:
    """Leaving the pool ends idle and busy processes alike."""

    async def use() -> None:
        pool = HostPool(partial(ProcessHost, LineEnv, GENEROUS), size=2)
        async with pool.host() as one, pool.host() as two:
            await asyncio.gather(one.reset("start-1", seed=0), two.reset("start-2", seed=0))
            assert len(multiprocessing.active_children()) == 2
            await pool.close()
            assert multiprocessing.active_children() == []

    asyncio.run(use())


def test_a_pool_needs_a_host() -> None:
    """A size below 1 is refused."""
    with pytest.raises(ConfigError, match="at least 1"):
        HostPool(partial(InlineHost, LineEnv), size=0)


@KINDS
def test_counters_are_summed(kind: HostKind) -> None:
    """Two hosts, three steps each: six in all, wherever they run, and told once."""

    async def use(pool: HostPool) -> None:
        async with pool.host() as one, pool.host() as other:
            for host in (one, other):
                await host.reset("start-3", seed=0)
                for _ in range(3):
                    await host.step("look")
        assert await pool.stats() == {"steps": 6.0}
        assert await pool.stats() == {}

    async def run() -> None:
        async with HostPool(lambda: kind(faulty("Counting"), GENEROUS), 2) as pool:
            await use(pool)

    asyncio.run(run())


def test_counters_that_cannot_be_had() -> None:
    """An environment without any has none; one that fails to tell is replaced, and episodes go on."""

    async def run(factory: EnvFactory) -> dict[str, float]:
        async with HostPool(lambda: InlineHost(factory), 1) as pool:
            for _ in range(2):
                async with pool.host() as host:
                    await host.reset("start-3", seed=0)
                found = await pool.stats()
        return found

    assert asyncio.run(run(LineEnv)) == {}
    assert asyncio.run(run(faulty("Counting", mute=True))) == {}
