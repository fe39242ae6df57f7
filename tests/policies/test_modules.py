"""Tests of decoding through transformers' modules beyond what all decoders pass."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import MambaConfig, MambaForCausalLM
from transformers.cache_utils import DYNAMIC_LAYER_TYPE_MAPPING, DynamicLayer

from prover.errors import ConfigError
from prover.policies.modules import ModuleDecoder


def test_recurrent_states_cannot_be_cut(model_of: Callable[[str], Any]) -> None:
    """A model with a recurrent layer is continued from whole prefixes only, pure attention from any part."""
    assert not ModuleDecoder(model_of("qwen3_5")).truncates
    assert ModuleDecoder(model_of("gemma3")).truncates


@torch.inference_mode()
def test_hybrid_model_equals_its_own_forward_pass_over_turns(model_of: Callable[[str], Any]) -> None:
    """Twelve ragged appends keep a batch of a hybrid model equal to a full forward pass over each row."""
    model = model_of("qwen3_5")
    rng = np.random.default_rng(3)
    texts: list[list[int]] = [[] for _ in range(4)]
    rows = ModuleDecoder(model).open([None] * 4, 150)
    for _ in range(12):
        chunks = [rng.integers(1, 50, size=rng.integers(1, 12)).tolist() for _ in texts]
        logits = rows.extend(range(4), chunks)
        for text, chunk, got in zip(texts, chunks, logits, strict=True):
            text.extend(chunk)
            # The chunked and the step-wise form of the recurrence round differently, here on logits of about 5.
            np.testing.assert_allclose(got, model(torch.tensor([text])).logits[0, -1].numpy(), atol=1e-3)


@torch.inference_mode()
def test_model_that_forgets_within_chunks_is_fed_token_by_token() -> None:
    """Mamba drops its state when it gets several tokens at once; the decoder notices and still equals the whole."""
    config = MambaConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2, state_size=4, initializer_range=0.5)
    model = MambaForCausalLM(config).eval()
    decoder = ModuleDecoder(model)
    assert decoder.at_once == 1
    rows = decoder.open([None, None], 10)
    rows.extend([0, 1], [[3, 4, 5], [6]])
    logits = rows.extend([0, 1], [[7, 8], [9, 1, 2]])
    for got, ids in zip(logits, ([3, 4, 5, 7, 8], [6, 9, 1, 2]), strict=True):
        np.testing.assert_allclose(got, model(torch.tensor([ids])).logits[0, -1].numpy(), atol=1e-4)


def test_model_that_ignores_its_caches_is_refused(
    fresh_model: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose logits do not follow from the kept state is named as what cannot be served."""
    model = fresh_model("gemma3")
    forward = type(model.model.layers[0].self_attn).forward

    def forgetful(self: Any, hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return forward(self, hidden_states + float(hidden_states.shape[1]), *args, **kwargs)

    monkeypatch.setattr(type(model.model.layers[0].self_attn), "forward", forgetful)
    with pytest.raises(ConfigError, match="continues from its caches"):
        ModuleDecoder(model)


def test_models_with_other_caches_are_refused(
    fresh_model: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind of cache layer that is not known is named."""

    class OtherLayer(DynamicLayer):
        pass

    monkeypatch.setitem(DYNAMIC_LAYER_TYPE_MAPPING, "sliding_attention", lambda **_: OtherLayer())
    with pytest.raises(ConfigError, match="got a OtherLayer"):
        ModuleDecoder(fresh_model("gemma3"))
