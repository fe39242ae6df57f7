"""Rules on snapshots: what ``snapshot``, ``restore`` and ``state_key`` promise."""

import asyncio
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from prover.checks.case import (
    COMPLETE,
    SHOWN,
    Broken,
    Case,
    Skipped,
    difference_after,
    expect_continuation,
    take_snapshots,
)
from prover.checks.walk import Answer, Walk, contract_info, difference, follow, instance, random_walk, start
from prover.host import EnvFactory, ProcessHost

_REPEATS = 24
_REPEATED_STEPS = 256
_PROCESS_DEADLINE = 60.0


def snapshot_is_pure(case: Case) -> None:
    """Taking snapshots and state keys changes nothing."""
    with instance(case.factory) as env:
        got = [start(env, case.walk.task, case.walk.seed)]
        for action in case.walk.actions:
            for _ in range(2):
                env.snapshot()
                env.state_key()
            got += follow(env, [action])
        found = difference(case.walk.answers, got)
        if found:
            raise Broken(f"{found}, when snapshot() was called between steps; snapshot() may only read")


def restore_exact(case: Case) -> None:
    """Restoring in the same instance brings back observation, info and state, and all that follows from them."""
    with instance(case.factory) as env:
        for depth, snapshot in take_snapshots(env, case.walk):
            expect_continuation(env, snapshot, case.walk, depth, "after the episode had gone on")


def restore_twice(case: Case) -> None:
    """A snapshot is not used up or changed by what follows its restoration."""
    with instance(case.factory) as env:
        for depth, snapshot in take_snapshots(env, case.walk):
            for time in ("first", "second", "third"):
                expect_continuation(env, snapshot, case.walk, depth, f"for the {time} time")


def restore_elsewhere(case: Case) -> None:
    """A snapshot comes back in another instance, new or used, after the first was closed."""
    with instance(case.factory) as env:
        taken = take_snapshots(env, case.walk)
    with instance(case.factory) as used:
        for depth, snapshot in taken:
            with instance(case.factory) as new:
                expect_continuation(new, snapshot, case.walk, depth, "in a new instance without reset()")
            random_walk(used, case.other_task, case.seed + 1, case.actions)
            expect_continuation(used, snapshot, case.walk, depth, "in an instance that had played another episode")


def snapshot_pickles(case: Case) -> None:
    """A snapshot survives pickling."""
    with instance(case.factory) as env:
        for depth, snapshot in take_snapshots(env, case.walk):
            try:
                copy = pickle.loads(pickle.dumps(snapshot))
            except Exception as error:
                raise Broken(
                    f"expected snapshot() to return a value that pickles, got {type(error).__name__}: {error}; keep "
                    "generators, open files, locks and functions out of it"
                ) from error
            expect_continuation(env, copy, case.walk, depth, "from a pickled copy")


def restore_in_process(case: Case) -> None:
    """A snapshot comes back in a spawned process, with the same state key."""
    try:
        pickle.dumps(case.factory)
    except Exception as error:
        raise Skipped(f"the factory does not pickle ({error}); give a class or a module-level function") from error
    depth = case.walk.depths[-1]
    with instance(case.factory) as env:
        _, snapshot = take_snapshots(env, case.walk)[-1]
    # A thread of its own, because the caller may already be inside an event loop.
    with ThreadPoolExecutor(1) as pool:
        work = _continue_in_process(case.factory, snapshot, case.walk, depth)
        shown, got = pool.submit(asyncio.run, work).result()
    found = difference([case.walk.answers[depth]], [shown], SHOWN, first=depth)
    found = found or difference_after(case.walk, depth, got)
    if found:
        raise Broken(f"{found}, when the snapshot was restored in another process; {COMPLETE}")


