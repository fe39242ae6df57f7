"""The nouns: what flows through one update. Frozen, slotted records; every field says its shape and unit.

Turns are 0-based. A segment ``[start, end]`` is inclusive; the state "before" it is the snapshot before turn ``start``,
the state "after" it is the snapshot before turn ``end + 1``. Shape suffixes: ``_B`` groups, ``_G`` members of a group,
``_T`` tokens of a row, ``_S`` turns of a trajectory, ``_K`` continuations of one arm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class EndReason(StrEnum):
    """Why an episode ended."""

    DONE = "done"
    """The environment terminated or truncated it."""
    TURN_CAP = "turn_cap"
    """The rollout's turn cap was reached."""
    CONTEXT = "context"
    """The next prompt and reply would not have fitted into the policy's context."""
    CUT = "cut"
    """A reply was cut by the token limit and the run is configured to end the episode then."""


class FailureCause(StrEnum):
    """Why an episode, a judgement or a continuation yielded nothing. Failures are counted, never scored."""

    ERROR = "error"
    """The environment, judge or policy raised."""
    TIMEOUT = "timeout"
    """It answered after its deadline, or not at all."""
    MISMATCH = "mismatch"
    """Replaying or restoring a state did not bring back what was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One start state of an environment: the id fixes it."""

    id: str
    """Stable id within the environment, e.g. ``valid_unseen/<task>/<trial>``."""
    split: str
    """Split the task was drawn from."""
    kind: str = ""
    """Task type for per-type results, e.g. ``pick_two_obj_and_place``; empty when the environment has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One action of the policy and what the environment answered."""

    text: str
    """Everything the policy wrote in this turn, decoded from its tokens."""
    action: str
    """The action that was sent to the environment; empty when none could be read."""
    result: str
    """The observation that followed."""
    reward: float
    """The environment's reward for this step."""
    invalid: str | None = None
    """Why the turn does not count as a valid action: ``format: ...``, ``env`` (no effect), ``truncated``."""
    truncated: bool = False
    """The reply was cut by the token limit; no action is read in it."""
    prompt_length: int = 0
    """Number of leading ids of the turn's row that the policy saw before it sampled this turn."""
    snapshot: Any = None
    """Environment state before the turn, as ``TextEnv.snapshot`` returned it; None where snapshots are off."""
    state_key: str = ""
    """Stable hash of the environment state before the turn."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenRow:
    """Exactly the ids that the policy saw and sampled, in order. One row a trajectory, or one a turn in window mode."""

    ids: NDArray[np.int64]
    """Token ids, shape (T,)."""
    turn_of_token: NDArray[np.int64]
    """0-based turn that sampled the token, -1 for prompt and observation tokens, shape (T,)."""
    loss_mask: NDArray[np.bool_]
    """True where the token is trained on: sampled by the policy and not masked for another reason, shape (T,)."""
    logprobs: NDArray[np.float64]
    """Log-probability under the sampling distribution; 0 for tokens that were not sampled, shape (T,)."""
    support: tuple[tuple[int, ...] | None, ...]
    """Per token the ids among which it was sampled (admissible decoding); None where the whole vocabulary was. (T,)"""
    temperature: float = 1.0
    """Sampling temperature of the row's tokens."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """One episode of the policy on one task."""

    task: Task
    member: int
    """Index within the group."""
    seed: int
    """Entropy of the episode's sampling; turn seeds are derived from it."""
    policy_version: int
    """Version of the weights that sampled it."""
    opening: str
    """The observation before turn 0."""
    turns: tuple[Turn, ...]
    rows: tuple[TokenRow, ...]
    reward: float
    """Sum of the environment's rewards."""
    success: bool
    """The environment's own verdict, ``info["success"]``."""
    end: EndReason
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Figures of the episode beside its success, ``info["metrics"]`` of the last observation."""

    def observation(self, turn: int) -> str:
        """The observation that the policy saw before ``turn``."""
        return self.opening if turn == 0 else self.turns[turn - 1].result

    @property
    def n_turns(self) -> int:
        """Number of turns, S."""
        return len(self.turns)

    def reply_probabilities(self) -> NDArray[np.float64]:
        """Probability of each turn's reply under the policy, shape (S,); NaN where no tokens of the turn are kept."""
        logprobs = np.full(self.n_turns, np.nan)
        for row in self.rows:
            for turn in np.unique(row.turn_of_token[row.turn_of_token >= 0]):
                logprobs[turn] = row.logprobs[row.turn_of_token == turn].sum()
        found: NDArray[np.float64] = np.exp(logprobs)
        return found

    @property
    def n_sampled(self) -> int:
        """Number of tokens that the policy sampled."""
        return sum(int((row.turn_of_token >= 0).sum()) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What an environment says of one of its splits, to be kept beside every result."""

    ceiling: float | None = None
    """Highest success rate that the tasks allow, where it is below 1."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """What identifies data and tasks: hashes, sizes, options; ``label`` names what must not be mistaken for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An episode, judgement or continuation that yielded nothing after all its retries."""

    cause: FailureCause
    where: str
    """Component and call, e.g. ``env.step``."""
    task: str
    member: int
    seed: int
    turn: int
    """Turn at which it failed; -1 before the first."""
    detail: str
    """Message and traceback."""

    @property
    def summary(self) -> str:
        """The last line of the traceback: what went wrong."""
        return self.detail.strip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """The rollouts of one task by one policy."""

    index: int
    """Position in the update."""
    task: Task
    trajectories: tuple[Trajectory, ...]
    """Members that finished; failed ones are left out."""
    failures: tuple[Failure, ...] = ()
    env_seed: int = 0
    """Seed that the environment of every member was reset with."""

    @property
    def rewards_G(self) -> NDArray[np.float64]:  # noqa: N802 - shape suffix
        """Outcome of each trajectory, 1 for success and 0 otherwise, shape (G,)."""
        return np.array([float(t.success) for t in self.trajectories])

    @property
    def n_success(self) -> int:
        """Number of successful members."""
        return sum(t.success for t in self.trajectories)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Turns ``start..end`` (inclusive, 0-based) of ``group.trajectories[trajectory]``."""

    trajectory: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """Number of turns."""
        return self.end - self.start + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A judge's claim that a segment made the difference. It carries no amount of credit."""

    segment: Segment
    reason: str
    """The claim in words."""
    judge: str
    """Name of the judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProposal:
    """A judge's answer when it has nothing valid to propose; the group's update is then plain GRPO."""

    reason: str
    """Short code that is counted, e.g. ``nothing_distinctive``, ``too_long``, ``error``."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """How one continuation of the current policy from a state ended."""

    success: bool
    reward: float
    """Sum of the rewards from the branching state on."""
    turns: int
    tokens: int
    """Tokens that the policy sampled."""
    rows: tuple[TokenRow, ...] = field(default=(), compare=False, repr=False)
    """What was sampled, where it is kept to be trained on; the ids before the branching state are masked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Continuations of the current policy from one state."""

    successes: int
    n: int
    """Continuations that finished, K less failures."""
    failures: int = 0
    """Continuations that were left out."""
    mean_reward: float = 0.0
    """Mean of what they earned from that state on."""
    known: bool = False
    """Nothing was continued: the episode could only end as it did. It had ended, or neither policy nor environment
    had an alternative any more. Adds nothing to the standard error of a difference (``CreditRule.min_z``)."""

    @property
    def rate(self) -> float:
        """Success rate; NaN when nothing finished."""
        return self.successes / self.n if self.n else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the verifier measured for one segment."""

    before: Arm
    after: Arm
    turns: int
    """Environment turns of the continuations that finished, of both arms."""
    tokens: int
    """Tokens sampled in them."""
    gained: float = 0.0
    """Reward that the segment itself brought."""
    played: tuple[tuple[Continuation, ...], ...] = field(default=(), compare=False, repr=False)
    """The continuations that ``turns`` counts, one tuple per state, where they are kept to be trained on."""

    @property
    def reward_delta(self) -> float:
        """Mean reward with the segment, its own included, minus mean reward from before it."""
        return self.gained + self.after.mean_reward - self.before.mean_reward

    @property
    def delta(self) -> float:
        """Success rate after minus success rate before."""
        return self.after.rate - self.before.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """An amount that is added to the advantage of every trained token of a segment."""

    segment: Segment
    amount: float
    """lambda times delta, in units of the advantage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn."""

    temperature: float = 1.0
    max_tokens: int = 16
    """Limit of one reply, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt for the policy."""

    ids: Sequence[int]
    """Token ids of the prompt."""
    sampling: Sampling
    seed: int
    """Fixes the reply: it does not depend on what else is in the batch."""
    choices: tuple[tuple[int, ...], ...] | None = None
    """Token sequences, each with its end token, among which the reply is drawn; None for free decoding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One reply of the policy."""

    ids: tuple[int, ...]
    """Sampled ids, the end token included when it was sampled."""
    logprobs: tuple[float, ...]
    """Log-probability of each id under the distribution that it was drawn from (temperature and choices applied)."""
    finish: str
    """``stop`` when an end token was sampled, ``length`` when the token limit cut the reply."""
    support: tuple[tuple[int, ...], ...] | None = None
    """Per id the ids that were open to it, sorted; None for free decoding."""
