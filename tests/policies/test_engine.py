"""Tests of the engine: what is computed, what is reused, and what a reply is made of."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from prover.policies.engine import Engine
from prover.policies.modules import ModuleDecoder
from prover.policies.plain import PlainDecoder
from prover.policies.prefixes import PrefixStore
from prover.records import Completion, Request, Sampling

EOS = frozenset({0})


@pytest.fixture(params=["qwen3", "qwen3_5"])
def model(request: pytest.FixtureRequest, model_of: Callable[[str], Any]) -> Any:
    """A plain and a hybrid model."""
    return model_of(request.param)


def engine_of(model: Any, budget: int = 1 << 24, eos: frozenset[int] = EOS) -> Engine:
    """An engine with an empty store."""
    decoder = PlainDecoder(model) if PlainDecoder.supports(model) else ModuleDecoder(model)
    return Engine(decoder, PrefixStore(budget, truncates=decoder.truncates), eos)


def request(ids: list[int], seed: int = 0, max_tokens: int = 6, temperature: float = 1.0, **more: Any) -> Request:
    """A request for a few tokens."""
    return Request(ids=ids, sampling=Sampling(temperature=temperature, max_tokens=max_tokens), seed=seed, **more)


def recomputed(model: Any, request: Request, completion: Completion) -> list[float]:
    """Log-probabilities of a reply by the model's own forward pass over prompt and reply."""
    ids = [*request.ids, *completion.ids]
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0].double() / request.sampling.temperature
    values = []
    for i, id_ in enumerate(completion.ids):
        row = logits[len(request.ids) - 1 + i]
        allowed = list(completion.support[i]) if completion.support else list(range(len(row)))
        values.append(float(row[allowed].log_softmax(-1)[allowed.index(id_)]))
    return values


def test_logprobs_equal_recomputed_ones(model: Any) -> None:
    """Over turns, temperatures and choices, log-probabilities equal those of a plain forward pass within 1e-4."""
    engine = engine_of(model)
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, 50, size=size).tolist() for size in (3, 20, 9, 9, 14)]
    rows[3] = rows[2]
    choices = tuple((*map(int, rng.integers(1, 50, size=size)), 0) for size in (1, 2, 3, 3))
    for turn in range(4):
        requests = [
            request(row, seed=10 * turn + i, temperature=(0.5, 1.0, 1.5)[i % 3], choices=choices if i % 2 else None)
            for i, row in enumerate(rows)
        ]
        completions = engine.serve(requests)
        for asked, got in zip(requests, completions, strict=True):
            np.testing.assert_allclose(got.logprobs, recomputed(model, asked, got), atol=1e-4)
        rows = [
            [*row, *got.ids, *rng.integers(1, 50, size=rng.integers(1, 6)).tolist()]
            for row, got in zip(rows, completions, strict=True)
        ]


def test_turns_compute_their_new_tokens_only(model: Any) -> None:
    """The prompt of the next turn costs the observation and the last sampled token; all before it is reused."""
    engine = engine_of(model, eos=frozenset())
    prompt = [3, 4, 5, 6, 7]
    reply = engine.serve([request(prompt, max_tokens=4)])[0].ids
    assert engine.counters.prompt_tokens_computed == 5
    engine.serve([request([*prompt, *reply, 8, 9], max_tokens=4)])
    assert engine.counters.prompt_tokens_computed == 5 + 3
    assert engine.counters.prompt_tokens_reused == 5 + 3


def test_equal_prompts_of_a_batch_are_computed_once(model: Any) -> None:
    """The members of a group share the work on their prompt, and still draw by their own seeds."""
    engine = engine_of(model)
    completions = engine.serve([request([3, 4, 5, 6], seed=seed) for seed in range(8)])
    assert engine.counters.prompt_tokens_computed == 4
    assert engine.counters.prompt_tokens_reused == 28
    assert len({completion.ids for completion in completions}) > 1
    alone = [engine_of(model).serve([request([3, 4, 5, 6], seed=seed)])[0].ids for seed in range(8)]
    assert [completion.ids for completion in completions] == alone


def test_branch_reuses_the_trajectory_it_leaves(model_of: Callable[[str], Any]) -> None:
    """Continuations from an earlier turn find their beginning inside the longer sequence."""
    engine = engine_of(model_of("qwen3"), eos=frozenset())
    opening = [3, 4, 5, 6, 7]
    first = engine.serve([request(opening, max_tokens=3)])[0].ids
    row = [*opening, *first, 8, 9]
    second = engine.serve([request(row, max_tokens=3)])[0].ids
    engine.serve([request([*row, *second, 8], max_tokens=3)])
    before = engine.counters.prompt_tokens_computed
    engine.serve([request(row, seed=seed, max_tokens=3) for seed in range(4)])
    assert engine.counters.prompt_tokens_computed == before + 1