def restore_counters(case: Case) -> None:
    """Counters come back: however often a snapshot is continued, no flag comes earlier or later."""
    depth = case.walk.depths[len(case.walk.depths) // 2]
    rest = case.walk.actions[depth:]
    with instance(case.factory) as env:
        snapshot = dict(take_snapshots(env, case.walk))[depth]
        for number in range(1, _REPEATED_STEPS // len(rest) + 1):
            env.restore(snapshot)
            found = difference(
                case.walk.answers[depth + 1 :], follow(env, rest), ("terminated", "truncated"), first=depth + 1
            )
            if found:
                raise Broken(
                    f"{found}, in continuation {number} of one snapshot; put step counters into the snapshot, and use "
                    "no wrapper that counts (TimeLimit)"
                )


def restore_rng(case: Case) -> None:
    """The RNG comes back: every continuation with the same actions is the same."""
    with instance(case.factory) as env:
        for depth, snapshot in take_snapshots(env, case.walk):
            for number in range(1, _REPEATS + 1):
                env.restore(snapshot)
                got = follow(env, case.walk.actions[depth:])
                found = difference_after(case.walk, depth, got)
                if found:
                    raise Broken(
                        f"{found}, in continuation {number} of one snapshot; put the state of the RNG into the "
                        "snapshot, and draw from no other"
                    )


def reseed(case: Case) -> None:
    """After restore, the same new seed gives the same continuation."""
    with instance(case.factory) as env:
        method: Callable[[int], None] | None = getattr(env, "reseed", None)
        if method is None:
            raise Skipped("the environment has no reseed(seed); its continuations differ by the policy alone")
        depth, snapshot = take_snapshots(env, case.walk)[0]
        runs = []
        for _ in range(2):
            env.restore(snapshot)
            method(case.seed + 1)
            runs.append(follow(env, case.walk.actions[depth:]))
        found = difference(runs[0], runs[1], first=depth + 1)
        if found:
            raise Broken(
                f"{found}, after restore() and reseed({case.seed + 1}) twice; seed every source of chance there"
            )


def siblings(case: Case) -> None:
    """Continuations of one snapshot, stepped in turns, disturb neither each other nor the episode it was taken from."""
    depth = case.walk.depths[len(case.walk.depths) // 2]
    with instance(case.factory) as parent, instance(case.factory) as one, instance(case.factory) as two:
        start(parent, case.walk.task, case.walk.seed)
        follow(parent, case.walk.actions[:depth])
        snapshot = parent.snapshot()
        one.restore(snapshot)
        _, info = two.restore(snapshot)
        runs: dict[str, list[Answer]] = {"the episode it was taken from": [], "a sibling": []}
        for number, action in enumerate(case.walk.actions[depth:]):
            choices = case.actions or contract_info(info).get("admissible_actions") or (action,)
            *_, ended, cut, info = two.step(choices[number % len(choices)])
            if ended or cut:
                _, info = two.restore(snapshot)
            runs["a sibling"] += follow(one, [action])
            runs["the episode it was taken from"] += follow(parent, [action])
        for who, got in runs.items():
            found = difference_after(case.walk, depth, got)
            if found:
                raise Broken(
                    f"{found}, in {who}, when another continuation of the snapshot was stepped in between; share "
                    "nothing that changes: copy it in snapshot() and restore(), or keep immutable values"
                )


async def _continue_in_process(
    factory: EnvFactory, snapshot: Any, walk: Walk, depth: int
) -> tuple[Answer, list[Answer]]:
    """What a worker process shows after restoring a snapshot, and answers to the rest of the walk."""
    host = ProcessHost(factory, _PROCESS_DEADLINE)
    try:
        observation, info = await host.restore(snapshot)
        key = await host.state_key()
        shown = replace(walk.answers[depth], observation=observation, info=contract_info(info), state_key=key)
        got: list[Answer] = []
        for action in walk.actions[depth:]:
            observation, reward, terminated, truncated, info = await host.step(action)
            got.append(
                Answer(
                    observation=observation,
                    reward=float(reward),
                    terminated=bool(terminated),
                    truncated=bool(truncated),
                    info=contract_info(info),
                    state_key=await host.state_key(),
                )
            )
        return shown, got
    finally:
        await host.close()
