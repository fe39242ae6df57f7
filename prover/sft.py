"""Warm start: a small policy from scratch, taught by a scripted expert's demonstrations.

An environment that has an ``expert(seed)`` method can be demonstrated: it returns a player of the current episode with
``act(observation, info) -> action``. A share of the steps is replaced by random admissible actions, which are shown but
not taught, so that the policy meets states that the expert avoids and learns how it goes on from there.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import Qwen3Config, Qwen3ForCausalLM

from prover import build, stage
from prover.config import SftConfig
from prover.errors import ConfigError, DataError, TokenError
from prover.objective import token_logprobs
from prover.policies.codec import HFCodec
from prover.policies.hf import HFPolicy
from prover.policies.trie import choice_trie
from prover.policies.words import build_tokenizer
from prover.protocols import Codec, TextEnv
from prover.records import Completion, TokenRow
from prover.seeds import derive, generator
from prover.transcript import Transcript

_DEMONSTRATIONS, _WEIGHTS, _ORDER = range(3)
"""First index of the seed path of each consumer of randomness."""


class Player(Protocol):
    """Plays one episode."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next action."""


@runtime_checkable
class Demonstrable(TextEnv, Protocol):
    """An environment that can show how its tasks are solved."""

    def expert(self, seed: int) -> Player:
        """A scripted player of the episode that was last reset."""


