"""What the parts of ProVer ask of each other: TextEnv, Codec, Policy, Judge, Verifier, Backend.

Any object with these methods will do; none has to inherit from anything here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

from prover.chat import Answer, Ask
from prover.records import Completion, Estimate, Group, NoProposal, Proposal, Request, Trajectory


@runtime_checkable
class TextEnv(Protocol):
    """A real ``gymnasium.Env[str, str]`` whose exact state can be saved and brought back.

    * ``reset(seed=..., options={"task": id})`` starts the task of that id; without options, one drawn from the seed.
    * ``info["success"]`` (bool) is there from the first observation on and final at the end of the episode.
    * ``info["admissible_actions"]`` (a sorted list of str) where the environment knows them.
    * ``info["invalid_action"]`` (bool) where the environment knows that the last action was malformed or had no effect.
    * ``info["task_type"]`` (str) where tasks have types.
    * The environment never cuts an episode by itself: the rollout holds the turn cap.
    * Stepping an episode that has ended is an ``EnvError``.
    * ``info["metrics"]`` (dict of str to float), optional: figures of the episode beside its success,
      e.g. ``{"f1": .5}``; those of the last observation are kept with the trajectory and averaged by evaluations.
    * Optional: ``ceiling(split)``, the highest success rate that the split allows, where it is below 1;
      ``manifest()``, a JSON-able dict that identifies data and tasks. Both are kept and shown with results.
    * Optional: ``goal(task)``, what makes a task the same as another under another id, cheap and without an episode;
      where there is none, the leak check of evaluations compares opening observations.
    * Optional: ``probe()`` asks every service that episodes need one question, in a few seconds, before the first of
      them; a ``ServiceError`` says what does not answer.
    * Optional: ``grader(folder)`` returns a ``Grader`` of evaluations that keeps what it learns in the folder, or None.
    * Optional: ``stats()`` returns counters since its last call (a dict of str to float) of all such environments of
      the process, e.g. how long a service took. They are summed over processes and kept with metrics and results.
    * Optional: ``expert(seed)`` returns a scripted player of the current episode, for demonstrations (``prover.sft``).
    * ``restore`` returns what the last ``reset`` or ``step`` answered, and brings the RNG back. An environment with
      chance has ``reseed(seed)`` too: called after ``restore``, it gives what follows a random stream of its own, so
      that continuations of one snapshot differ. Without it, the same actions are taken to lead to the same end from a
      snapshot, always: where the policy had no alternative either, nothing is continued.

    >>> from prover.testing import LineEnv
    >>> env = LineEnv()
    >>> observation, info = env.reset(seed=0, options={"task": "start-7"})
    >>> snapshot = env.snapshot()
    >>> env.step("right")[0]
    'You are in cell 8 of 0..9.'
    >>> env.restore(snapshot)[0] == observation
    True
    """

    observation_space: gymnasium.Space[str]
    action_space: gymnasium.Space[str]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; returns the first observation and its info."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; returns observation, reward, terminated, truncated, info."""

    def snapshot(self) -> Any:
        """ALL mutable state as an immutable, picklable value: position, counters, done flag, RNG. Changes nothing."""

    def restore(self, snapshot: Any) -> tuple[str, dict[str, Any]]:
        """Bring a snapshot back, also in another instance or process; returns the current observation and its info."""

    def state_key(self) -> str:
        """Stable hash of the state, equal in every process."""

    def tasks(self, split: str) -> Sequence[str]:
        """Stable ids of the tasks of a split, always in the same order."""

    def close(self) -> None:
        """Free what the environment holds."""


@runtime_checkable
class Grader(Protocol):
    """Adds to the metrics of evaluation episodes what takes more than the environment to say, a chat model for one.

    Asked after an episode has ended, never in training.
    """

    @property
    def about(self) -> Mapping[str, Any]:
        """What decides the figures, JSON-able, kept with results; ``figures`` lists their names.

        Figures of graders that differ are not compared.
        """

    def check(self) -> None:
        """See what can be seen before anything heavy is loaded; raises what is wrong."""

    async def grade(self, run: Trajectory) -> Mapping[str, float]:
        """Metrics to add to a finished episode. One that cannot be had is left out, never 0; many may be asked for."""

    def stats(self) -> Mapping[str, float]:
        """What grading has taken since it began, for people."""

    async def aclose(self) -> None:
        """Free what it holds."""


