"""Tests of the lean forward pass beyond what all decoders pass."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from prover.policies.plain import PlainDecoder


@pytest.mark.parametrize(("kind", "supported"), [("qwen3", True), ("qwen2", True), ("llama", True), ("gemma3", False)])
def test_only_plain_decoders_are_supported(model_of: Callable[[str], Any], kind: str, supported: bool) -> None:
    """Architectures with other norms, windows or recurrent layers take the other path."""
    assert PlainDecoder.supports(model_of(kind)) is supported


def test_changed_modules_are_not_supported(fresh_model: Callable[[str], Any]) -> None:
    """A linear layer that is no plain one, as adapters put in, is left to transformers; so is half precision."""

    class Adapter(torch.nn.Linear):
        pass

    model = fresh_model("qwen3")
    model.model.layers[0].mlp.up_proj = Adapter(32, 48, bias=False)
    assert not PlainDecoder.supports(model)
    assert not PlainDecoder.supports(fresh_model("qwen3").to(torch.bfloat16))


@torch.inference_mode()
def test_logits_equal_those_of_transformers(model_of: Callable[[str], Any]) -> None:
    """On a batch of full rows the logits agree within 1e-5 at every length."""
    model = model_of("qwen3")
    ids = np.random.default_rng(0).integers(1, 50, size=(5, 40))
    rows = PlainDecoder(model).open([None] * 5, 40)
    want = model(torch.from_numpy(ids)).logits.numpy()
    got = rows.extend(range(5), ids[:, :30].tolist())
    np.testing.assert_allclose(got, want[:, 29], atol=1e-5)
    for column in range(30, 40):
        got = rows.extend(range(5), ids[:, column : column + 1].tolist())
        np.testing.assert_allclose(got, want[:, column], atol=1e-5)


def test_refresh_follows_replaced_parameters(fresh_model: Callable[[str], Any]) -> None:
    """After a parameter object was replaced, ``refresh`` makes the decoder read the new one."""
    model = fresh_model("qwen3")
    decoder = PlainDecoder(model)
    model.model.layers[1].mlp.down_proj.weight = torch.nn.Parameter(torch.zeros(32, 48))
    decoder.refresh()
    with torch.inference_mode():
        got = decoder.open([None], 4).extend([0], [[3, 4]])
        np.testing.assert_allclose(got[0], model(torch.tensor([[3, 4]])).logits[0, -1].numpy(), atol=1e-5)