class _Wanderer:
    """Plays at random."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Any admissible action."""
        if not info.get("admissible_actions"):
            raise ConfigError(
                "expected an environment with an expert(seed) method or with info['admissible_actions'], got neither; "
                "demonstrations need one of them"
            )
        return str(self._rng.choice(info["admissible_actions"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A solved episode."""

    task: str
    opening: str
    actions: tuple[str, ...]
    results: tuple[str, ...]
    """Observation after each action."""
    taught: tuple[bool, ...]
    """Whether the action is the expert's own."""
    choices: tuple[tuple[str, ...], ...] = ()
    """The admissible actions before each action; empty where they were not kept."""


def demonstrate(env: TextEnv, task: str, *, seed: int, noise: float, max_turns: int) -> Demonstration | None:
    """The expert's episode of a task with a share of random steps; None when it is not solved within ``max_turns``.

    An environment without an expert is played at random: what is solved by chance is worth showing as well.

    Raises:
        ConfigError: the environment has neither an expert nor lists admissible actions.
    """
    rng = generator(seed)
    opening, info = env.reset(seed=seed, options={"task": task})
    player: Player = env.expert(seed) if isinstance(env, Demonstrable) else _Wanderer(rng)
    observation = opening
    actions: list[str] = []
    results: list[str] = []
    taught: list[bool] = []
    choices: list[tuple[str, ...]] = []
    while len(actions) < max_turns:
        action, own = player.act(observation, info), True
        if rng.random() < noise:
            action, own = str(rng.choice(info["admissible_actions"])), False
        choices.append(tuple(info.get("admissible_actions") or (action,)))
        observation, _, terminated, truncated, info = env.step(action)
        actions.append(action)
        results.append(observation)
        taught.append(own)
        if terminated or truncated:
            break
    if not info["success"]:
        return None
    return Demonstration(
        task=task,
        opening=opening,
        actions=tuple(actions),
        results=tuple(results),
        taught=tuple(taught),
        choices=tuple(choices),
    )


def collect(
    env: TextEnv, tasks: Sequence[str], n: int, *, seed: int, noise: float, max_turns: int
) -> list[Demonstration]:
    """``n`` demonstrations of tasks drawn with replacement; unsolved episodes are drawn again.

    Raises:
        ConfigError: less than one episode in ten is solved, so that demonstrations would teach a biased sample.
    """
    rng = generator(seed)
    found: list[Demonstration] = []
    for attempt in range(10 * n):
        task = tasks[int(rng.integers(len(tasks)))]
        shown = demonstrate(env, task, seed=derive(seed, attempt), noise=noise, max_turns=max_turns)
        if shown is not None:
            found.append(shown)
        if len(found) == n:
            return found
    raise ConfigError(
        f"expected one episode in ten or more to be solved within {max_turns} turns, got {len(found)} of "
        f"{10 * n}; raise max_turns or lower noise"
    )


def read_turns(path: Path, tasks: Sequence[str]) -> list[Demonstration]:
    """Demonstrations by another player, a chat model for one, from the file that ``prover eval --turns`` keeps.

    Only actions are taught, not what was written around them. Episodes that were not solved, or in which a reply could
    not be read, are left out.

    Args:
        path: the file.
        tasks: tasks that may be shown.

    Raises:
        DataError: it is no such file, shows tasks that are not to be learned from, or holds no solved episode.
    """
    known, found = set(tasks), list[Demonstration]()
    try:
        episodes = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if odd := next((episode["task"] for episode in episodes if episode["task"] not in known), None):
            raise DataError(
                f"expected episodes of the split that is trained on in {path}, got task {odd!r}; measure with "
                "evaluation.split set to env.split"
            )
        for episode in episodes:
            turns = episode["turns"]
            if episode["success"] and all(turn["action"] for turn in turns):
                actions, results = (tuple(turn[part] for turn in turns) for part in ("action", "result"))
                found.append(
                    Demonstration(
                        task=episode["task"],
                        opening=episode["opening"],
                        actions=actions,
                        results=results,
                        taught=(True,) * len(actions),
                    )
                )
    except DataError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"expected a file of `prover eval --turns` at {path}, got {type(error).__name__}: {error}"
        ) from error
    if not found:
        raise DataError(f"expected solved episodes in {path}, got none of {len(episodes)}; measure a better player")
    return found


def token_row(
    codec: Codec, shown: Demonstration, write: Callable[[str], str] = str, *, admissible: bool = False
) -> TokenRow:
    """A demonstration as a token row whose taught actions are marked to be trained on.

    With ``admissible`` each is a choice among the admissible actions, so far as the codec can say them.
    """
    transcript = Transcript.open(codec, system="", observation=shown.opening, temperature=1.0)
    for turn, (action, result, own) in enumerate(zip(shown.actions, shown.results, shown.taught, strict=True)):
        ids = codec.action(write(action))
        support = _support(codec, ids, [write(choice) for choice in shown.choices[turn]]) if admissible else None
        completion = Completion(ids=ids, logprobs=(0.0,) * len(ids), finish="stop", support=support)
        transcript.sampled(completion, trained=own)
        transcript.observed(result)
    (row,) = transcript.rows()
    return row


def _support(codec: Codec, ids: tuple[int, ...], texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Per token of ``ids`` the tokens that could have stood there, if it is one of ``texts``."""
    choices = {ids}
    for text in texts:
        with suppress(TokenError):  # what cannot be said is no choice
            choices.add(codec.action(text))
    node, support = choice_trie(tuple(sorted(choices)), codec.eos_ids), []
    for id_ in ids:
        support.append(node.ids)
        node = node.child(id_)
    return tuple(support)


def batches(rows: Sequence[TokenRow], batch_tokens: int, rng: np.random.Generator) -> list[list[TokenRow]]:
    """All rows once, rows of similar length together, batches in random order; padded size at most ``batch_tokens``."""
    order = sorted(rng.permutation(len(rows)).tolist(), key=lambda index: len(rows[index]) + 8 * rng.random())
    found: list[list[TokenRow]] = [[]]
    for index in order:
        row = rows[index]
        if found[-1] and len(row) * (len(found[-1]) + 1) > batch_tokens:
            found.append([])
        found[-1].append(row)
    return [found[int(index)] for index in rng.permutation(len(found))]


def renamed(row: TokenRow, names: NDArray[np.int64], rng: np.random.Generator) -> TokenRow:
    """The row with the token ids ``names`` put in each other's place, everywhere alike; shape (n_names,)."""
    others = dict(zip(names.tolist(), rng.permutation(names).tolist(), strict=True))
    ids = np.array([others.get(id_, id_) for id_ in row.ids.tolist()], dtype=row.ids.dtype)
    support = tuple(among and tuple(others.get(id_, id_) for id_ in among) for among in row.support)
    return replace(row, ids=ids, support=support)


def new_model(config: SftConfig, tokenizer: Any) -> Qwen3ForCausalLM:
    """A Qwen3 model with random weights; the vector of ``name N`` is that of the name plus that of the number.

    So that "cabinet 3" starts out near "cabinet 4" and near "shelf 3": the small vocabulary has one token for each.
    """
    torch_rng = torch.Generator().manual_seed(derive(config.seed, _WEIGHTS))
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(vocabulary),
            hidden_size=config.hidden,
            intermediate_size=config.intermediate,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            head_dim=config.hidden // config.heads,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                # Depth-scaled as in GPT-2, so that the residual stream does not grow with the layers.
                scale = (2 * config.layers) ** -0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                parameter.normal_(0.0, config.init_std * scale, generator=torch_rng)
        embedding = model.get_input_embeddings().weight
        parts: dict[str, torch.Tensor] = {}
        for word, index in sorted(vocabulary.items(), key=lambda item: item[1]):
            name, _, number = word.rpartition(" ")
            if name and number.isdigit():
                for part in (name, number):
                    if part not in parts:
                        parts[part] = torch.randn(config.hidden, generator=torch_rng) * config.init_std
                own = torch.randn(config.hidden, generator=torch_rng) * config.init_std
                embedding[index] = (parts[name] + parts[number] + 0.5 * own) / 1.5
    return model


def run(config: SftConfig, *, watch: Callable[[str, Mapping[str, Any]], None] = lambda event, metrics: None) -> Path:
    """Make the policy and write it to ``config.out``; returns that folder."""
    shown = _shown(config)
    watch("demonstrations", {"n": len(shown), "mean_turns": float(np.mean([len(d.actions) for d in shown]))})
    tokenizer = build_tokenizer(
        (text for one in shown for text in (one.opening, *one.results)),
        (action for one in shown for action in one.actions),
    )
    policy = HFPolicy(new_model(config, tokenizer), HFCodec(tokenizer))
    rows = [token_row(policy.codec, one, admissible=config.decoding == "admissible") for one in shown]
    model, rng = policy.model, generator(config.seed, _ORDER)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.95), weight_decay=0.01)
    words: dict[str, int] = tokenizer.get_vocab()
    names = np.array(sorted(words[word] for word in words if config.names and re.fullmatch(config.names, word)), int)
    plan = [batch for _ in range(config.epochs) for batch in batches(rows, config.batch_tokens, rng)]
    model.train()
    for step, batch in enumerate(plan):
        for group in optimizer.param_groups:
            group["lr"] = config.lr * _schedule(step, len(plan))
        shown_rows = [renamed(row, names, rng) for row in batch] if names.size else batch
        loss = -token_logprobs(model, shown_rows).logprobs.mean()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0 or step + 1 == len(plan):
            watch("step", {"step": step, "steps": len(plan), "loss": float(loss.detach())})
    model.eval()
    policy.updated()
    policy.save(config.out)
    return config.out


def _shown(config: SftConfig) -> list[Demonstration]:
    """What is learned from."""
    tasks = [task.id for task in stage.tasks(config.env, config.env.split)]
    if config.turns is not None:
        return read_turns(config.turns, tasks)
    env = build.env_factory(config.env)()
    try:
        return collect(
            env,
            tasks,
            config.demonstrations,
            seed=derive(config.seed, _DEMONSTRATIONS),
            noise=config.noise,
            max_turns=config.max_turns,
        )
    finally:
        env.close()


def _schedule(step: int, steps: int) -> float:
    """Linear warm-up over the first 3% of the steps, then a cosine down to a tenth."""
    warm = max(1, steps * 3 // 100)
    if step < warm:
        return (step + 1) / warm
    return 0.55 + 0.45 * float(np.cos(np.pi * (step - warm) / max(1, steps - warm)))
