"""Tests of the embedded policy: batching, determinism, weights and folders."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from prover.errors import ConfigError, DataError, NumericsError, TokenError
from prover.policies.codec import HFCodec
from prover.policies.hf import HFPolicy
from prover.policies.words import build_word_tokenizer
from prover.protocols import Policy
from prover.records import Completion, Request, Sampling

COMMANDS = ("look", "go to cabinet 3", "take mug 1 from cabinet 2", "open drawer 1")
TOKENIZER = build_word_tokenizer(COMMANDS)


@pytest.fixture
def policy(fresh_model: Callable[[str], Any]) -> HFPolicy:
    """A policy with a model of its own."""
    return HFPolicy(fresh_model("qwen3"), HFCodec(TOKENIZER))


def request(ids: list[int], seed: int = 0, max_tokens: int = 5, **more: Any) -> Request:
    """A request for a few tokens."""
    return Request(ids=ids, sampling=Sampling(max_tokens=max_tokens), seed=seed, **more)


def answer(policy: HFPolicy, *requests: Request) -> list[Completion]:
    """Replies to requests, in an event loop of their own."""
    return asyncio.run(policy.generate(requests))


def test_policy_keeps_the_protocol(policy: HFPolicy) -> None:
    """The embedded policy is a ``Policy`` with the context that its model was made for."""
    assert isinstance(policy, Policy)
    assert policy.context_limit == 256
    assert answer(policy) == []


async def episodes(policy: HFPolicy, n: int, turns: int, at_once: int) -> list[list[int]]:
    """Rows of some episodes with random observations, at most ``at_once`` of them running."""
    gate = asyncio.Semaphore(at_once)

    async def episode(member: int) -> list[int]:
        rng = np.random.default_rng(member)
        row = list(map(int, rng.integers(5, 20, size=4 + member % 3)))
        choices = tuple(policy.codec.action(command) for command in COMMANDS) if member % 2 else None
        async with gate:
            for turn in range(turns):
                reply = await policy.generate([request(row, seed=1000 * member + turn, choices=choices)])
                row += [*reply[0].ids, *map(int, rng.integers(5, 20, size=rng.integers(1, 5)))]
        return row

    return await asyncio.gather(*map(episode, range(n)))


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5"])
def test_same_seeds_give_the_same_episodes_at_any_concurrency(model_of: Callable[[str], Any], kind: str) -> None:
    """One episode at a time, eight, or all 64: the ids are the same."""
    rows = []
    for at_once in (1, 8, 64):
        policy = HFPolicy(model_of(kind), HFCodec(TOKENIZER), max_batch=48)
        rows.append(asyncio.run(episodes(policy, n=64, turns=3, at_once=at_once)))
    assert rows[0] == rows[1] == rows[2]


def test_waiting_requests_are_served_together(policy: HFPolicy) -> None:
    """Tasks that ask within a few turns of the event loop end up in one batch, and in more only over ``max_batch``."""
    asyncio.run(episodes(policy, n=16, turns=3, at_once=16))
    assert policy.counters.requests == 48
    assert policy.counters.batches == 3
    policy.max_batch = 7
    answer(policy, *(request([5, 6], seed=seed) for seed in range(20)))
    assert policy.counters.batches == 6


def test_late_requests_join_the_batch(policy: HFPolicy) -> None:
    """A task that takes a few turns of the loop longer still joins."""

    async def late(ticks: int) -> None:
        for _ in range(ticks):
            await asyncio.sleep(0)
        await policy.generate([request([5, 6], seed=ticks)])

    async def all_of_them() -> None:
        await asyncio.gather(*map(late, range(8)))

    asyncio.run(all_of_them())
    assert policy.counters.batches == 1


def test_answers_come_in_order(policy: HFPolicy) -> None:
    """A call with several prompts of different lengths gets its answers in the order of its requests."""
    requests = [request([5] * (1 + seed % 3), seed=seed) for seed in range(9)]
    alone = [answer(policy, one)[0].ids for one in requests]
    assert [completion.ids for completion in answer(policy, *requests)] == alone


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (request([], 0), "at least 1 token"),
        (request([5], max_tokens=0), "at least 1 token"),
        (request([5] * 252, max_tokens=5), "within 256 tokens, got 252"),
        (Request(ids=[5], sampling=Sampling(temperature=-1.0), seed=0), "temperature of at least 0"),
        (request([5], choices=((6, 7),)), "one end token"),
        (request([5], choices=((6, 6, 6, 6, 6, 3),)), "max_tokens=5, got 6"),
    ],
)
def test_impossible_requests_are_refused_before_anything_runs(policy: HFPolicy, bad: Request, message: str) -> None:
    """A request that cannot be served raises at submission, and its neighbours in the call do not run."""
    with pytest.raises(TokenError, match=message):
        answer(policy, request([5, 6]), bad)
    assert policy.counters.requests == 0


def test_context_may_be_filled_to_the_last_token(policy: HFPolicy) -> None:
    """A prompt and reply of exactly the limit are served."""
    policy.codec.eos_ids = frozenset()
    policy._engine.eos_ids = frozenset()
    assert len(answer(policy, request([5] * 251, max_tokens=5))[0].ids) == 5


def test_failure_reaches_the_callers_of_its_batch_only(policy: HFPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the model is raised where the requests came from; the other batch is answered."""
    serve = policy._engine.serve

    def failing(requests: list[Request]) -> list[Completion]:
        if any(len(one.ids) == 9 for one in requests):
            raise RuntimeError("out of memory")
        return serve(requests)

    monkeypatch.setattr(policy._engine, "serve", failing)
    policy.max_batch = 2

    async def ask() -> list[Any]:
        calls = [policy.generate([request([5] * size)]) for size in (9, 2, 9, 3)]
        return await asyncio.gather(*calls, return_exceptions=True)

    got = asyncio.run(ask())
    assert [type(one) for one in got] == [RuntimeError, list, RuntimeError, list]
    assert not policy.model.training


