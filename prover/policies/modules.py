"""Decoding through transformers' own modules: any causal language model, hybrid ones with recurrent layers included.

Attention layers keep keys and values at the column of their position, so rows of any length share a batch under a
mask. Recurrent layers have no columns, and padding would run through their state: every forward pass therefore takes
chunks of one length, cut out of the longer ones. Their state cannot be cut either, so it is kept for exact lengths.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionLayer

from prover.errors import ConfigError
from prover.policies.prefixes import Prefix

_MASK_LIMIT = 4_000_000  # elements of an attention mask; larger batches are cut


class ModuleDecoder:
    """Decoder over a transformers model of any architecture with full, sliding or linear attention layers."""

    def __init__(self, model: Any) -> None:
        """Learn the shapes of the model's caches from a forward pass over one token, and check that it goes on right.

        Raises:
            ConfigError: The model has layers whose cache is of another kind, or it does not continue from its caches as
                if it had read the whole text, not even token by token.
        """
        self.model = model
        signature = inspect.signature(model.forward).parameters
        # transformers renamed the argument between the versions that are supported.
        self.cache_name = "cache" if "cache" in signature else "past_key_values"
        probe = DynamicCache(config=model.config)
        training = model.training
        model.eval()
        with torch.inference_mode():
            model(input_ids=torch.zeros(1, 1, dtype=torch.int64), use_cache=True, **{self.cache_name: probe})
        self.shapes: list[tuple[torch.Size, torch.Size]] = []
        self.windows: list[int | None] = []
        self.recurrent: list[bool] = []
        for layer in probe.layers:
            if type(layer) is LinearAttentionLayer and layer.number_of_states == 1:
                tensors = layer.conv_states[0], layer.recurrent_states[0]
            elif type(layer) in (DynamicLayer, DynamicSlidingWindowLayer):
                tensors = layer.keys, layer.values
            else:
                raise ConfigError(
                    f"expected layers with full, sliding or linear attention, got a {type(layer).__name__}; "
                    "serve this model with another engine"
                )
            self.shapes.append((tensors[0].shape, tensors[1].shape))
            self.windows.append(getattr(layer, "sliding_window", None))
            self.recurrent.append(type(layer) is LinearAttentionLayer)
        self.truncates = not any(self.recurrent)
        self.at_once: int | None = None
        """Most tokens of a row in one forward pass; None for any number."""
        if not self._continues():
            # Some versions and architectures ignore earlier states when they get several tokens at once.
            self.at_once = 1
            if not self._continues():
                raise ConfigError(
                    "expected a model that continues from its caches as if it had read the whole text, but "
                    f"{type(model).__name__} does not; serve this model with another engine"
                )
        model.train(training)

    @torch.inference_mode()
    def _continues(self) -> bool:
        """Whether two chunks one after the other have the logits of the whole."""
        ids = [0, 1, 0, 0, 1, 1, 0]
        whole = self.model(input_ids=torch.tensor([ids])).logits[0, -1].float().numpy()
        rows = self.open([None], len(ids))
        rows.extend([0], [ids[:3]])
        return bool(np.abs(rows.extend([0], [ids[3:]])[0] - whole).max() <= 1e-4 * np.abs(whole).max())

    def refresh(self) -> None:
        """See ``Decoder.refresh``: nothing is derived from the parameters."""

    def open(self, prefixes: Sequence[Prefix | None], capacity: int) -> "ModuleRows":
        """See ``Decoder.open``."""
        states: list[Tensor] = []
        for index, (shapes, recurrent) in enumerate(zip(self.shapes, self.recurrent, strict=True)):
            for side, (_, *shape) in enumerate(shapes):
                if not recurrent:
                    shape[1] = capacity
                # An empty recurrent state is a state of zeros.
                state = torch.zeros(len(prefixes), *shape)
                for row, prefix in enumerate(prefixes):
                    if prefix and recurrent:
                        state[row] = prefix.tensors[2 * index + side]
                    elif prefix:
                        state[row, :, : prefix.length] = prefix.tensors[2 * index + side][:, : prefix.length]
                states.append(state)
        return ModuleRows(self, states, [prefix.length if prefix else 0 for prefix in prefixes])


class ModuleRows:
    """See ``decoder.Rows``. Two state tensors per layer: keys and values, or convolution and recurrent state."""

    def __init__(self, decoder: ModuleDecoder, states: list[Tensor], lengths: list[int]) -> None:
        self.lengths = lengths
        self._decoder = decoder
        self._states = states

    def select(self, rows: Sequence[int]) -> "ModuleRows":
        """See ``Rows.select``."""
        index = torch.tensor(rows)
        states = [state.index_select(0, index) for state in self._states]
        return ModuleRows(self._decoder, states, [self.lengths[row] for row in rows])

    def keep(self, row: int) -> Prefix:
        """See ``Rows.keep``."""
        n, recurrent = self.lengths[row], self._decoder.recurrent
        tensors = [
            (state[row] if recurrent[index // 2] else state[row, :, :n]).clone()
            for index, state in enumerate(self._states)
        ]
        return Prefix(length=n, tensors=tuple(tensors))

    def extend(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """See ``Rows.extend``."""
        sizes = np.array([len(chunk) for chunk in chunks])
        columns = max(self.lengths[row] + len(chunk) for row, chunk in zip(rows, chunks, strict=True))
        logits: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(rows)
        start = 0
        while start < sizes.max():
            # All chunks that reach this far, as far as the shortest of them does.
            most = self._decoder.at_once or max(1, _MASK_LIMIT // columns)
            stop = min(int(sizes[sizes > start].min()), start + most)
            live = np.flatnonzero(sizes > start)
            at_once = max(1, _MASK_LIMIT // (columns * (stop - start)))
            for part in np.split(live, range(at_once, len(live), at_once)):
                out = self._forward([rows[i] for i in part], [chunks[i][start:stop] for i in part])
                for i, scores in zip(part, out, strict=True):
                    logits[i] = scores
            start = stop
        return np.stack(logits)

    def _forward(self, rows: Sequence[int], chunks: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Run chunks of one length; logits after them, shape (len(rows), V)."""
        decoder, index = self._decoder, torch.tensor(rows)
        starts = torch.tensor([self.lengths[row] for row in rows])
        position = starts[:, None] + torch.arange(len(chunks[0]))
        for row, chunk in zip(rows, chunks, strict=True):
            self.lengths[row] += len(chunk)
        columns = int(position.max()) + 1
        layers: list[Any] = []
        for at, recurrent in enumerate(decoder.recurrent):
            first, second = self._states[2 * at], self._states[2 * at + 1]
            layers.append(
                _recurrent_layer(first[index], second[index])
                if recurrent
                else _ColumnLayer(first, second, index, position, columns)
            )
        cache = Cache(layers=layers)
        output = decoder.model(
            input_ids=torch.tensor(list(map(list, chunks))),
            position_ids=position,
            attention_mask=self._masks(position, columns),
            use_cache=True,
            logits_to_keep=1,
            **{decoder.cache_name: cache},
        )
        for at, recurrent in enumerate(decoder.recurrent):
            if recurrent:
                self._states[2 * at][index] = layers[at].conv_states[0]
                self._states[2 * at + 1][index] = layers[at].recurrent_states[0]
        logits: Tensor = output.logits[:, -1]
        return logits.float().numpy()

    def _masks(self, position: Tensor, columns: int) -> Any:
        """What each token may attend to: one mask, or one for each kind of layer where the model mixes kinds."""
        decoder = self._decoder
        if all(decoder.recurrent):
            return None  # chunks hold no padding
        back = position[:, None, :, None] - torch.arange(columns)
        full = back >= 0
        windows = {window for window in decoder.windows if window}
        sliding = full & (back < windows.pop()) if windows else full
        kinds = set(getattr(decoder.model.config, "layer_types", None) or ())
        if len(kinds) > 1:
            return {kind: m for kind, m in _by_kind(full, sliding).items() if kind in kinds}
        return sliding


