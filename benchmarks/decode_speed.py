"""How fast the embedded policy decodes, against ``model.generate`` and against computing every prompt anew.

Run with one thread: ``OMP_NUM_THREADS=1 python benchmarks/decode_speed.py``. Times are CPU seconds of this process, the
best of some repetitions; the model is a random Qwen3 of about a million parameters.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from prover.policies.decoder import Decoder
from prover.policies.engine import Engine
from prover.policies.modules import ModuleDecoder
from prover.policies.plain import PlainDecoder
from prover.policies.prefixes import PrefixStore
from prover.records import Request, Sampling

VOCABULARY = 1024
NO_EOS = frozenset({0})  # id 0 is practically never drawn, so replies run to their limit


def build_model() -> Qwen3ForCausalLM:
    """A random Qwen3 of 0.9M parameters."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        intermediate_size=384,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
        eos_token_id=0,
        pad_token_id=0,
    )
    return Qwen3ForCausalLM(config).eval()


def cpu_seconds(works: Sequence[Callable[[], object]], repetitions: int) -> list[float]:
    """Least CPU time of each of some works, which take turns so that a busy machine disturbs all alike."""
    best = [float("inf")] * len(works)
    for _ in range(repetitions):
        for i, work in enumerate(works):
            start = time.process_time()
            work()
            best[i] = min(best[i], time.process_time() - start)
    return best


def prompts(rows: int, length: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Random prompts without the end token."""
    drawn = np.random.default_rng(seed).integers(1, VOCABULARY, size=(rows, length))
    return [tuple(map(int, row)) for row in drawn]


def decoding(model: Qwen3ForCausalLM, decoder: Decoder, rows: int, context: int, new: int, repetitions: int) -> None:
    """Tokens per CPU second while decoding: time of ``new`` tokens less time of one, at full prompts of ``context``."""
    batch = prompts(rows, context)
    ids = torch.tensor(batch)

    def generate(n: int) -> None:
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=True, max_new_tokens=n, min_new_tokens=n)

    def serve(n: int) -> None:
        engine = Engine(decoder, PrefixStore(0), NO_EOS)
        engine.serve([Request(ids=prompt, sampling=Sampling(max_tokens=n), seed=i) for i, prompt in enumerate(batch)])

    works = [partial(work, n) for work in (generate, serve) for n in (1, new + 1)]
    times = cpu_seconds(works, repetitions)
    rates = [rows * new / (times[1] - times[0]), rows * new / (times[3] - times[2])]
    text = f"decode  B={rows:<3} context {context}: generate {rates[0]:6.0f} tok/s, {type(decoder).__name__} "
    print(f"{text}{rates[1]:6.0f} tok/s = {rates[1] / rates[0]:.1f}x", flush=True)


def rollout(decoder: Decoder, budget: int, episodes: int, turns: int) -> Engine:
    """Episodes in lock step: a prompt of 100 tokens, then per turn 3 sampled and 10 observed tokens."""
    engine = Engine(decoder, PrefixStore(budget), NO_EOS)
    observed = np.random.default_rng(1).integers(1, VOCABULARY, size=(turns, episodes, 10))
    rows = prompts(episodes, 100)
    for turn in range(turns):
        requests = [
            Request(ids=row, sampling=Sampling(max_tokens=3), seed=turn * episodes + i) for i, row in enumerate(rows)
        ]
        replies = engine.serve(requests)
        rows = [
            row + reply.ids + tuple(map(int, o)) for row, reply, o in zip(rows, replies, observed[turn], strict=True)
        ]
    return engine


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--new", type=int, default=32, help="tokens decoded per row")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = build_model()
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f}M parameters, torch {torch.__version__}")
    for decoder in (PlainDecoder(model), ModuleDecoder(model)):
        for rows in (1, 8, 32, 64):
            decoding(model, decoder, rows, 400, options.new, options.repetitions)
        kept, anew = cpu_seconds([partial(rollout, decoder, budget, 32, 20) for budget in (1 << 30, 0)], 2)
        text = f"rollout {type(decoder).__name__}, 32 episodes, 20 turns: prefixes kept {kept:.2f} s, anew {anew:.2f} s"
        print(f"{text} = {anew / kept:.1f}x", flush=True)


if __name__ == "__main__":
    main()
