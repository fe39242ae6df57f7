"""How a rollout talks to an environment: in this process, in a thread or in a worker process, with deadlines.

A host owns one environment. Whatever goes wrong in it becomes an ``EnvError`` with the traceback (errors of
``prover.errors`` stay what they are), and the host is ``broken`` from then on: a retry gets a fresh one from the pool.
"""

import asyncio
import multiprocessing
import pickle
import signal
import threading
import time
import traceback
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Self

from prover.errors import ConfigError, EnvError, EnvTimeoutError, ProverError, SnapshotError
from prover.protocols import TextEnv

EnvFactory = Callable[[], TextEnv]
"""Makes an environment; picklable for ``ProcessHost``: a class, a module-level function or a ``functools.partial``."""

_CLOSE_DEADLINE = 2.0
_MAKING = "factory"


class Host(ABC):
    """One environment behind an asynchronous interface. One call at a time.

    Every call raises ``EnvTimeoutError`` when the answer comes too late (its result is dropped) and ``EnvError`` when
    the environment raises; ``KeyboardInterrupt`` and ``CancelledError`` pass through.

    Args:
        factory: makes the environment, when the first call needs it.
        step_deadline: seconds that a call may take; None for no limit.
        reset_deadline: seconds for making the environment, for each reset and each restore; None for no limit.
    """

    def __init__(
        self, factory: EnvFactory, step_deadline: float | None = None, *, reset_deadline: float | None = 120.0
    ) -> None:
        self.factory = factory
        self.step_deadline = step_deadline
        self.reset_deadline = reset_deadline
        self.broken = False
        """Whether a call has failed; nothing more can be asked of this host."""

    async def reset(self, task: str, seed: int) -> tuple[str, dict[str, Any]]:
        """Start an episode of a task; returns observation and info."""
        answer: tuple[str, dict[str, Any]] = await self._call("reset", task, seed)
        return answer

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; returns observation, reward, terminated, truncated, info."""
        answer: tuple[str, float, bool, bool, dict[str, Any]] = await self._call("step", action)
        return answer

    async def snapshot(self) -> Any:
        """The state, as a value."""
        return await self._call("snapshot")

    async def state_key(self) -> str:
        """The hash of the state."""
        answer: str = await self._call("state_key")
        return answer

    async def checkpoint(self) -> tuple[Any, str]:
        """``snapshot`` and ``state_key`` in one round trip."""
        answer: tuple[Any, str] = await self._call("checkpoint")
        return answer

    async def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back; returns observation and info."""
        answer: tuple[str, dict[str, Any]] = await self._call("restore", snapshot)
        return answer

    async def reseed(self, seed: int) -> None:
        """Give what follows a random stream of its own; nothing happens in an environment without ``reseed``."""
        await self._call("reseed", seed)

    async def stats(self) -> dict[str, float]:
        """Counters since the last call, of all such environments in the process; none without ``stats``."""
        found: dict[str, float] | None = await self._call("stats")
        return found or {}

    @abstractmethod
    async def close(self) -> None:
        """Free the environment; may be called twice."""

    @abstractmethod
    async def _call(self, call: str, *args: Any) -> Any:
        """Have the environment perform a call within its deadline."""

    def _deadline(self, call: str) -> float | None:
        return self.reset_deadline if call in {"reset", "restore"} else self.step_deadline

    def _refuse_broken(self, call: str) -> None:
        if self.broken:
            raise EnvError(f"expected {call}() on a working host, got one that failed or was closed; take a new host")


class InlineHost(Host):
    """The environment in this process: fast, for environments that never hang.

    A call cannot be interrupted: one that comes back after its deadline raises ``EnvTimeoutError`` then, and the event
    loop waits as long as it runs.
    """

    _env: TextEnv | None = None

    async def _call(self, call: str, *args: Any) -> Any:
        self._refuse_broken(call)
        try:
            if self._env is None:
                self._env = self.factory()
            start = time.monotonic()
            answer = _perform(self._env, call, args)
        except Exception as error:
            self.broken = True
            raise _failure(call, error) from error
        except BaseException:
            self.broken = True
            raise
        deadline = self._deadline(call)
        if deadline is not None and time.monotonic() - start > deadline:
            self.broken = True
            raise _late(call, deadline)
        return answer

    async def close(self) -> None:
        """Close the environment.

        Raises:
            EnvError: its ``close`` raises.
        """
        self.broken = True
        env, self._env = self._env, None
        if env is not None:
            try:
                env.close()
            except Exception as error:
                raise _failure("close", error) from error


