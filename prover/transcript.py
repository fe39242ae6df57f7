"""The only place that turns messages into token ids.

Sampled ids are kept, never re-encoded: only new observations are tokenised. Two modes:

* ``append``: one growing row per trajectory. A prompt is the row so far.
* ``window``: one row per turn. A prompt is the opening and the last ``window`` turns, as they were sampled.

Either way a row holds exactly the ids that the policy saw and sampled, so that log-probabilities recomputed from it
with unchanged weights equal the sampled ones.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from prover.errors import TokenError
from prover.protocols import Codec
from prover.records import Completion, TokenRow, Trajectory

Mode = Literal["append", "window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """A sampled turn and the observation that followed it, as ids."""

    prompt_length: int
    completion: Completion
    trained: bool
    observation: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Transcript:
    """One conversation between an environment and a policy, as token ids.

    >>> from prover.testing import ToyCodec
    >>> transcript = Transcript.open(ToyCodec(), system="", observation="c", temperature=1.0)
    >>> transcript.sampled(Completion(ids=(1, 2, 0), logprobs=(-0.5, -0.7, -0.1), finish="stop"))
    'ab'
    >>> transcript.observed("c")
    >>> transcript.prompt()[-len(ToyCodec().reply("c", closed=True)) - 3 :][:3]
    (1, 2, 0)
    """

    codec: Codec
    opening: tuple[int, ...]
    temperature: float
    mode: Mode = "append"
    window: int = 2
    first_turn: int = 0
    """Number of the first turn in ``replies``; later than 0 in a fork."""
    context: int = 0
    """Leading ``replies`` that were sampled before the fork: a window-mode fork still shows them."""
    replies: list[_Reply] = field(default_factory=list)

    @classmethod
    def open(
        cls, codec: Codec, *, system: str, observation: str, temperature: float, mode: Mode = "append", window: int = 2
    ) -> "Transcript":
        """A conversation before its first turn."""
        opening = tuple(codec.opening(system, observation))
        return cls(codec=codec, opening=opening, temperature=temperature, mode=mode, window=window)

    @classmethod
    def fork(
        cls, codec: Codec, trajectory: Trajectory, turn: int, *, mode: Mode = "append", window: int = 2
    ) -> "Transcript":
        """The conversation as it stood before ``turn`` of a trajectory, from its stored ids.

        The earlier turns are context: rows of the fork hold only the turns that are sampled from here on.

        Raises:
            TokenError: the trajectory has no such turn.
        """
        if not 0 <= turn < trajectory.n_turns:
            raise TokenError(f"expected a turn in 0..{trajectory.n_turns - 1}, got {turn}; fork before a recorded turn")
        row = trajectory.rows[0 if mode == "append" else turn]
        prompt = tuple(row.ids[: trajectory.turns[turn].prompt_length].tolist())
        if mode == "append":
            return cls(
                codec=codec, opening=prompt, temperature=row.temperature, mode=mode, window=window, first_turn=turn
            )
        opening = tuple(trajectory.rows[0].ids[: trajectory.turns[0].prompt_length].tolist())
        start = max(0, turn - window)
        forked = cls(
            codec=codec,
            opening=opening,
            temperature=row.temperature,
            mode=mode,
            window=window,
            first_turn=start,
            context=turn - start,
        )
        for index in range(start, turn):
            ids = tuple(trajectory.rows[index].ids[trajectory.turns[index].prompt_length :].tolist())
            forked.sampled(Completion(ids=ids, logprobs=(0.0,) * len(ids), finish="stop"), trained=False)
            forked.observed(trajectory.turns[index].result)
        if forked.prompt() != prompt:
            raise TokenError(
                f"expected the prompt that turn {turn} was sampled from ({len(prompt)} ids), got another one "
                f"({len(forked.prompt())} ids); fork with the codec and the window that made the trajectory"
            )
        return forked

    def prompt(self) -> tuple[int, ...]:
        """Ids that the policy sees before its next turn."""
        return tuple(self._ids_before(len(self.replies)))

    def sampled(self, completion: Completion, *, trained: bool = True) -> str:
        """Keep a reply of the policy; returns its text.

        Raises:
            TokenError: ids, log-probabilities and support differ in length.
        """
        support = completion.ids if completion.support is None else completion.support
        lengths = {len(completion.ids), len(completion.logprobs), len(support)}
        if len(lengths) != 1:
            raise TokenError(
                f"expected as many log-probabilities and supports as ids ({len(completion.ids)}), got lengths "
                f"{sorted(lengths)}; the policy must report one of each per sampled id"
            )
        shown = self._shown(len(self.replies))
        length = len(self.opening) + sum(len(reply.completion.ids) + len(reply.observation) for reply in shown)
        self.replies.append(_Reply(prompt_length=length, completion=completion, trained=trained))
        return self.codec.decode(completion.ids)

    def observed(self, observation: str) -> None:
        """Append what the environment answered to the last reply."""
        last = self.replies[-1]
        closed = bool(last.completion.ids) and last.completion.ids[-1] in self.codec.eos_ids
        ids = tuple(self.codec.reply(observation, closed=closed))
        self.replies[-1] = _Reply(
            prompt_length=last.prompt_length, completion=last.completion, trained=last.trained, observation=ids
        )

    @property
    def prompt_length(self) -> int:
        """Length of the prompt of the last sampled turn."""
        return self.replies[-1].prompt_length

    def rows(self) -> tuple[TokenRow, ...]:
        """The token rows, ending with the last sampled token. Turns are numbered from ``first_turn``."""
        if self.mode == "window":
            return tuple(self._row(index, index + 1) for index in range(self.context, len(self.replies)))
        return (self._row(0, len(self.replies)),) if self.replies else ()

    def _shown(self, index: int) -> list[_Reply]:
        """The replies that the policy sees when it samples reply ``index``."""
        return self.replies[max(0, index - self.window) if self.mode == "window" else 0 : index]

    def _ids_before(self, index: int) -> list[int]:
        """The prompt of reply ``index``."""
        ids = list(self.opening)
        for reply in self._shown(index):
            ids += reply.completion.ids
            ids += reply.observation
        return ids

    def _row(self, start: int, stop: int) -> TokenRow:
        """One row with the replies ``start..stop-1`` marked as sampled, after the prompt of the first of them."""
        ids = self._ids_before(start)
        blank = len(ids)
        turns = [-1] * blank
        mask = [False] * blank
        logprobs = [0.0] * blank
        support: list[tuple[int, ...] | None] = [None] * blank
        for index, reply in enumerate(self.replies[start:stop], start):
            completion, n = reply.completion, len(reply.completion.ids)
            ids += completion.ids
            turns += [self.first_turn + index] * n
            mask += [reply.trained] * n
            logprobs += completion.logprobs
            support += completion.support or [None] * n
            if index + 1 < stop:
                m = len(reply.observation)
                ids += reply.observation
                turns += [-1] * m
                mask += [False] * m
                logprobs += [0.0] * m
                support += [None] * m
        return TokenRow(
            ids=np.array(ids, dtype=np.int64),
            turn_of_token=np.array(turns, dtype=np.int64),
            loss_mask=np.array(mask, dtype=np.bool_),
            logprobs=np.array(logprobs, dtype=np.float64),
            support=tuple(support),
            temperature=self.temperature,
        )
