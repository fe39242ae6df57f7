"""What a success is worth at each of its turns: K continuations from every state, and half as many more, independently.

With these nothing else has to be played. Every segment of the run, whoever names it, is a difference of two states; a
random segment of the same length is the mean over all of them; and what the first pass chooses the second one measures,
so that a choice cannot profit from its own luck.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, NamedTuple

from prover.branch import Branch
from prover.errors import EnvError
from prover.records import Arm, Continuation, Estimate, Failure, Group, Proposal, Segment, Trajectory
from prover.seeds import derive

FIRST, SECOND = BOTH = (0, 1)
"""Two independent sets of continuations of every state: K, as a run would have them, and K / 2."""
_ENV_PATH = 1 << 20
"""Index in the seed path of the environment's seeds; lower ones are the sampling seeds of the states."""


class Outcome(NamedTuple):
    """How one continuation ended: of a ``Continuation`` what is written down."""

    success: bool
    reward: float
    turns: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Continuations from one state, in one pass."""

    outcomes: tuple[Outcome, ...]
    """Of those that finished, in the order of their seeds; how the episode ended, after the last turn."""
    failures: int = 0
    known: bool = False
    """Nothing was continued: the episode had ended."""

    @property
    def arm(self) -> Arm:
        """What a verifier would have counted."""
        return Arm(
            successes=sum(one.success for one in self.outcomes),
            n=len(self.outcomes),
            failures=self.failures,
            mean_reward=0.0 if self.known else fmean(one.reward for one in self.outcomes),
            known=self.known,
        )

    @property
    def turns(self) -> int:
        """Environment turns that they took."""
        return sum(one.turns for one in self.outcomes)

    @property
    def tokens(self) -> int:
        """Tokens that the policy sampled in them."""
        return sum(one.tokens for one in self.outcomes)

    def first(self, number: int | None) -> "State":
        """With fewer continuations: the first ones that finished; None for all."""
        return self if number is None else State(outcomes=self.outcomes[:number], known=self.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One run with the success rate from each of its states."""

    group: int
    """Index in the batch."""
    task: str
    trajectory: int
    """Index in the group."""
    usable: tuple[bool, ...]
    """Whether a judge may name the turn: it is a valid action, whole, and not the last one. Shape (S,)."""
    rewards: tuple[float, ...]
    """Reward of each turn, shape (S,)."""
    passes: tuple[tuple[State, ...], ...]
    """The first and the second pass: states before each turn and after the last one, shape (2, S + 1)."""

    @property
    def n_turns(self) -> int:
        """Number of turns, S."""
        return len(self.usable)

    def value(self, turn: int, passes: Sequence[int] = BOTH) -> float:
        """Success rate from the state before a turn, of the continuations of some passes."""
        arms = [self.passes[which][turn].arm for which in passes]
        return sum(arm.successes for arm in arms) / sum(arm.n for arm in arms)

    def estimate(self, segment: Segment, which: int = FIRST, first: int | None = None) -> Estimate:
        """What a verifier with the continuations of one pass, or the first of them, would have measured."""
        before, after = (self.passes[which][turn].first(first) for turn in (segment.start, segment.end + 1))
        return Estimate(
            before=before.arm,
            after=after.arm,
            turns=before.turns + after.turns,
            tokens=before.tokens + after.tokens,
            gained=sum(self.rewards[segment.start : segment.end + 1]),
        )

    def delta(self, segment: Segment, passes: Sequence[int] = BOTH) -> float:
        """Success rate after a segment minus before it, of the continuations of some passes."""
        return self.value(segment.end + 1, passes) - self.value(segment.start, passes)

    def segments(self, length: int = 1) -> list[Segment]:
        """All segments of so many turns that a judge may name."""
        starts = range(self.n_turns - length + 1)
        return [
            Segment(trajectory=self.trajectory, start=start, end=start + length - 1)
            for start in starts
            if all(self.usable[start : start + length])
        ]

    def random_delta(self, length: int = 1, passes: Sequence[int] = BOTH) -> float | None:
        """What a random segment of so many turns is worth on average; None where there is none."""
        found = [self.delta(segment, passes) for segment in self.segments(length)]
        return fmean(found) if found else None

    def best(self) -> Segment | None:
        """The turn with the largest difference in the first pass, the earliest of several; None where there is none."""
        return max(self.segments(), key=lambda segment: self.delta(segment, (FIRST,)), default=None)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "Course":
        """Back from what ``asdict`` made of it, by way of JSON."""
        passes = tuple(
            tuple(State(**{**one, "outcomes": tuple(Outcome(*ended) for ended in one["outcomes"])}) for one in states)
            for states in record["passes"]
        )
        lists = {name: tuple(record[name]) for name in ("usable", "rewards")}
        return cls(**{**record, **lists, "passes": passes})

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class Surveyor:
    """Surveys each run once, whoever asks, and answers as a verifier from the first pass: no selector has seen it."""

    branch: Branch
    continuations: int
    """K, per state in the first pass."""
    seed: int
    _courses: dict[tuple[int, int], asyncio.Task[Course]] = field(default_factory=dict)
    _played: dict[tuple[int, int, int], tuple[Continuation, ...]] = field(default_factory=dict)
    """Of the first pass by group, run and turn, where the branch keeps what is sampled."""

    async def course(self, group: Group, trajectory: int) -> Course:
        """The survey of one run.

        Raises:
            EnvError: no continuation from one of its states finished.
            SnapshotError: the run cannot be branched.
        """
        key = (group.index, trajectory)
        if key not in self._courses:
            self._courses[key] = asyncio.ensure_future(self._survey(group, trajectory))
        return await self._courses[key]

    async def verify(self, proposal: Proposal, group: Group, *, seed: int) -> Estimate:
        """The estimate of a segment; nothing is drawn from the seed."""
        return (await self.course(group, proposal.segment.trajectory)).estimate(proposal.segment)

    async def verify_all(self, proposals: Sequence[Proposal], group: Group, *, seed: int) -> list[Estimate]:
        """The estimates of several segments; continuations from a state that they share are those of the first."""
        found: list[Estimate] = []
        given: set[tuple[int, int, int]] = set()
        for proposal in proposals:
            segment = proposal.segment
            estimate = await self.verify(proposal, group, seed=seed)
            ends = [(group.index, segment.trajectory, turn) for turn in (segment.start, segment.end + 1)]
            played = tuple(self._played[end] for end in ends if end in self._played and end not in given)
            given.update(ends)
            found.append(replace(estimate, played=played))
        return found

    async def surveyed(self) -> list[Course]:
        """All runs that could be surveyed so far, in the order of groups and members."""
        done = await asyncio.gather(*(self._courses[key] for key in sorted(self._courses)), return_exceptions=True)
        return [course for course in done if isinstance(course, Course)]

    async def _survey(self, group: Group, index: int) -> Course:
        run = group.trajectories[index]
        for turn in range(run.n_turns):  # Before anything is played: no state may lack its snapshot.
            self.branch.check(run, turn)
        states = await asyncio.gather(
            *(self._state(run, group.index, index, turn, which) for which in BOTH for turn in range(run.n_turns))
        )
        last = State(outcomes=(Outcome(run.success, 0.0, 0, 0),), known=True)
        return Course(
            group=group.index,
            task=group.task.id,
            trajectory=index,
            usable=tuple(
                number + 1 < run.n_turns and turn.invalid is None and not turn.truncated
                for number, turn in enumerate(run.turns)
            ),
            rewards=tuple(turn.reward for turn in run.turns),
            passes=((*states[: run.n_turns], last), (*states[run.n_turns :], last)),
        )

    async def _state(self, run: Trajectory, group: int, index: int, turn: int, which: int) -> State:
        path, k = (group, index, which), self.continuations
        numbers = range(k if which == FIRST else max(1, k // 2))
        found = await self.branch.continuations(
            run,
            turn,
            seeds=[derive(self.seed, *path, turn, k) for k in numbers],
            env_seeds=[derive(self.seed, *path, _ENV_PATH, k) for k in numbers],
        )
        done = [one for one in found if isinstance(one, Continuation)]
        failed = [one for one in found if isinstance(one, Failure)]
        if not done:
            raise EnvError(
                f"expected at least one of {len(found)} continuations of task {run.task.id!r} to finish, got none; the "
                f"first failed with {failed[0].cause} in {failed[0].where}: {failed[0].summary}"
            )
        if which == FIRST and self.branch.keep_rows:
            self._played[group, index, turn] = tuple(done)
        outcomes = tuple(Outcome(one.success, one.reward, one.turns, one.tokens) for one in done)
        return State(outcomes=outcomes, failures=len(failed))


def turns_of(
    courses: Iterable[Course], segments: Iterable[tuple[int, Segment]], which: int = FIRST, first: int | None = None
) -> int:
    """Turns of continuations that measuring some segments takes, in one pass; a shared state counts once.

    Args:
        courses: The surveyed runs.
        segments: Group and segment of each.
        which: The pass. What the second one measures the first one has chosen: all of its turns are added.
        first: Continuations of each state that count; None for all.
    """
    of_run = {(course.group, course.trajectory): course for course in courses}
    places = [(of_run[group, segment.trajectory], segment) for group, segment in segments]
    states = {
        (course.group, course.trajectory, turn): course.passes[which][turn].first(first).turns
        for course, segment in places
        for turn in (segment.start, segment.end + 1)
    }
    runs = {(course.group, course.trajectory): course for course, _ in places} if which == SECOND else {}
    return sum(states.values()) + sum(state.turns for run in runs.values() for state in run.passes[FIRST])