class ThreadHost(Host):
    """The environment in this process, in a thread of its own: for environments that wait, e.g. for a search service.

    While it waits, the event loop and the other environments go on. What environments of one process share must bear
    that. A thread cannot be killed: when a call passes its deadline, its answer is dropped and the host replaced, but
    the thread (a daemon) lives as long as the call; what may hang for ever belongs into a ``ProcessHost``.
    """

    _env: TextEnv | None = None
    _calls: "SimpleQueue[Callable[[], None] | None] | None" = None
    _busy = False

    async def _call(self, call: str, *args: Any) -> Any:
        self._refuse_broken(call)
        if self._calls is None:
            self._calls = SimpleQueue()
            # The thread knows the queue alone, so that it does not keep a forgotten host alive.
            threading.Thread(target=_work, args=(self._calls,), daemon=True, name="prover-env").start()
            weakref.finalize(self, self._calls.put, None)
        if self._env is None:
            self._env = await self._exchange(_MAKING, self.reset_deadline, self.factory)
        return await self._exchange(call, self._deadline(call), _perform, self._env, call, args)

    async def _exchange(self, call: str, deadline: float | None, function: Callable[..., Any], *args: Any) -> Any:
        """Have the thread call a function, and wait for what comes of it."""
        assert self._calls is not None, "_call made it"
        answer = asyncio.get_running_loop().create_future()
        self._calls.put(partial(_answer, answer, function, args))
        self._busy = True
        try:
            async with asyncio.timeout(deadline):
                ok, value = await answer
        except TimeoutError as error:
            self.broken = True
            raise _late(call, deadline) from error
        except BaseException:  # Cancelled: the thread is still at it.
            self.broken = True
            raise
        self._busy = False
        if ok:
            return value
        self.broken = True
        raise (_failure(call, value) if isinstance(value, Exception) else value) from value

    async def close(self) -> None:
        """Close the environment, and wait for that unless a call is still in flight, which nobody waits for.

        Raises:
            EnvError: its ``close`` raises.
        """
        env, self._env = self._env, None
        if env is not None and self._calls is not None:
            if self._busy:
                self._calls.put(partial(_quietly, env.close))
            else:
                await self._exchange("close", _CLOSE_DEADLINE, env.close)
        if self._calls is not None:
            self._calls.put(None)
        self.broken = True


class ProcessHost(Host):
    """The environment in a spawned worker process, which is killed when a call passes its deadline.

    A killed worker answers no more, so no late result can arrive. The worker is daemonic; it ends with ``close``, with
    the garbage collection of the host and with the interpreter. Waiting leaves the event loop free; it needs a loop
    with ``add_reader`` (every POSIX one has it). Constructor as for ``Host``; the factory must be picklable.
    """

    _process: BaseProcess
    _end: Callable[[], object]
    _connection: Connection | None = None
    _busy = False

    async def _call(self, call: str, *args: Any) -> Any:
        self._refuse_broken(call)
        if self._connection is None:
            self._connection = self._start()
            await self._exchange(_MAKING, None, self.reset_deadline)
        return await self._exchange(call, (call, args), self._deadline(call))

    def _start(self) -> Connection:
        """Spawn the worker.

        Raises:
            ConfigError: the factory cannot be pickled.
        """
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self.factory), daemon=True, name="prover-env")
        try:
            process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            ours.close()
            self.broken = True
            raise ConfigError(
                f"expected a picklable factory for a worker process, got {self.factory!r} ({error}); use a class, a "
                "module-level function or functools.partial of one"
            ) from error
        finally:
            theirs.close()
        self._process = process
        self._end = weakref.finalize(self, _kill, process, ours)
        return ours

    async def _exchange(self, call: str, message: tuple[str, tuple[Any, ...]] | None, deadline: float | None) -> Any:
        """Send a message (if there is one), wait for the answer, and end the worker if none comes."""
        assert self._connection is not None  # _call started the worker
        self._busy = True
        try:
            async with asyncio.timeout(deadline):
                if message is not None:
                    self._connection.send(message)
                await _readable(self._connection)
            ok, answer = self._connection.recv()
        except BaseException as error:
            ended = isinstance(error, EOFError | ConnectionError)
            if ended:
                self._process.join(_CLOSE_DEADLINE)
            exitcode = self._process.exitcode
            self._abandon()
            if isinstance(error, TimeoutError):
                raise _late(call, deadline) from error
            if ended:
                raise EnvError(
                    f"expected an answer to {call}(), got the end of the worker process (exit code {exitcode}); its "
                    "error output says why"
                ) from error
            if isinstance(error, Exception):
                raise _failure(call, error) from error
            raise
        finally:
            self._busy = False
        if not ok:
            self._abandon()
            raise answer
        return answer

    async def close(self) -> None:
        """Let the worker close its environment, then end it; a worker that does not answer is killed."""
        if self._connection is None or self.broken:
            self.broken = True
            return
        if self._busy:
            # The call in flight sees the pipe end, cleans up and raises.
            self._process.kill()
            return
        with suppress(EnvError):
            await self._exchange("close", ("close", ()), _CLOSE_DEADLINE)
        self._abandon()

    def _abandon(self) -> None:
        self.broken = True
        self._end()


