"""Token rows: sampled ids are kept, and a row holds what the policy saw and sampled."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prover.errors import TokenError
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.records import Completion, Request, Sampling, Task, TokenRow, Trajectory
from prover.rollout import EpisodeRules, Rollout
from prover.testing import LineEnv, ScriptedPolicy, ToyCodec
from prover.transcript import Transcript

CODEC = ToyCodec()
NEWLINE, GREATER = CODEC.encode("\n")[0], CODEC.encode(">")[0]
MODES: list[Literal["append", "window"]] = ["append", "window"]

REPLIES = st.one_of(
    st.lists(st.integers(0, 257), max_size=6),
    st.sampled_from([[], [0], [1, 2], [1, 2, 0], list(CODEC.action("right")), list(CODEC.action("left"))]),
)
"""Ids of a reply: with an end token, cut, empty, or nonsense."""


def opened(mode: Literal["append", "window"] = "append", window: int = 2) -> Transcript:
    """A conversation that opened with ``c``."""
    return Transcript.open(CODEC, system="", observation="c", temperature=1.0, mode=mode, window=window)


def completion(ids: Sequence[int], *, support: Any = None, finish: str = "stop") -> Completion:
    """A reply whose log-probabilities are -0.1, -0.2, ..."""
    logprobs = tuple(-(index + 1) / 10 for index in range(len(ids)))
    return Completion(ids=tuple(ids), logprobs=logprobs, finish=finish, support=support)


def test_sampled_ids_are_kept() -> None:
    """``ab`` that was sampled as [1, 2] stays [1, 2] with two log-probabilities; the prompt goes on from the row."""
    transcript = opened()
    assert transcript.prompt() == (4, NEWLINE, GREATER)
    text = transcript.sampled(Completion(ids=(1, 2), logprobs=(-0.5, -0.7), finish="stop"))
    assert (text, CODEC.encode(text)) == ("ab", [3])
    so_far = transcript.rows()[0].ids.tolist()
    assert so_far == [4, NEWLINE, GREATER, 1, 2]
    transcript.observed("c")
    assert transcript.prompt()[: len(so_far)] == tuple(so_far)
    transcript.sampled(Completion(ids=(1, 0), logprobs=(-0.1, -0.2), finish="stop"))
    (row,) = transcript.rows()
    # The first reply was not closed: its end token 0 comes with the observation and is nobody's choice.
    assert row.ids.tolist() == [4, NEWLINE, GREATER, 1, 2, 0, NEWLINE, 4, NEWLINE, GREATER, 1, 0]
    assert row.loss_mask.astype(int).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1]
    assert row.turn_of_token.tolist() == [-1, -1, -1, 0, 0, -1, -1, -1, -1, -1, 1, 1]
    assert row.logprobs.tolist() == [0, 0, 0, -0.5, -0.7, 0, 0, 0, 0, 0, -0.1, -0.2]


class FixedCodec(ToyCodec):
    """Openings are [4, 4] and observations [5, 2], whatever they say."""

    def opening(self, system: str, observation: str) -> list[int]:
        """Two ids."""
        return [4, 4]

    def reply(self, observation: str, *, closed: bool) -> list[int]:
        """Two ids."""
        return [5, 2]


def test_end_tokens_are_trained_on_and_observations_are_not() -> None:
    """The mask covers what was sampled, end tokens included, and nothing that merely has the same ids."""
    transcript = Transcript.open(FixedCodec(), system="", observation="", temperature=1.0)
    transcript.sampled(completion([1, 0]))
    transcript.observed("c")
    transcript.sampled(completion([2, 0]))
    (row,) = transcript.rows()
    assert row.ids.tolist() == [4, 4, 1, 0, 5, 2, 2, 0]
    assert row.loss_mask.astype(int).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_append_mode_keeps_earlier_reasoning() -> None:
    """The reasoning of every earlier turn stands in the prompt of a later one, as it was sampled."""
    transcript = opened()
    thought = CODEC.action("<think>t1 t2</think>right")
    for _ in range(3):
        transcript.sampled(completion(thought))
        transcript.observed("c")
    prompt, n = transcript.prompt(), len(thought)
    found = [at for at in range(len(prompt)) if prompt[at : at + n] == thought]
    assert len(found) == 3
    assert len(transcript.rows()) == 1


def test_window_mode_gives_each_turn_the_context_it_was_sampled_in() -> None:
    """One row per turn: the opening, the last turns as they were sampled, then the turn itself."""
    transcript = opened("window", window=1)
    prompts = []
    for ids in ([1, 0], [2, 0], [5, 0]):
        prompts.append(transcript.prompt())
        transcript.sampled(completion(ids))
        transcript.observed("c")
    start, middle = [4, NEWLINE, GREATER], [NEWLINE, 4, NEWLINE, GREATER]
    assert [list(prompt) for prompt in prompts] == [start, [*start, 1, 0, *middle], [*start, 2, 0, *middle]]
    rows = transcript.rows()
    assert [row.ids.tolist() for row in rows] == [
        [*start, 1, 0],
        [*start, 1, 0, *middle, 2, 0],
        [*start, 2, 0, *middle, 5, 0],
    ]
    assert [row.turn_of_token.tolist()[-2:] for row in rows] == [[0, 0], [1, 1], [2, 2]]
    # The reply that is context was trained in its own row.
    assert rows[2].loss_mask.astype(int).tolist() == [0] * 9 + [1, 1]
    assert rows[2].logprobs.tolist() == [0.0] * 9 + [-0.1, -0.2]


def test_a_window_of_none_shows_the_opening_alone() -> None:
    """Prompt and row agree where no earlier turn is shown."""
    transcript = opened("window", window=0)
    for _ in range(2):
        assert transcript.prompt() == (4, NEWLINE, GREATER)
        transcript.sampled(completion([1, 0]))
        transcript.observed("c")
    assert [row.ids.tolist() for row in transcript.rows()] == [[4, NEWLINE, GREATER, 1, 0]] * 2


def test_a_closed_reply_gets_no_second_end_token() -> None:
    """An end token that was sampled is trained on, and none is added to it; [0] alone counts as closed, [] does not."""
    transcript = opened()
    for ids in ([0], []):
        transcript.sampled(completion(ids))
        transcript.observed("c")
    transcript.sampled(completion([1]))
    (row,) = transcript.rows()
    assert row.ids.tolist() == [
        4,
        NEWLINE,
        GREATER,
        0,
        NEWLINE,
        4,
        NEWLINE,
        GREATER,
        0,
        NEWLINE,
        4,
        NEWLINE,
        GREATER,
        1,
    ]
    assert np.flatnonzero(row.loss_mask).tolist() == [3, 13]
    assert row.turn_of_token[[3, 13]].tolist() == [0, 2]


def test_untrained_replies_are_masked() -> None:
    """A reply that is not to be trained on keeps its turn and its log-probabilities, and leaves the loss."""
    transcript = opened()
    transcript.sampled(completion([1, 2], finish="length"), trained=False)
    (row,) = transcript.rows()
    assert not row.loss_mask.any()
    assert row.turn_of_token.tolist() == [-1, -1, -1, 0, 0]
    assert row.logprobs.tolist() == [0, 0, 0, -0.1, -0.2]


def test_support_stands_beside_its_tokens() -> None:
    """The ids that were open to a token are kept for it; free tokens, prompts and observations have none."""
    transcript = opened()
    transcript.sampled(completion([1, 0], support=((1, 2), (0,))))
    transcript.observed("c")
    transcript.sampled(completion([2]))
    (row,) = transcript.rows()
    assert row.support == (None, None, None, (1, 2), (0,), None, None, None, None, None)


def test_a_conversation_without_replies_has_no_rows() -> None:
    """Nothing was sampled, so there is nothing to train on."""
    assert opened().rows() == ()
    assert opened("window").rows() == ()


@pytest.mark.parametrize(
    "broken",
    [
        Completion(ids=(1, 2), logprobs=(-0.5,), finish="stop"),
        Completion(ids=(1,), logprobs=(-0.5,), finish="stop", support=()),
        Completion(ids=(), logprobs=(), finish="stop", support=((1,),)),
    ],
)
def test_lengths_that_differ_are_refused(broken: Completion) -> None:
    """A policy that reports more ids than log-probabilities, or another number of supports, is found out."""
    with pytest.raises(TokenError, match="as many log-probabilities and supports as ids"):
        opened().sampled(broken)


@pytest.mark.parametrize("mode", MODES)
@given(script=st.lists(st.tuples(REPLIES, st.text(max_size=4), st.booleans()), max_size=6), window=st.integers(0, 3))
@settings(max_examples=60)
def test_rows_hold_what_was_seen_and_sampled(
    mode: Literal["append", "window"], script: list[tuple[list[int], str, bool]], window: int
) -> None:
    """Whatever is said, each turn's row begins with its prompt and goes on with its sampled ids; only these train."""
    transcript = opened(mode, window)
    prompts = []
    for ids, observation, trained in script:
        prompts.append(transcript.prompt())
        transcript.sampled(completion(ids), trained=trained)
        assert transcript.prompt_length == len(prompts[-1])
        transcript.observed(observation)
    rows = transcript.rows()
    assert len(rows) == (min(1, len(script)) if mode == "append" else len(script))
    for turn, (ids, _, trained) in enumerate(script):
        row, prompt = rows[0 if mode == "append" else turn], prompts[turn]
        place = slice(len(prompt), len(prompt) + len(ids))
        assert tuple(row.ids[: len(prompt)].tolist()) == prompt
        assert row.ids[place].tolist() == ids
        assert np.flatnonzero(row.turn_of_token == turn).tolist() == list(range(place.start, place.stop))
        assert row.loss_mask[place].tolist() == [trained] * len(ids)
        assert row.logprobs[place].tolist() == list(completion(ids).logprobs)
    for row in rows:
        assert len(row) == len(row.turn_of_token) == len(row.loss_mask) == len(row.logprobs) == len(row.support)
        assert not row.loss_mask[row.turn_of_token < 0].any()
        assert not row.logprobs[row.turn_of_token < 0].any()