@runtime_checkable
class Codec(Protocol):
    """How text becomes token ids and back. Sampled ids never pass through it twice (see ``transcript``).

    Text of environments is encoded without special tokens: a control marker inside an observation stays plain text.
    """

    eos_ids: frozenset[int]
    """Ids that end a reply."""

    def opening(self, system: str, observation: str) -> list[int]:
        """Ids of a new conversation up to and including the marker after which the policy writes."""

    def reply(self, observation: str, *, closed: bool) -> list[int]:
        """Ids between a sampled reply and the policy's next one.

        ``closed`` says whether the reply ended with a sampled end token; if not, the end-of-turn marker comes with
        these ids, as text of the environment that is never trained on.
        """

    def action(self, text: str) -> tuple[int, ...]:
        """Ids of a reply that says ``text``, with its end token: for demonstrations and admissible decoding."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, without end tokens."""


@runtime_checkable
class Policy(Protocol):
    """A language model that continues token ids.

    The reply to a request depends on its ids, its sampling and its seed, and on nothing else in the batch.

    >>> import asyncio
    >>> from prover.records import Request, Sampling
    >>> from prover.testing import ScriptedPolicy
    >>> policy = ScriptedPolicy(["right", "left"])
    >>> request = Request(ids=policy.codec.opening("", "Where to?"), sampling=Sampling(), seed=1)
    >>> completion = asyncio.run(policy.generate([request]))[0]
    >>> policy.codec.decode(completion.ids), completion.finish
    ('right', 'stop')
    """

    codec: Codec
    version: int
    """Changes whenever the weights change."""
    context_limit: int
    """Most tokens of prompt and reply together."""

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer every request, in order."""


@runtime_checkable
class TrainablePolicy(Policy, Protocol):
    """A policy whose weights live in this process and can be trained in place."""

    model: Any
    """A causal language model of transformers."""

    def updated(self) -> None:
        """The weights have changed: count a new version and forget what was computed with the old ones."""

    def features(
        self, ids: Sequence[NDArray[np.int64]], places: Sequence[Sequence[int]], *, batch: int
    ) -> NDArray[np.float32]:
        """Last hidden states of rows of ``ids`` at some ``places`` of each, ``batch`` rows at a time; no gradient.

        Returns:
            Shape (N, H), in the order of rows, then of places.
        """

    def forget(self) -> None:
        """Drop everything that is cached between requests."""

    def save(self, path: Path) -> None:
        """Write weights, config and tokenizer into a folder."""


@runtime_checkable
class Judge(Protocol):
    """Points at a segment that may have made the difference. It sees turns, never tokens, and decides no credit.

    Optional, for judges that point at several segments of a group: ``async propose_all(group, *, seed)``, which returns
    a sequence of proposals or a ``NoProposal`` and is asked instead. A judge with ``every_run = True`` may also name
    turns of failed runs, the last turn, after which the outcome is known, and turns without a valid action.

    * A judge that cannot answer, because a service is down, says ``NoProposal(reason="judge_<cause>")``: the share of
      such answers is watched. An error that it raises counts as one.
    * Optional: ``stats()`` returns counters since its last call (a dict), kept with the metrics of an update.
    * Optional: ``async aclose()`` frees what the judge holds, at the end of a run.

    >>> import asyncio
    >>> from prover.records import NoProposal
    >>> from prover.testing import ScriptedJudge
    >>> judge = ScriptedJudge([NoProposal(reason="nothing_distinctive")])
    >>> asyncio.run(judge.propose(group=None, seed=0)).reason
    'nothing_distinctive'
    """

    name: str

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """Contrast the group's successes with its failures."""


@runtime_checkable
class Verifier(Protocol):
    """Measures what a segment is worth by continuing from the states before and after it.

    Continuations that are to be trained on stand in ``Estimate.played``, each state's once; it may be left empty.
    """

    async def verify(self, proposal: Proposal, group: Group, *, seed: int) -> Estimate:
        """Run the continuations of both arms and count their successes."""

    async def verify_all(self, proposals: Sequence[Proposal], group: Group, *, seed: int) -> list[Estimate]:
        """The same for several segments of a group, in order; a state that two of them share is measured once."""


@runtime_checkable
class Backend(Protocol):
    """A chat model that somebody asks: over HTTP, or in this process."""

    name: str
    """Model and where it runs, for logs and cache keys; never a key or a password."""

    async def ask(self, ask: Ask) -> Answer:
        """One reply. Many asks may wait at once.

        Raises:
            ServiceError: there is no answer; ``cause`` says why.
        """

    async def aclose(self) -> None:
        """Free connections; may be called twice."""
