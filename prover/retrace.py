"""From recorded actions back to the states before them.

A stored trajectory has no snapshots. Its environment is reset with the recorded task and seed and does everything
again; each observation, reward and state key must be the recorded one. Environments that answer the same to the same
seed and actions give back exactly the states that the policy was in.
"""

import asyncio
from dataclasses import replace
from typing import Any

from prover.errors import SnapshotError
from prover.host import HostPool
from prover.records import Group, Trajectory, Turn


async def retrace(hosts: HostPool, group: Group) -> Group:
    """The group with a snapshot and a state key before every turn of every trajectory.

    Raises:
        SnapshotError: an environment answered otherwise than it did.
        EnvError: an environment failed.
    """
    runs = (_trajectory(hosts, run, group.env_seed) for run in group.trajectories)
    # All of them end before an error is raised, so that none is left running.
    back = await asyncio.gather(*runs, return_exceptions=True)
    for error in back:
        if isinstance(error, BaseException):
            raise error
    return replace(group, trajectories=tuple(run for run in back if isinstance(run, Trajectory)))


async def _trajectory(hosts: HostPool, trajectory: Trajectory, env_seed: int) -> Trajectory:
    turns: list[Turn] = []
    async with hosts.host() as host:
        opening, info = await host.reset(trajectory.task.id, env_seed)
        _compare(trajectory, "the first observation", trajectory.opening, opening)
        for number, turn in enumerate(trajectory.turns):
            snapshot, state_key = await host.checkpoint()
            if turn.state_key:  # Runs that measure nothing record no states.
                _compare(trajectory, f"the state key before turn {number}", turn.state_key, state_key)
            turns.append(replace(turn, snapshot=snapshot, state_key=state_key))
            if _unplayed(trajectory, number):
                break
            result, reward, _, _, info = await host.step(turn.action)
            what = f"the answer to turn {number} ({turn.action[:80]!r})"
            _compare(trajectory, what, (turn.result, turn.reward), (result, float(reward)))
    _compare(trajectory, "the outcome", trajectory.success, bool(info["success"]))
    return replace(trajectory, turns=tuple(turns))


def _unplayed(trajectory: Trajectory, turn: int) -> bool:
    """Whether the environment never saw this turn: its reply was cut, and that ended the episode."""
    return trajectory.end == "cut" and turn == trajectory.n_turns - 1


def _compare(trajectory: Trajectory, what: str, recorded: Any, got: Any) -> None:
    if got != recorded:
        raise SnapshotError(
            f"expected {what} of member {trajectory.member} of task {trajectory.task.id!r} as it was recorded, "
            f"{str(recorded)[:200]!r}, got {str(got)[:200]!r}; the environment, its data or its options have changed, "
            "or it does not repeat itself"
        )
