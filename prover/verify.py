"""Measures what a segment is worth: K continuations of the current policy from the states before and after it.

delta = success rate after minus success rate before (method: gamma 1, no intermediate reward). Conditionally unbiased
given the segment, since the continuations are fresh: the judge's choice was made on other rollouts.
"""

import asyncio
from dataclasses import dataclass

from prover.branch import Branch, Continuation
from prover.errors import ConfigError, EnvError
from prover.records import Arm, Estimate, Failure, Group, Proposal
from prover.seeds import derive

_ENV_PATH = 2
"""Index in the seed path of the environment's seeds; 0 and 1 are the sampling seeds of the two arms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonteCarloVerifier:
    """K continuations before and K after a proposed segment, by the policy that sampled the group.

    Continuation k of both arms starts with the same environment seed; sampling seeds are never shared. Turn cap,
    failure rules and temperature are those of the rollouts.
    """

    branch: Branch
    continuations: int
    """K, per arm."""

    def __post_init__(self) -> None:
        if self.continuations < 1:
            raise ConfigError(
                f"expected at least 1 continuation per arm, got {self.continuations}; set "
                "verify.continuations to 2 or more"
            )

    async def verify(self, proposal: Proposal, group: Group, *, seed: int) -> Estimate:
        """Both arms at once; continuations that fail are left out of the rates and counted.

        Raises:
            EnvError: every continuation of an arm failed, so that there is nothing to compare.
            SnapshotError: the trajectory cannot be branched.
        """
        segment = proposal.segment
        trajectory = group.trajectories[segment.trajectory]
        turns = (segment.start, segment.end + 1)
        for turn in turns:  # Before either arm starts: no arm is left running when the other cannot.
            self.branch.check(trajectory, turn)
        env_seeds = [derive(seed, _ENV_PATH, k) for k in range(self.continuations)]
        before, after = await asyncio.gather(
            *(
                self.branch.continuations(
                    trajectory,
                    turn,
                    seeds=[derive(seed, arm, k) for k in range(self.continuations)],
                    env_seeds=env_seeds,
                )
                for arm, turn in enumerate(turns)
            )
        )
        done = [run for run in (*before, *after) if isinstance(run, Continuation)]
        return Estimate(
            before=_arm(before),
            after=_arm(after),
            turns=sum(run.turns for run in done),
            tokens=sum(run.tokens for run in done),
        )


def _arm(runs: list[Continuation | Failure]) -> Arm:
    done = [run for run in runs if isinstance(run, Continuation)]
    failed = [run for run in runs if isinstance(run, Failure)]
    if not done:
        raise EnvError(
            f"expected at least one of {len(runs)} continuations to finish, got none; the first failed with "
            f"{failed[0].cause} in {failed[0].where}:\n{failed[0].detail}"
        )
    return Arm(
        successes=sum(run.success for run in done),
        n=len(done),
        failures=len(failed),
        mean_reward=sum(run.reward for run in done) / len(done),
    )
