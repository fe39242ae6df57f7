"""Tests that every decoder passes: carrying sequences forward equals reading them as a whole."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from prover.policies.decoder import Decoder
from prover.policies.modules import ModuleDecoder
from prover.policies.plain import PlainDecoder

CASES = [
    *((PlainDecoder, kind) for kind in ("qwen3", "qwen2", "llama")),
    *((ModuleDecoder, kind) for kind in ("qwen3", "qwen3_5", "gemma3", "mistral", "gpt2")),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def case(request: pytest.FixtureRequest, model_of: Callable[[str], Any]) -> tuple[Decoder, Any]:
    """A decoder and the model under it."""
    make, kind = request.param
    model = model_of(kind)
    return make(model), model


def sequence(length: int, seed: int) -> list[int]:
    """Random ids."""
    return list(map(int, np.random.default_rng(seed).integers(1, 50, size=length)))


def whole(model: Any, ids: list[int]) -> np.ndarray:
    """Logits after ``ids`` by the model's own forward pass."""
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0, -1].numpy()


@torch.inference_mode()
def test_ragged_chunks_equal_whole_sequences(case: tuple[Decoder, Any]) -> None:
    """Rows of different lengths, fed in chunks of different lengths, have the logits of single sequences."""
    decoder, model = case
    texts = [sequence(length, seed) for seed, length in enumerate((3, 17, 9, 12))]
    rows = decoder.open([None] * 4, 40)
    first = rows.extend(range(4), texts)
    more = {2: sequence(1, 10), 0: sequence(5, 11), 3: sequence(13, 12)}
    second = rows.extend(list(more), list(more.values()))
    third = rows.extend([1, 2], [[4], [5]])
    for row, text in enumerate(texts):
        np.testing.assert_allclose(first[row], whole(model, text), atol=1e-4)
    for i, (row, chunk) in enumerate(more.items()):
        np.testing.assert_allclose(second[i], whole(model, texts[row] + chunk), atol=1e-4)
    np.testing.assert_allclose(third[0], whole(model, [*texts[1], 4]), atol=1e-4)
    np.testing.assert_allclose(third[1], whole(model, [*texts[2], *more[2], 5]), atol=1e-4)
    assert rows.lengths == [8, 18, 11, 25]


@torch.inference_mode()
def test_selected_rows_go_their_own_ways(case: tuple[Decoder, Any]) -> None:
    """A row that is taken twice continues as two sequences; one left out does not matter."""
    decoder, model = case
    texts = [sequence(6, 1), sequence(11, 2), sequence(4, 3)]
    rows = decoder.open([None] * 3, 20)
    rows.extend(range(3), texts)
    chosen = rows.select([2, 0, 2])
    logits = chosen.extend(range(3), [[7], [8], [9, 10]])
    for got, ids in zip(logits, ([*texts[2], 7], [*texts[0], 8], [*texts[2], 9, 10]), strict=True):
        np.testing.assert_allclose(got, whole(model, ids), atol=1e-4)


@torch.inference_mode()
def test_kept_prefix_is_continued(case: tuple[Decoder, Any]) -> None:
    """A kept state goes on in another batch, beside rows that start empty, and is not changed by it."""
    decoder, model = case
    text = sequence(14, 5)
    rows = decoder.open([None, None], 20)
    rows.extend([0, 1], [sequence(3, 6), text])
    prefix = rows.keep(1)
    before = [tensor.clone() for tensor in prefix.tensors]
    rows.extend([1], [[3, 3, 3]])
    other = sequence(5, 7)
    again = decoder.open([None, prefix, prefix], 30)
    logits = again.extend(range(3), [other, [8, 9], [10]])
    for got, ids in zip(logits, (other, [*text, 8, 9], [*text, 10]), strict=True):
        np.testing.assert_allclose(got, whole(model, ids), atol=1e-4)
    assert prefix.length == 14
    assert all(torch.equal(a, b) for a, b in zip(before, prefix.tensors, strict=True))


@pytest.mark.parametrize("case", [case for case in CASES if case[1] != "qwen3_5"], indirect=True, ids=str)
@torch.inference_mode()
def test_prefix_may_be_cut_where_the_decoder_says_so(case: tuple[Decoder, Any]) -> None:
    """A decoder that truncates continues from any part of a kept prefix."""
    decoder, model = case
    assert decoder.truncates
    text = sequence(14, 8)
    rows = decoder.open([None], 20)
    rows.extend([0], [text])
    kept = rows.keep(0)
    cut = type(kept)(length=5, tensors=kept.tensors)
    logits = decoder.open([cut], 20).extend([0], [[1, 2]])
    np.testing.assert_allclose(logits[0], whole(model, [*text[:5], 1, 2]), atol=1e-4)


@torch.inference_mode()
def test_long_chunks_are_cut_into_blocks(case: tuple[Decoder, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask limit far below the chunks changes the work's shape, not its result."""
    decoder, model = case
    monkeypatch.setattr(f"{type(decoder).__module__}._MASK_LIMIT", 120)
    texts = [sequence(23, 1), sequence(9, 2), sequence(16, 3)]
    logits = decoder.open([None] * 3, 30).extend(range(3), texts)
    for got, text in zip(logits, texts, strict=True):
        np.testing.assert_allclose(got, whole(model, text), atol=1e-4)
