"""Points at the turn that brought a scripted expert closest to the goal: a reference, where the environment has one."""

import asyncio
from collections.abc import Callable
from typing import Any

from prover.protocols import TextEnv
from prover.records import Group, NoProposal, Proposal, Segment, Trajectory
from prover.seeds import derive
from prover.segments import choose_success, validate_segment


class ExpertJudge:
    """Names the turn of the shortest success that saves the expert the most turns; the first of equals.

    The expert watches the success up to a state and then takes over, in an environment of its own: what it has read
    counts, as it does for a policy that goes on. It is told the goal but searches, so several play from each state, the
    same ones from all of them. The judge holds up the event loop for one such episode at a time.

    Args:
        make: Makes the environment, whose ``expert(seed)`` returns a player with ``act(observation, info)``.
        samples: Experts that play from each state.
        limit: Turns after which they stop; where they do not succeed they are taken to need so many.
    """

    name = "expert"

    def __init__(self, make: Callable[[], TextEnv], samples: int = 4, limit: int = 100) -> None:
        self.samples = samples
        self.limit = limit
        self._make = make
        self._env: Any = None

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The turn; ``NoProposal`` where states or an expert are missing, or no turn brings it closer."""
        if group.n_success == 0:
            return NoProposal(reason="no_success")
        if self._env is None:
            self._env = self._make()
        if not hasattr(self._env, "expert"):
            return NoProposal(reason="no_expert", detail=f"{type(self._env).__name__} has no expert(seed)")
        chosen = choose_success(group)
        success = group.trajectories[chosen]
        segments = [Segment(trajectory=chosen, start=turn, end=turn) for turn in range(success.n_turns)]
        valid = [segment for segment in segments if validate_segment(segment, success, max_length=1) is None]
        if not valid:
            return NoProposal(reason="no_valid_segment", detail=f"none of {success.n_turns} turns")
        missing = [number for number, turn in enumerate(success.turns) if turn.snapshot is None]
        if missing:
            return NoProposal(reason="no_snapshots", detail=f"there is no state before turn {missing[0]}")
        left = dict.fromkeys(sorted({turn for one in valid for turn in (one.start, one.end + 1)}), 0)
        for turn in left:
            for sample in range(self.samples):
                left[turn] += self._turns_left(success, turn, derive(seed, sample))
                await asyncio.sleep(0)
        best = max(valid, key=lambda segment: left[segment.start] - left[segment.end + 1])
        before, after = (left[turn] / self.samples for turn in (best.start, best.end + 1))
        if after >= before:
            return NoProposal(reason="nothing_closer", detail=f"no turn of {len(valid)} saves the expert a turn")
        reason = f"turn {best.start} {success.turns[best.start].action!r}: the expert needs {before:g} turns before it"
        return Proposal(segment=best, reason=f"{reason} and {after:g} after it", judge=self.name)

    async def aclose(self) -> None:
        """Close the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def _turns_left(self, success: Trajectory, turn: int, seed: int) -> int:
        """Turns that an expert needs from the state before a turn, having watched those before it."""
        env = self._env
        observation, info = env.restore(success.turns[0].snapshot)
        player = env.expert(seed)
        for seen in success.turns[1 : turn + 1]:
            player.act(observation, info)
            observation, info = env.restore(seen.snapshot)
        for played in range(self.limit):
            observation, _, terminated, truncated, info = env.step(player.act(observation, info))
            if terminated or truncated:
                return played + 1 if info["success"] else self.limit
        return self.limit