def test_replies_do_not_depend_on_the_store(model: Any) -> None:
    """With no memory for caches at all, replies are the same and every prompt token is computed."""
    prompts = [[3, 4, 5], [3, 4, 5, 6, 7, 8], [9, 3]]
    kept, bare = engine_of(model), engine_of(model, budget=0)
    for turn in range(3):
        requests = [request(prompt, seed=turn) for prompt in prompts]
        got = kept.serve(requests)
        assert [c.ids for c in got] == [c.ids for c in bare.serve(requests)]
        prompts = [[*prompt, *c.ids, 11, 12] for prompt, c in zip(prompts, got, strict=True)]
    assert bare.counters.prompt_tokens_reused == 0
    assert kept.counters.prompt_tokens_computed < bare.counters.prompt_tokens_computed


def test_reply_ends_with_the_end_token_or_at_the_limit(model_of: Callable[[str], Any]) -> None:
    """``stop`` means that the last id is the one end token; ``length`` means the limit, and no end token is made up."""
    engine = engine_of(model_of("qwen3"), eos=frozenset(range(10)))
    completions = engine.serve([request([20, 21], seed=seed, max_tokens=5) for seed in range(40)])
    assert {completion.finish for completion in completions} == {"stop", "length"}
    for completion in completions:
        ended = [id_ in engine.eos_ids for id_ in completion.ids]
        assert ended[:-1] == [False] * (len(ended) - 1)
        assert completion.finish == ("stop" if ended[-1] else "length")
        assert len(completion.ids) == 5 or ended[-1]
        assert len(completion.logprobs) == len(completion.ids)
        assert completion.support is None


CHOICES = ((7, 3, 0), (7, 5, 4, 0), (8, 0))


def test_reply_is_one_of_the_choices(model: Any) -> None:
    """Under choices, replies and supports follow the trie, and each choice as likely as its log-probabilities say."""
    engine = engine_of(model)
    requests = [request([3, 4], seed=seed, choices=CHOICES) for seed in range(300)]
    completions = engine.serve(requests)
    supports = {
        (7, 3, 0): ((7, 8), (3, 5), (0,)),
        (7, 5, 4, 0): ((7, 8), (3, 5), (4,), (0,)),
        (8, 0): ((7, 8), (0,)),
    }
    mass = {}
    for completion in completions:
        assert completion.support == supports[completion.ids]
        assert completion.finish == "stop"
        mass[completion.ids] = np.exp(sum(completion.logprobs))
    for choice, probability in mass.items():
        share = np.mean([completion.ids == choice for completion in completions])
        assert share == pytest.approx(probability, abs=4 * np.sqrt(probability * (1 - probability) / 300) + 1e-9)


def test_forced_tokens_cost_no_forward_pass(model_of: Callable[[str], Any]) -> None:
    """Tokens without alternative have log-probability 0 and go in with the next chunk."""
    engine = engine_of(model_of("qwen3"))
    passes: list[list[int]] = []
    forward = PlainDecoder.open

    def opened(prefixes: Any, capacity: int) -> Any:
        rows = forward(engine.decoder, prefixes, capacity)
        extend = rows.extend
        rows.extend = lambda r, chunks: passes.append([len(c) for c in chunks]) or extend(r, chunks)
        return rows

    engine.decoder.open = opened  # type: ignore[method-assign]  # counts forward passes
    completion = engine.serve([request([3, 4], choices=((7, 5, 4, 6, 0), (7, 5, 4, 9, 0)))])[0]
    assert completion.ids[:3] == (7, 5, 4)
    assert completion.logprobs[:3] == (0.0, 0.0, 0.0)
    assert completion.logprobs[3] < 0
    assert completion.logprobs[4] == 0.0
    assert passes == [[2], [3]]
    assert engine.counters.forced_tokens == 4


def test_greedy_takes_the_most_likely_token(model: Any) -> None:
    """Temperature 0 yields the arg max at every position, with log-probability 0, whatever the seed."""
    engine = engine_of(model, eos=frozenset())
    completion = engine.serve([request([3, 4, 5], seed=9, temperature=0.0)])[0]
    ids = [3, 4, 5]
    for id_ in completion.ids:
        with torch.inference_mode():
            assert id_ == int(model(torch.tensor([ids])).logits[0, -1].argmax())
        ids.append(id_)
    assert completion.logprobs == (0.0,) * 6
