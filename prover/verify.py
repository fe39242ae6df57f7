"""Measures what a segment is worth: K continuations of the current policy from the states before and after it.

delta = success rate after minus success rate before (method: gamma 1, no intermediate reward). Conditionally unbiased
given the segment, since the continuations are fresh: the judge's choice was made on other rollouts.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from prover.branch import Branch
from prover.errors import ConfigError, EnvError, SnapshotError
from prover.records import Arm, Continuation, Estimate, Failure, Group, Proposal, Trajectory
from prover.seeds import derive

_ENV_PATH = 1 << 20
"""Index in the seed path of the environment's seeds; lower ones are the sampling seeds of the arms."""
_FIRST_STAGE = 2
"""Continuations per arm that a sequential measurement begins with; every further stage doubles their number."""
_State = tuple[int, int]
"""Index of the trajectory, and the turn that follows the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonteCarloVerifier:
    """K continuations before and K after a proposed segment, by the policy that sampled the group.

    Continuation k of all arms of a trajectory starts with the same environment seed; sampling seeds are never shared.
    Turn cap, failure rules and temperature are those of the rollouts. The state after the last turn is not continued:
    the episode's own outcome is taken for it.
    """

    branch: Branch
    continuations: int
    """K, per arm."""
    sequential: bool = False
    """Begin with 2 continuations per arm; stop there if all of them end alike, and from 4 on unless the rate after is
    above that before. What is left out would seldom have earned anything."""
    signed: bool = False
    """With ``sequential``: go on for a loss as well."""
    chance: bool = True
    """Whether the environment may answer the same action differently. Where it does not, a state from which the policy
    had no alternative (a scripted or greedy one never has) is not continued: it can only end as the episode did."""

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
        (estimate,) = await self.verify_all([proposal], group, seed=seed)
        return estimate

    async def verify_all(self, proposals: Sequence[Proposal], group: Group, *, seed: int) -> list[Estimate]:
        """All arms of all segments at once. Each state is continued from once, however many segments share it.

        Raises:
            EnvError: every continuation of an arm failed, so that there is nothing to compare.
            SnapshotError: a trajectory cannot be branched.
        """
        runs = group.trajectories
        pairs = [_states(proposal) for proposal in proposals]
        arms: dict[_State, _Arm] = {}
        for index, turn in sorted({state for pair in pairs for state in pair}):
            ended = turn == runs[index].n_turns
            if not ended:  # Before any arm starts: none is left running when another one cannot.
                self.branch.check(runs[index], turn)
            known = ended or (not self.chance and _forced(runs[index], turn))
            arms[index, turn] = _Arm(
                path=len(arms),
                known=runs[index].success if known else None,
                ahead=sum(later.reward for later in runs[index].turns[turn:]),
            )
        stage = _FIRST_STAGE if self.sequential else self.continuations
        while True:
            open_ = [pair for pair in pairs if _undecided(*(arms[state] for state in pair), signed=self.signed)]
            undecided = {state for pair in open_ for state in pair}
            upto = min(stage, self.continuations)
            going = [state for state in sorted(undecided) if arms[state].known is None and len(arms[state].runs) < upto]
            if not going:
                return _estimates(runs, proposals, arms, kept=self.branch.keep_rows)
            await asyncio.gather(*(self._continue(arms[state], runs, state, upto, seed) for state in going))
            stage *= 2

    async def _continue(self, arm: "_Arm", runs: Sequence[Trajectory], state: _State, upto: int, seed: int) -> None:
        """Continue from a state until there are ``upto`` continuations."""
        numbers = range(len(arm.runs), upto)
        arm.runs += await self.branch.continuations(
            runs[state[0]],
            state[1],
            seeds=[derive(seed, arm.path, k) for k in numbers],
            env_seeds=[derive(seed, _ENV_PATH, k) for k in numbers],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorVerifier:
    """Measures without a single continuation: by how the group's own runs ended that passed through the same state.

    The rate of a state is the share of successes among the runs that visited it (GiGPO's anchor states, arXiv
    2505.10978, with undiscounted outcomes). Cheap, and biased: the judged success is one of these runs.
    """

    async def verify(self, proposal: Proposal, group: Group, *, seed: int) -> Estimate:
        """One segment.

        Raises:
            SnapshotError: the group's states were not recorded.
        """
        (estimate,) = await self.verify_all([proposal], group, seed=seed)
        return estimate

    async def verify_all(self, proposals: Sequence[Proposal], group: Group, *, seed: int) -> list[Estimate]:
        """Several segments; nothing is drawn from the seed.

        Raises:
            SnapshotError: the group's states were not recorded.
        """
        runs = group.trajectories
        visited = [{turn.state_key for turn in trajectory.turns} for trajectory in runs]
        if any("" in keys for keys in visited):
            raise SnapshotError("expected recorded states, got none; roll out with record_states=True")
        found = []
        for proposal in proposals:
            before, after = (self._arm(runs, visited, *state) for state in _states(proposal))
            found.append(Estimate(before=before, after=after, turns=0, tokens=0, gained=_gained(runs, proposal)))
        return found

    @staticmethod
    def _arm(runs: Sequence[Trajectory], visited: Sequence[set[str]], index: int, turn: int) -> Arm:
        if turn == runs[index].n_turns:
            return Arm(successes=int(runs[index].success), n=1, known=True)
        key = runs[index].turns[turn].state_key
        there = [trajectory for trajectory, keys in zip(runs, visited, strict=True) if key in keys]
        ahead = []
        for trajectory in there:
            first = next(t for t, visit in enumerate(trajectory.turns) if visit.state_key == key)
            ahead.append(sum(visit.reward for visit in trajectory.turns[first:]))
        return Arm(successes=sum(run.success for run in there), n=len(there), mean_reward=sum(ahead) / len(there))


@dataclass(slots=True, kw_only=True)
class _Arm:
    """A state while it is being measured."""

    path: int
    """Index in the seed path of its sampling seeds."""
    known: bool | None
    """How the episode ended, at a state from which it could end in no other way: after its last turn, for one."""
    ahead: float = 0.0
    """Reward of the episode from the state on, where that is known."""
    runs: list[Continuation | Failure] = field(default_factory=list)

    @property
    def done_runs(self) -> tuple[Continuation, ...]:
        """Those that finished."""
        return tuple(run for run in self.runs if isinstance(run, Continuation))

    @property
    def won(self) -> list[bool]:
        """Outcomes so far."""
        if self.known is not None:
            return [self.known]
        return [run.success for run in self.done_runs]

    def done(self) -> Arm:
        """What was counted.

        Raises:
            EnvError: nothing finished.
        """
        if self.known is not None:
            return Arm(successes=int(self.known), n=1, known=True, mean_reward=self.ahead)
        done = self.done_runs
        failed = [run for run in self.runs if isinstance(run, Failure)]
        if not done:
            raise EnvError(
                f"expected at least one of {len(self.runs)} continuations to finish, got none; the first failed with "
                f"{failed[0].cause} in {failed[0].where}:\n{failed[0].detail}"
            )
        return Arm(
            successes=sum(run.success for run in done),
            n=len(done),
            failures=len(failed),
            mean_reward=sum(run.reward for run in done) / len(done),
        )


def _undecided(before: _Arm, after: _Arm, *, signed: bool) -> bool:
    """Whether more continuations could still show a difference that earns something."""
    if not before.won or not after.won or len({*before.won, *after.won}) == 1:
        return not before.won or not after.won
    gain = fmean(after.won) - fmean(before.won)
    return len(before.runs) < 2 * _FIRST_STAGE or gain > 0 or (signed and gain != 0)


def _forced(run: Trajectory, turn: int) -> bool:
    """Whether every token that was sampled from a turn on had probability 1."""
    return not any(row.logprobs[row.turn_of_token >= turn].any() for row in run.rows)


def _states(proposal: Proposal) -> tuple[_State, _State]:
    """The states before and after a segment."""
    segment = proposal.segment
    return (segment.trajectory, segment.start), (segment.trajectory, segment.end + 1)


def _gained(runs: Sequence[Trajectory], proposal: Proposal) -> float:
    segment = proposal.segment
    return sum(turn.reward for turn in runs[segment.trajectory].turns[segment.start : segment.end + 1])


def _estimates(
    runs: Sequence[Trajectory], proposals: Sequence[Proposal], arms: Mapping[_State, _Arm], *, kept: bool
) -> list[Estimate]:
    """The differences. What was played from a state that several segments share counts for the first of them."""
    done = {state: arm.done() for state, arm in arms.items()}
    counted: set[_State] = set()
    found = []
    for proposal in proposals:
        before, after = _states(proposal)
        played = [arms[state].done_runs for state in (before, after) if state not in counted]
        cost = [run for part in played for run in part]
        counted |= {before, after}
        found.append(
            Estimate(
                before=done[before],
                after=done[after],
                turns=sum(run.turns for run in cost),
                tokens=sum(run.tokens for run in cost),
                gained=_gained(runs, proposal),
                played=tuple(part for part in played if part) if kept else (),
            )
        )
    return found
