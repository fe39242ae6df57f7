"""The embedded policy: decoding against ``generate``, branches against computing anew, updates against training."""

from typing import Any

import numpy as np
import pytest

ROWS, CONTEXT, NEW = 16, 300, 12


@pytest.fixture(scope="module")
def model() -> Any:
    """A random Qwen3 of 0.9M parameters, on one thread."""
    import torch
    from decode_speed import build_model

    torch.set_num_threads(1)
    return build_model()


def test_decoding(model: Any, faster: Any) -> None:
    """Many episodes as one batch, each with a seed of its own: not slower than transformers, which has none."""
    import torch
    from decode_speed import NO_EOS, prompts

    from prover.policies.engine import Engine
    from prover.policies.plain import PlainDecoder
    from prover.policies.prefixes import PrefixStore
    from prover.records import Request, Sampling

    batch = prompts(ROWS, CONTEXT)
    ids = torch.tensor(batch)

    def generate() -> None:
        with torch.inference_mode():
            model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=True, max_new_tokens=NEW, min_new_tokens=NEW
            )

    def serve() -> None:
        engine = Engine(PlainDecoder(model), PrefixStore(0), NO_EOS)
        engine.serve([Request(ids=row, sampling=Sampling(max_tokens=NEW), seed=i) for i, row in enumerate(batch)])

    faster(f"decode {ROWS} x {NEW} tokens at {CONTEXT}", serve, generate, than="generate of transformers", floor=0.6)


def test_branches(model: Any, faster: Any) -> None:
    """Turns that go on from kept caches are faster than those that compute their prompt anew."""
    from decode_speed import rollout

    from prover.policies.plain import PlainDecoder

    decoder = PlainDecoder(model)
    faster(
        "8 turns of 16 episodes, prefixes kept",
        lambda: rollout(decoder, 1 << 30, 16, 8),
        lambda: rollout(decoder, 0, 16, 8),
        than="every prompt computed anew",
        floor=1.5,
    )


def test_updates(model: Any, faster: Any) -> None:
    """Three trained tokens of ten: an update costs little more than training on all tokens of the padded rows."""
    import torch

    from prover.config import OptimConfig
    from prover.objective import TrainRow
    from prover.records import TokenRow
    from prover.update import PolicyUpdate

    rng = np.random.default_rng(0)
    rows = []
    for number in range(32):
        length = int(rng.integers(60, 240))
        sampled = (np.arange(length) >= 10) & (np.arange(length) % 10 < 3)
        row = TokenRow(
            ids=rng.integers(1, 1000, length),
            turn_of_token=np.where(sampled, np.arange(length) // 10, -1),
            loss_mask=sampled,
            logprobs=np.where(sampled, -7.0, 0.0),
            support=(None,) * length,
        )
        rows.append(TrainRow(row=row, advantages_T=np.where(sampled, rng.normal(), 0.0), trajectory=number))
    update = PolicyUpdate(model, OptimConfig(), horizon=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    ids = torch.zeros(len(rows), max(len(row.row) for row in rows), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row.row)] = torch.from_numpy(row.row.ids)

    def train() -> None:
        for part in ids.split(16):
            model(part, attention_mask=(part > 0).long(), labels=part).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    faster(
        "update on 32 rows",
        lambda: update.step(rows, seed=0),
        train,
        than="plain training on the padded rows",
        floor=0.5,
    )