class HostPool:
    """Hands out at most ``size`` hosts at a time and takes them back; a broken one is closed and replaced.

    Hosts are made when they are needed and kept for the next. A pool lives in one event loop.

    >>> from prover.testing import LineEnv
    >>> async def first_observation():
    ...     async with HostPool(lambda: InlineHost(LineEnv), size=2) as pool, pool.host() as host:
    ...         return (await host.reset("start-3", seed=0))[0]
    >>> asyncio.run(first_observation())
    'You are in cell 3 of 0..9.'
    """

    def __init__(self, make_host: Callable[[], Host], size: int) -> None:
        if size < 1:
            raise ConfigError(f"expected a pool of at least 1 host, got size={size}; give a larger size")
        self.make_host = make_host
        self.size = size
        self._free = asyncio.Semaphore(size)
        self._idle: list[Host] = []
        self._lent: set[Host] = set()

    @asynccontextmanager
    async def host(self) -> AsyncIterator[Host]:
        """A working host for the time of the ``async with`` block; waits until one is free."""
        async with self._free:
            host = self._idle.pop() if self._idle else self.make_host()
            self._lent.add(host)
            try:
                yield host
            finally:
                self._lent.discard(host)
                if host.broken:
                    # What broke it has been reported; a failing close adds nothing.
                    with suppress(EnvError):
                        await host.close()
                else:
                    self._idle.append(host)

    async def stats(self) -> dict[str, float]:
        """Counters of the environments since the last call, summed; to be asked while no host is handed out."""
        found: Counter[str] = Counter()
        for host in tuple(self._idle):
            try:
                found.update(await host.stats())
            except EnvError:  # What a worker that ended had counted is lost with it.
                self._idle.remove(host)
        return dict(found)

    async def close(self) -> None:
        """Close every host, also those that are handed out."""
        hosts = [*self._idle, *self._lent]
        self._idle.clear()
        for answer in await asyncio.gather(*(host.close() for host in hosts), return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def _perform(env: TextEnv, call: str, args: tuple[Any, ...]) -> Any:
    """One call of a host on its environment."""
    if call == "reset":
        task, seed = args
        return env.reset(seed=seed, options={"task": task})
    if call == "checkpoint":
        return _perform(env, "snapshot", ()), _perform(env, "state_key", ())
    method = getattr(env, call, None)
    if method is None and call in ("reseed", "stats"):
        return None
    if method is None:
        raise SnapshotError(
            f"expected an environment with {call}(), got {type(env).__name__}; wrap one that cannot save its state in "
            "prover.replay.ReplayEnv, and leave out Gymnasium wrappers around one that can"
        )
    return method(*args)


def _work(calls: "SimpleQueue[Callable[[], None] | None]") -> None:
    """A thread of a host: does what is asked, in order."""
    while (call := calls.get()) is not None:
        call()


def _answer(answer: "asyncio.Future[tuple[bool, Any]]", function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Call a function in a thread and bring what comes of it to the event loop that waits, if it still does."""
    try:
        outcome: tuple[bool, Any] = True, function(*args)
    except BaseException as error:
        outcome = False, error

    def deliver() -> None:
        if not answer.done():
            answer.set_result(outcome)

    with suppress(RuntimeError):  # The loop may have ended in the meantime.
        answer.get_loop().call_soon_threadsafe(deliver)


def _quietly(close: Callable[[], None]) -> None:
    # Its host has failed before, and that has been reported.
    with suppress(Exception):
        close()


def _failure(call: str, error: Exception) -> ProverError:
    """What a host raises for an error of its environment."""
    if isinstance(error, ProverError):
        return error
    return EnvError(
        f"expected an answer to {call}(), got {type(error).__name__}: {error}; the fault lies in the environment\n"
        + "".join(traceback.format_exception(error))
    )


def _late(call: str, deadline: float | None) -> EnvTimeoutError:
    return EnvTimeoutError(
        f"expected an answer to {call}() within {deadline} s, got none in time; raise the deadline if that is normal"
    )


def _serve(connection: Connection, factory: EnvFactory) -> None:
    """The worker: makes the environment, then answers calls until told to close or left alone."""
    # The terminal sends Ctrl-C to every process; the parent decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    env: TextEnv | None = None
    call: str = _MAKING
    args: tuple[Any, ...] = ()
    with suppress(EOFError, OSError):
        while True:
            try:
                if env is None:
                    env = factory()
                    connection.send((True, None))
                else:
                    connection.send((True, _perform(env, call, args)))
            except Exception as error:
                failure = _failure(call, error)
                if failure is error:
                    failure.add_note("".join(traceback.format_exception(error)))
                connection.send((False, failure))
            if call == "close":
                return
            call, args = connection.recv()


async def _readable(connection: Connection) -> None:
    """Wait until there is something to receive."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    descriptor = connection.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def _kill(process: BaseProcess, connection: Connection) -> None:
    """End a worker at once and forget it."""
    connection.close()
    process.kill()
    process.join()
    process.close()
