"""Tiny random models, one for each kind of architecture."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 50
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 48,
    "tie_word_embeddings": True,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 0,
    "pad_token_id": 0,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 1e4,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def _build(kind: str) -> Any:
    match kind:
        case "qwen3":
            return Qwen3ForCausalLM(Qwen3Config(**SHAPE))
        case "qwen2":
            return Qwen2ForCausalLM(Qwen2Config(**SHAPE))
        case "llama":
            return LlamaForCausalLM(LlamaConfig(**SHAPE, rope_parameters=LLAMA3_ROPE))
        case "qwen3_5":
            layers = ["linear_attention", "full_attention"]
            heads = {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
            dims = {"linear_key_head_dim": 8, "linear_value_head_dim": 8}
            return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**SHAPE, **heads, **dims, layer_types=layers))
        case "gemma3":
            layers = ["sliding_attention", "full_attention"]
            return Gemma3ForCausalLM(Gemma3TextConfig(**SHAPE, sliding_window=8, layer_types=layers))
        case "mistral":
            return MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=8))
        case "gpt2":
            sizes = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
            return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=1, eos_token_id=0))
    raise AssertionError(kind)


def build(kind: str) -> Any:
    """A model of a kind, with weights that do not depend on any global generator."""
    model = _build(kind)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            # Norms stay near what they were, all else becomes large enough for peaked distributions.
            parameter.copy_(parameter + 0.1 * noise if "norm" in name or ".ln_" in name else 0.3 * noise)
    return model.eval()


@pytest.fixture(scope="session")
def model_of() -> Callable[[str], Any]:
    """Shared models by kind; nobody may change them."""
    return cache(build)


@pytest.fixture
def fresh_model() -> Callable[[str], Any]:
    """Models of one's own, to be changed at will."""
    return build
