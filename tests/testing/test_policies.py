"""ScriptedPolicy and UniformPolicy."""

import asyncio
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.errors import ConfigError
from prover.protocols import Policy
from prover.records import Completion, Request, Sampling
from prover.testing import ScriptedPolicy, ToyCodec, UniformPolicy


def ask(policy: Policy, n: int = 1, *, seed: int = 0, max_tokens: int = 16, **request: Any) -> list[Completion]:
    """Completions of ``n`` requests with seeds in a row."""
    sampling = Sampling(max_tokens=max_tokens)
    return asyncio.run(
        policy.generate([Request(ids=(4,), sampling=sampling, seed=seed + i, **request) for i in range(n)])
    )


def test_a_script_is_read_item_by_item() -> None:
    """Texts, raw replies and callables are answered in order, over several calls."""
    policy = ScriptedPolicy(["ab", ([1, 2], [-0.5, -0.7], "length"), lambda request: f"{request.seed}"], version=7)
    assert isinstance(policy, Policy)
    assert policy.version == 7
    assert ask(policy, 2) == [
        Completion(ids=(3, 0), logprobs=(0.0, 0.0), finish="stop"),
        Completion(ids=(1, 2), logprobs=(-0.5, -0.7), finish="length"),
    ]
    assert policy.codec.decode(ask(policy, seed=42)[0].ids) == "42"
    assert [request.seed for request in policy.requests] == [0, 1, 42]


def test_a_script_raises_its_errors() -> None:
    """An exception in the script is raised, and the script goes on after it."""
    policy = ScriptedPolicy([OSError("planted"), lambda request: OSError("made"), "a"])
    for message in ("planted", "made"):
        with pytest.raises(OSError, match=message):
            ask(policy)
    assert ask(policy)[0].ids == (1, 0)


def test_a_script_ends_or_repeats() -> None:
    """A used-up script is an error unless it repeats."""
    with pytest.raises(ConfigError, match="at most 1 requests"):
        ask(ScriptedPolicy(["a"]), 2)
    assert [c.ids[0] for c in ask(ScriptedPolicy(["a", "b"], repeat=True), 5)] == [1, 2, 1, 2, 1]
    with pytest.raises(ConfigError, match="at most 0"):
        ask(ScriptedPolicy([], repeat=True))


def test_texts_are_cut_at_the_limit() -> None:
    """A text longer than the token limit ends without its end token."""
    assert ask(ScriptedPolicy(["cab"]), max_tokens=2) == [Completion(ids=(4, 3), logprobs=(0.0, 0.0), finish="length")]


def test_uniform_log_probabilities_by_hand() -> None:
    """Among ac, b and cc: the first token has 1/3, what follows is certain."""
    policy = UniformPolicy(["ac", "b", "cc"])
    third = math.log(1 / 3)
    for completion in ask(policy, 20):
        assert completion.logprobs == (pytest.approx(third), *[0.0] * (len(completion.ids) - 1))
        assert completion.support is not None
        assert completion.support[0] == (1, 2, 4)
        assert completion.support[1:] == tuple((token,) for token in completion.ids[1:])
        assert completion.finish == "stop"


def test_uniform_is_uniform_over_replies() -> None:
    """Of 600 draws among aa, ab and c, each comes within five standard deviations (58) of 200."""
    counts = Counter(completion.ids for completion in ask(UniformPolicy(["ca", "cb", "b"]), 600))
    assert set(counts) == {(4, 1, 0), (4, 2, 0), (2, 0)}
    assert all(142 < n < 258 for n in counts.values())


def test_uniform_prefers_the_choices_of_the_request() -> None:
    """Choices in the request replace the policy's own actions; repeated ones count once."""
    completions = ask(UniformPolicy(["a"]), 50, choices=((2, 0), (2, 0), (4, 0)))
    assert {completion.ids for completion in completions} == {(2, 0), (4, 0)}
    assert completions[0].logprobs[0] == pytest.approx(math.log(1 / 2))


def test_uniform_depends_on_the_seed_alone() -> None:
    """A reply is the same alone and in a batch."""
    policy = UniformPolicy(["a", "b", "c"])
    batch = ask(policy, 10)
    assert [ask(policy, seed=seed)[0] for seed in range(10)] == batch
    assert len({completion.ids for completion in batch}) > 1


def test_uniform_needs_something_to_draw() -> None:
    """Without choices and actions there is an error."""
    with pytest.raises(ConfigError, match="expected a request with choices"):
        ask(UniformPolicy())


@given(st.lists(st.text("abc", max_size=5), min_size=1, max_size=8), st.integers(0, 10**6), st.integers(1, 8))
def test_log_probabilities_of_a_reply_add_up(actions: list[str], seed: int, limit: int) -> None:
    """A whole reply has probability 1 over the number of distinct actions; each sampled id was open."""
    completion = ask(UniformPolicy(actions), seed=seed, max_tokens=limit)[0]
    assert completion.support is not None
    assert len(completion.ids) == len(completion.logprobs) == len(completion.support) <= limit
    assert all(token in ids for token, ids in zip(completion.ids, completion.support, strict=True))
    if completion.finish == "stop":
        assert ToyCodec().decode(completion.ids) in actions
        assert sum(completion.logprobs) == pytest.approx(-math.log(len(set(actions))))