def test_cancelled_call_does_not_disturb_the_others(policy: HFPolicy) -> None:
    """A task that is cancelled while it waits leaves the batch; the others are answered."""

    async def ask() -> list[Completion]:
        gone = asyncio.create_task(policy.generate([request([5, 6, 7])]))
        stays = asyncio.create_task(policy.generate([request([5, 6])]))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await stays

    assert asyncio.run(ask())[0].ids == answer(policy, request([5, 6]))[0].ids
    assert policy.counters.requests == 2


def test_policy_outlives_its_event_loop(policy: HFPolicy) -> None:
    """After a loop died with a call waiting, the next loop is served."""

    async def abandoned() -> None:
        task = asyncio.create_task(policy.generate([request([5, 6, 7])]))
        await asyncio.sleep(0)
        del task

    asyncio.run(abandoned())
    assert len(answer(policy, request([5, 6]))) == 1


def test_updated_weights_start_a_new_version_without_old_caches(policy: HFPolicy) -> None:
    """After ``updated`` the version has changed and replies are those of a policy that never knew the old weights."""
    answer(policy, request([5, 6, 7, 8]))
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.mul_(1.1)
    policy.updated()
    assert policy.version == 1
    fresh = HFPolicy(policy.model, policy.codec)
    asked = request([5, 6, 7, 8, 9], seed=4)
    assert answer(policy, asked) == answer(fresh, asked)
    assert policy.version == 1


def test_changed_weights_are_noticed(policy: HFPolicy) -> None:
    """An optimizer step that nobody reported still drops the caches and counts a version."""
    prompt = [5, 6, 7, 8]
    answer(policy, request(prompt))
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=0.1)
    policy.model(torch.tensor([prompt])).logits.square().sum().backward()
    optimizer.step()
    got = answer(policy, request([*prompt, 9], seed=4))
    assert policy.version == 1
    assert got == answer(HFPolicy(policy.model, policy.codec), request([*prompt, 9], seed=4))


def test_training_mode_is_left_as_it_was(fresh_model: Callable[[str], Any]) -> None:
    """Sampling switches dropout off, where a model has it, and gives the trainer its mode back."""
    model = fresh_model("gpt2")
    policy = HFPolicy(model, HFCodec(TOKENIZER))
    asked = [request([5, 6], seed=seed) for seed in range(5)]
    expected = answer(policy, *asked)
    policy.forget()
    model.train()
    assert answer(policy, *asked) == expected
    assert model.training
    dropouts = [module for module in model.modules() if isinstance(module, torch.nn.Dropout)]
    assert dropouts
    assert all(module.training and module.p > 0 for module in dropouts)


def test_weights_that_are_not_finite_answer_nothing(policy: HFPolicy) -> None:
    """They are an error for whoever asked, in free and in restricted decoding, not a policy that never succeeds."""
    with torch.no_grad():
        policy.model.model.norm.weight.fill_(float("nan"))
    for choices in (None, tuple(policy.codec.action(command) for command in COMMANDS)):
        with pytest.raises(NumericsError, match="go back to an earlier checkpoint"):
            answer(policy, request([5, 6], choices=choices))


def test_folder_keeps_model_tokenizer_and_template(policy: HFPolicy, tmp_path: Path) -> None:
    """A saved policy loads with the same replies, ids and texts; its weights lie in a safetensors file."""
    policy.save(tmp_path)
    assert (tmp_path / "model.safetensors").is_file()
    loaded = HFPolicy.load(tmp_path, context_limit=40)
    assert (loaded.version, loaded.context_limit, loaded.model.training) == (0, 40, False)
    assert loaded.codec.eos_ids == policy.codec.eos_ids | {0}
    opening = loaded.codec.opening("", "go to cabinet 3")
    assert opening == policy.codec.opening("", "go to cabinet 3")
    policy.codec.eos_ids = policy._engine.eos_ids = loaded.codec.eos_ids
    asked = [request(opening, seed=seed) for seed in range(5)]
    assert answer(loaded, *asked) == answer(policy, *asked)


