"""A lean forward pass for plain decoders (Llama, Qwen2, Qwen3): the embedded default's fast path.

It reads the live weights of the transformers model and equals its logits to about 1e-6. What it saves: all linear
layers run on the tokens of the whole batch packed behind each other, without padding; grouped-query attention folds
the group into the query instead of repeating keys; keys and values stay where they were written, in a buffer whose
column is the position, so that rows of any length advance together.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from prover.policies.prefixes import Prefix

_FAMILY = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_STATIC_ROPE = ("default", "linear", "llama3", "yarn")
_MASK_LIMIT = 4_000_000  # elements of an attention mask; longer chunks are cut into blocks


class _Layer(NamedTuple):
    """Live parameters of one layer: linear ones as (weight, bias), norms as weights."""

    before_attention: Tensor
    query: tuple[Tensor, Tensor | None]
    key: tuple[Tensor, Tensor | None]
    value: tuple[Tensor, Tensor | None]
    query_norm: Tensor | None
    key_norm: Tensor | None
    out: tuple[Tensor, Tensor | None]
    before_mlp: Tensor
    gate: tuple[Tensor, Tensor | None]
    up: tuple[Tensor, Tensor | None]
    down: tuple[Tensor, Tensor | None]


class PlainDecoder:
    """Decoder over the weights of a supported model."""

    truncates = True

    def __init__(self, model: Any) -> None:
        self.model = model
        config = model.config
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        attention = model.model.layers[0].self_attn
        self.head_dim: int = attention.head_dim
        self.scale: float = attention.scaling
        self.eps: float = config.rms_norm_eps
        self.layers: list[_Layer] = []
        self._rope: tuple[Tensor, Tensor] = self._rotations(1)
        self.refresh()

    def refresh(self) -> None:
        """See ``Decoder.refresh``: look the parameters up once, not for every token."""
        self.layers = [_layer(layer) for layer in self.model.model.layers]

    @staticmethod
    def supports(model: Any) -> bool:
        """Whether this forward pass is the model's own: a plain decoder with full attention and no adapters."""
        config = model.config
        linear = all(
            type(module) is torch.nn.Linear or not hasattr(module, "in_features") for module in model.modules()
        )
        return (
            type(model).__name__ in _FAMILY
            and linear
            and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
            and config.hidden_act == "silu"
            and config.rope_parameters["rope_type"] in _STATIC_ROPE
            and next(model.parameters()).dtype == torch.float32
        )

    def open(self, prefixes: Sequence[Prefix | None], capacity: int) -> "PlainRows":
        """See ``Decoder.open``."""
        if len(self._rope[0]) < capacity:
            self._rope = self._rotations(2 * capacity)
        shape = (len(self.layers), 2, len(prefixes), self.kv_heads, capacity, self.head_dim)
        # Zeros, not empty memory: a masked column weighs 0, and 0 times garbage may be NaN.
        cache = torch.zeros(shape)
        for row, prefix in enumerate(prefixes):
            if prefix:
                cache[:, :, row, :, : prefix.length] = prefix.tensors[0][:, :, :, : prefix.length]
        return PlainRows(self, cache, [prefix.length if prefix else 0 for prefix in prefixes])

    def norm(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Root-mean-square norm over the last axis."""
        return F.rms_norm(x, (x.shape[-1],), weight, self.eps)

    def _rotations(self, n: int) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines of positions 0..n-1, shape (n, 1, d): rotate-half becomes one roll."""
        cos, sin = self.model.model.rotary_emb(torch.zeros(1), torch.arange(n)[None])
        half = self.head_dim // 2
        signed = torch.cat((-sin[0, :, :half], sin[0, :, half:]), dim=-1)
        return cos[0][:, None], signed[:, None]


class PlainRows:
    """See ``decoder.Rows``. Keys and values: (layer, key or value, row, kv head, position, d)."""

    def __init__(self, decoder: PlainDecoder, cache: Tensor, lengths: list[int]) -> None:
        self.lengths = lengths
        self._decoder = decoder
        self._cache = cache

    def select(self, rows: Sequence[int]) -> "PlainRows":
        """See ``Rows.select``."""
        cache = self._cache.index_select(2, torch.tensor(rows))
        return PlainRows(self._decoder, cache, [self.lengths[row] for row in rows])

    def keep(self, row: int) -> Prefix:
        """See ``Rows.keep``."""
        n = self.lengths[row]
        return Prefix(length=n, tensors=(self._cache[:, :, row, :, :n].clone(),))

    def extend(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """See ``Rows.extend``."""
        decoder = self._decoder
        columns = max(self.lengths[row] + len(chunk) for row, chunk in zip(rows, chunks, strict=True))
        groups = decoder.heads // decoder.kv_heads
        block = max(1, _MASK_LIMIT // (len(self.lengths) * groups * columns))
        last = torch.empty(len(rows), decoder.model.config.hidden_size)
        for start in range(0, max(map(len, chunks)), block):
            live = [i for i, chunk in enumerate(chunks) if len(chunk) > start]
            hidden, ends = self._forward([rows[i] for i in live], [chunks[i][start : start + block] for i in live])
            last[live] = hidden[ends]
        logits: Tensor = decoder.model.lm_head(decoder.norm(last, decoder.model.model.norm.weight))
        return logits.numpy()

    def _forward(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> tuple[Tensor, list[int]]:
        """Hidden states of the packed tokens, shape (N, h), and the index of each chunk's last one."""
        decoder, model = self._decoder, self._decoder.model.model
        where = _Places(rows, chunks, self.lengths, decoder)
        for row, chunk in zip(rows, chunks, strict=True):
            self.lengths[row] += len(chunk)
        cos, sin = decoder._rope[0][where.position], decoder._rope[1][where.position]
        hidden = F.embedding(where.ids, model.embed_tokens.weight)
        heads = (-1, decoder.heads + decoder.kv_heads, decoder.head_dim)
        for layer, cache in zip(decoder.layers, self._cache, strict=True):
            x = decoder.norm(hidden, layer.before_attention)
            query, key, value = F.linear(x, *layer.query), F.linear(x, *layer.key), F.linear(x, *layer.value)
            turned = torch.cat((query, key), -1).view(heads)
            if layer.query_norm is not None and layer.key_norm is not None:
                turned = decoder.norm(turned)
                turned[:, : decoder.heads] *= layer.query_norm
                turned[:, decoder.heads :] *= layer.key_norm
            turned = turned * cos + turned.roll(decoder.head_dim // 2, -1).mul_(sin)
            cache[0][where.row, :, where.position] = turned[:, decoder.heads :]
            cache[1][where.row, :, where.position] = value.view(-1, decoder.kv_heads, decoder.head_dim)
            hidden += F.linear(where.attend(turned[:, : decoder.heads], cache), *layer.out)
            x = decoder.norm(hidden, layer.before_mlp)
            hidden += F.linear(F.silu(F.linear(x, *layer.gate)).mul_(F.linear(x, *layer.up)), *layer.down)
        return hidden, where.ends


class _Places:
    """Where the packed tokens of one forward pass stand: in the batch, in their chunk and in their sequence."""

    def __init__(
        self, rows: Sequence[int], chunks: Sequence[Sequence[int]], lengths: Sequence[int], decoder: PlainDecoder
    ) -> None:
        sizes = [len(chunk) for chunk in chunks]
        n_rows, width = len(lengths), max(sizes)
        slot = np.concatenate([np.arange(size) for size in sizes]) if width > 1 else np.zeros(len(rows), dtype=np.int64)
        start = np.repeat([lengths[row] for row in rows], sizes)
        self.ids = torch.tensor([id_ for chunk in chunks for id_ in chunk])
        self.row = torch.from_numpy(np.repeat(np.asarray(rows), sizes))
        self.position = torch.from_numpy(start + slot)
        self.ends: list[int] = (np.cumsum(sizes) - 1).tolist()
        self._slot = torch.from_numpy(slot)
        self._decoder = decoder
        self._packed = width == 1 and list(rows) == list(range(n_rows))
        self._shape = (n_rows, width, decoder.kv_heads, decoder.heads // decoder.kv_heads, decoder.head_dim)
        # Slots without a token look at column 0 alone; what they yield is never read.
        seen = torch.zeros(n_rows, width, dtype=torch.int64)
        seen[self.row, self._slot] = self.position
        self._columns = int(self.position.max()) + 1
        hidden = torch.arange(self._columns) > seen[..., None]
        mask = torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
        groups = self._shape[3]
        self._mask = mask[:, None].expand(-1, groups, -1, -1).reshape(n_rows, 1, groups * width, self._columns)

    def attend(self, query: Tensor, cache: Tensor) -> Tensor:
        """Attention of packed queries (N, heads, d) over the buffer (2, row, kv head, column, d): (N, heads * d)."""
        n_rows, width, kv_heads, groups, dim = self._shape
        if self._packed:
            padded = query.view(n_rows, kv_heads, groups, dim)
        else:
            spread = query.new_zeros(n_rows, width, kv_heads * groups, dim)
            spread[self.row, self._slot] = query
            padded = spread.view(self._shape).permute(0, 2, 3, 1, 4).reshape(n_rows, kv_heads, groups * width, dim)
        keys, values = cache[0][:, :, : self._columns], cache[1][:, :, : self._columns]
        mixed = F.scaled_dot_product_attention(padded, keys, values, attn_mask=self._mask, scale=self._decoder.scale)
        if not self._packed:
            mixed = mixed.view(n_rows, kv_heads, groups, width, dim).permute(0, 3, 1, 2, 4)[self.row, self._slot]
        return mixed.reshape(len(query), kv_heads * groups * dim)


def _layer(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    query, key, value, out = ((getattr(attention, n).weight, getattr(attention, n).bias) for n in names)
    gate, up, down = ((getattr(mlp, n).weight, getattr(mlp, n).bias) for n in ("gate_proj", "up_proj", "down_proj"))
    normed = hasattr(attention, "q_norm")
    return _Layer(
        before_attention=layer.input_layernorm.weight,
        query=query,
        key=key,
        value=value,
        query_norm=attention.q_norm.weight if normed else None,
        key_norm=attention.k_norm.weight if normed else None,
        out=out,
        before_mlp=layer.post_attention_layernorm.weight,
        gate=gate,
        up=up,
        down=down,
    )
