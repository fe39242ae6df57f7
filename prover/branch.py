"""From a snapshot to K continuations of the current policy.

A continuation restores the environment's exact state before a turn, gives the policy exactly the token ids that it had
seen then, and plays on under the same rules, with what is left of the turn cap. The policy's engine recognises the
shared prefix and computes it once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prover.errors import SnapshotError
from prover.records import Continuation, Failure, Trajectory
from prover.rollout import Place, Rollout, failure_of
from prover.transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Continuations of ``rollout.policy`` from states of a stored trajectory."""

    rollout: Rollout
    restore_rng: bool = False
    """Keep the environment's restored random state; by default every continuation gets a fresh environment seed."""
    keep_rows: bool = False
    """Keep what continuations sampled, to be trained on."""

    async def continuations(
        self, trajectory: Trajectory, turn: int, *, seeds: Sequence[int], env_seeds: Sequence[int]
    ) -> list[Continuation | Failure]:
        """One continuation from the state before ``turn`` for each pair of seeds; failed ones are records, not zeros.

        Raises:
            SnapshotError: see ``check``.
        """
        self.check(trajectory, turn)
        # Nobody branches from a continuation, so its states are not stored.
        player = replace(self.rollout, rules=replace(self.rollout.rules, record_states=False))
        pairs = zip(seeds, env_seeds, strict=True)
        return list(await asyncio.gather(*(self._attempt(player, trajectory, turn, *pair) for pair in pairs)))

    def check(self, trajectory: Trajectory, turn: int) -> None:
        """Whether continuations can start before ``turn`` of a trajectory.

        Raises:
            SnapshotError: there is no such turn, no snapshot before it, or other weights sampled the trajectory.
        """
        if not 0 <= turn < trajectory.n_turns:
            raise SnapshotError(
                f"expected a turn in 0..{trajectory.n_turns - 1}, got {turn}; there is nothing to continue from "
                "after the last turn"
            )
        policy = self.rollout.policy
        if trajectory.policy_version != policy.version:
            raise SnapshotError(
                f"expected a trajectory of policy version {policy.version}, got version {trajectory.policy_version}; "
                "verify a group before the weights change"
            )
        if trajectory.turns[turn].snapshot is None:
            raise SnapshotError(
                f"expected a snapshot before turn {turn}, got none; roll out with record_states=True and an "
                "environment that can snapshot (or wrap it in prover.replay.ReplayEnv)"
            )

    async def _attempt(
        self, player: Rollout, trajectory: Trajectory, turn: int, seed: int, env_seed: int
    ) -> Continuation | Failure:
        rules, place = player.rules, Place()
        for tries_left in range(rules.retries, -1, -1):
            place.where, place.turn = "env.restore", turn
            try:
                async with player.hosts.host() as host, asyncio.timeout(rules.episode_deadline_s):
                    recorded = trajectory.turns[turn]
                    observation, info = await host.restore(recorded.snapshot)
                    wanted, back = (
                        (recorded.state_key, trajectory.observation(turn)),
                        (await host.state_key(), observation),
                    )
                    if back != wanted:
                        raise SnapshotError(
                            f"expected state key and observation before turn {turn} back after restoring its snapshot, "
                            f"{wanted!r}, got {back!r}; run `prover check-env` on the environment"
                        )
                    if not self.restore_rng:
                        await host.reseed(env_seed)
                    transcript = Transcript.fork(
                        player.policy.codec, trajectory, turn, mode=rules.mode, window=rules.window
                    )
                    played = await player.play(host, transcript, info, seed=seed, first_turn=turn, place=place)
                    return Continuation(
                        success=played.success,
                        reward=played.reward,
                        turns=len(played.turns),
                        tokens=played.tokens,
                        rows=transcript.rows() if self.keep_rows else (),
                    )
            except Exception as error:
                # A state that does not come back will not come back on a second try either.
                if not tries_left or isinstance(error, SnapshotError):
                    return failure_of(error, place, task=trajectory.task.id, member=trajectory.member, seed=seed)
        raise AssertionError("unreachable: the last try returns")