def _by_kind(full: Tensor, sliding: Tensor) -> dict[str, Tensor | None]:
    # Chunks hold no padding, so recurrent layers need no mask.
    return {"full_attention": full, "sliding_attention": sliding, "linear_attention": None}


def _recurrent_layer(convolution: Tensor, recurrent: Tensor) -> LinearAttentionLayer:
    """A cache layer of transformers that goes on from the given states."""
    layer = LinearAttentionLayer()
    layer.dtype, layer.device = convolution.dtype, convolution.device
    layer.conv_states[0], layer.recurrent_states[0] = convolution, recurrent
    layer.conv_kernel_size[0] = convolution.shape[-1]
    layer.is_conv_states_initialized[0] = layer.is_recurrent_states_initialized[0] = True
    layer.has_previous_state[0] = True
    return layer


class _ColumnLayer(DynamicLayer):  # type: ignore[misc]  # transformers is untyped
    """A cache layer whose rows write at their own positions into buffers (row, head, column, d) of another owner."""

    def __init__(self, keys: Tensor, values: Tensor, rows: Tensor, position: Tensor, columns: int) -> None:
        super().__init__()
        self.keys, self.values = keys, values
        self.is_initialized = True
        self._rows, self._position, self._columns = rows, position, columns
        self._whole = len(rows) == len(keys) and bool((rows == torch.arange(len(keys))).all())

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write the new columns; return all columns of the rows."""
        views = []
        for buffer, new in ((self.keys, key_states), (self.values, value_states)):
            # Indices on both sides of a slice: their axes come first, so (row, token, head, d).
            buffer[self._rows[:, None], :, self._position] = new.transpose(1, 2)
            rows = buffer if self._whole else buffer[self._rows]
            views.append(rows[:, :, : self._columns])
        return views[0], views[1]

    def get_seq_length(self) -> int:
        """Columns in use before the chunk that is being written."""
        return self._columns - self._position.shape[1]