def test_missing_weights_are_named(policy: HFPolicy, tmp_path: Path) -> None:
    """Weights that the folder lacks are not made up at random."""
    policy.save(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(DataError, match=r"got none for model\.layers\.1\.mlp\.up_proj\.weight"):
        HFPolicy.load(tmp_path)


def test_missing_folder_is_named(tmp_path: Path) -> None:
    """Loading from a place without a model says which place."""
    with pytest.raises(DataError, match=r"config\.json"):
        HFPolicy.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"context_limit": 257}, "2 to 256 tokens, got 257"), ({"max_batch": 0}, "at least 1, got 0")],
)
def test_impossible_settings_are_refused(
    fresh_model: Callable[[str], Any], options: dict[str, int], message: str
) -> None:
    """A context beyond the model's, or an empty batch, is refused at once."""
    with pytest.raises(ConfigError, match=message):
        HFPolicy(fresh_model("qwen3"), HFCodec(TOKENIZER), **options)


def test_tokenizer_of_another_model_is_refused(fresh_model: Callable[[str], Any]) -> None:
    """Ids beyond the model's vocabulary are noticed before they are embedded."""
    large = build_word_tokenizer([f"thing {number}" for number in range(60)])
    with pytest.raises(ConfigError, match="at most 50 tokens, got"):
        HFPolicy(fresh_model("qwen3"), HFCodec(large))


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_rows_have_the_sampled_logprobs(policy: HFPolicy, side: str) -> None:
    """Rows of lengths 3 and 9 in one padded forward pass, padded on either side, repeat what was sampled."""
    policy._engine.eos_ids = frozenset()
    requests = [request([5], max_tokens=2, seed=1), request([6, 7, 8, 9], max_tokens=5, seed=2)]
    replies = answer(policy, *requests)
    ids, mask = torch.zeros(2, 9, dtype=torch.int64), torch.zeros(2, 9, dtype=torch.int64)
    starts = []
    for i, (asked, reply) in enumerate(zip(requests, replies, strict=True)):
        row = [*asked.ids, *reply.ids]
        starts.append(9 - len(row) if side == "left" else 0)
        ids[i, starts[i] : starts[i] + len(row)] = torch.tensor(row)
        mask[i, starts[i] : starts[i] + len(row)] = 1
    with torch.inference_mode():
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        logprobs = policy.model(ids, attention_mask=mask, position_ids=position).logits.log_softmax(-1)
    for i, (asked, reply) in enumerate(zip(requests, replies, strict=True)):
        at = starts[i] + len(asked.ids) - 1
        got = [float(logprobs[i, at + k, id_]) for k, id_ in enumerate(reply.ids)]
        np.testing.assert_allclose(got, reply.logprobs, atol=1e-5)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_damaged_folder_is_named(policy: HFPolicy, tmp_path: Path, file: str) -> None:
    """Weights, config or tokenizer that cannot be read are an error with the folder in it, not the library's own."""
    policy.save(tmp_path)
    (tmp_path / file).write_text("{")
    with pytest.raises(DataError, match="expected a folder with config, weights"):
        HFPolicy.load(tmp_path)


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gpt2"])
def test_features_are_what_the_output_layer_sees(fresh_model: Callable[[str], Any], kind: str) -> None:
    """In the order asked for, whatever shares a forward pass: the output layer makes the model's own logits of them."""
    policy, rng = HFPolicy(fresh_model(kind), HFCodec(TOKENIZER)), np.random.default_rng(0)
    ids = [rng.integers(1, 20, size=length) for length in (9, 4, 12)]
    places = [[2, 8], [], [0, 11]]
    found = policy.features(ids, places, batch=2)
    assert found.dtype == np.float32
    with torch.no_grad():
        logits = policy.model.get_output_embeddings()(torch.from_numpy(found))
        alone = [
            policy.model(torch.from_numpy(row)[None]).logits[0, mine] for row, mine in zip(ids, places, strict=True)
        ]
    torch.testing.assert_close(logits, torch.cat(alone), rtol=1e-4, atol=1e-4)
    assert policy.features([], [], batch=2).shape == (0, 32)


def test_features_leave_the_policy_as_it_was(policy: HFPolicy) -> None:
    """Training mode, caches and gradients are untouched."""
    answer(policy, request([5, 6]))
    policy.model.train()
    kept = len(policy._engine.store)
    policy.features([np.array([5, 6, 7])], [[1]], batch=1)
    assert policy.model.training
    assert len(policy._engine.store) == kept
    assert all(parameter.grad is None and parameter.requires_grad for parameter in policy.model.parameters())