def episode(
    replies: list[list[int]], mode: Literal["append", "window"], window: int
) -> tuple[Trajectory, list[Request]]:
    """An episode on LineEnv, with the requests that its policy saw; replies of four ids and more count as cut."""
    policy = ScriptedPolicy(
        [(ids, [-0.5] * len(ids), "length" if len(ids) > 3 and ids[-1] else "stop") for ids in replies]
    )
    rules = EpisodeRules(
        max_turns=len(replies), sampling=Sampling(), text_format=Bare(), mode=mode, window=window, system="a"
    )

    async def play() -> Trajectory:
        async with HostPool(lambda: InlineHost(LineEnv), 1) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=rules)
            (trajectory,) = await rollout.episodes([Task(id="start-4", split="train")], seeds=[0])
            assert isinstance(trajectory, Trajectory)
            return trajectory

    return asyncio.run(play()), policy.requests


@pytest.mark.parametrize("mode", MODES)
@given(replies=st.lists(REPLIES, min_size=1, max_size=6), window=st.integers(0, 3))
@settings(max_examples=60)
def test_a_fork_sees_the_prompt_that_its_turn_was_sampled_from(
    mode: Literal["append", "window"], replies: list[list[int]], window: int
) -> None:
    """Before every turn of any episode, empty and cut replies among them, a fork has the very ids of the request."""
    trajectory, requests = episode(replies, mode, window)
    assert trajectory.n_turns == len(requests)
    for turn, request in enumerate(requests):
        fork = Transcript.fork(CODEC, trajectory, turn, mode=mode, window=window)
        assert fork.prompt() == tuple(request.ids)
        assert fork.rows() == ()


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_a_fork_hold_only_its_own_turns(mode: Literal["append", "window"]) -> None:
    """What came before the fork is context: it stands in the rows, untrained and without a turn."""
    trajectory, _ = episode([[1, 0], [2, 0], [5, 0], [1, 2, 0]], mode, 2)
    fork = Transcript.fork(CODEC, trajectory, 2, mode=mode, window=2)
    prompt = fork.prompt()
    fork.sampled(completion([4, 0]))
    (row,) = fork.rows()
    assert row.ids.tolist() == [*prompt, 4, 0]
    assert row.turn_of_token.tolist() == [-1] * len(prompt) + [2, 2]
    fork.observed("c")
    fork.sampled(completion([1]))
    assert max(int(row.turn_of_token.max()) for row in fork.rows()) == 3


@pytest.mark.parametrize("turn", [-1, 2])
def test_a_fork_needs_a_recorded_turn(turn: int) -> None:
    """After the last turn there is nothing to continue from."""
    trajectory, _ = episode([[1, 0], [2, 0]], "append", 2)
    with pytest.raises(TokenError, match=r"expected a turn in 0\.\.1, got"):
        Transcript.fork(CODEC, trajectory, turn)


def test_a_fork_with_another_window_is_refused() -> None:
    """A window other than the trajectory's would show the policy something that it never saw."""
    trajectory, _ = episode([[1, 0], [2, 0], [5, 0]], "window", 2)
    with pytest.raises(TokenError, match="fork with the codec and the window that made the trajectory"):
        Transcript.fork(CODEC, trajectory, 2, mode="window", window=1)


def test_row_types() -> None:
    """Rows come as the arrays that records promise."""
    transcript = opened()
    transcript.sampled(completion([1]))
    row: TokenRow = transcript.rows()[0]
    assert (row.ids.dtype, row.turn_of_token.dtype) == (np.int64, np.int64)
    assert (row.loss_mask.dtype, row.logprobs.dtype) == (np.bool_, np.float64)
