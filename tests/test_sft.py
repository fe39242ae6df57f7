"""Warm start from demonstrations, on a LineEnv that has an expert."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prover.config import load_sft_config
from prover.envs.webshop import WebShopEnv
from prover.errors import ConfigError, DataError
from prover.evaluate import evaluate
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.policies.hf import HFPolicy
from prover.records import Sampling, Task
from prover.rollout import EpisodeRules, Rollout
from prover.seeds import generator
from prover.sft import Player, batches, collect, demonstrate, new_model, read_turns, renamed, run, token_row
from prover.testing import LineEnv, ToyCodec


class RightPlayer:
    """Always walks right."""

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The expert's action."""
        return "right"


class TaughtLineEnv(LineEnv):
    """A LineEnv with an expert."""

    def expert(self, seed: int) -> Player:
        """A player that walks right."""
        return RightPlayer()


def test_a_demonstration_without_noise_is_the_experts() -> None:
    """From cell 6 the expert needs three steps, all of them taught."""
    shown = demonstrate(TaughtLineEnv(), "start-6", seed=0, noise=0.0, max_turns=10)
    assert shown is not None
    assert shown.actions == ("right",) * 3
    assert shown.taught == (True,) * 3
    assert shown.opening == "You are in cell 6 of 0..9."
    assert shown.results[-1] == "You are in cell 9 of 0..9."


def test_random_steps_are_shown_but_not_taught() -> None:
    """With noise some steps are not the expert's; only his own are marked."""
    shown = demonstrate(TaughtLineEnv(), "start-3", seed=4, noise=0.5, max_turns=60)
    assert shown is not None
    assert not all(shown.taught)
    assert all(action == "right" for action, own in zip(shown.actions, shown.taught, strict=True) if own)


def test_an_unsolved_episode_is_no_demonstration() -> None:
    """What is not solved within the turn cap teaches nothing."""
    assert demonstrate(TaughtLineEnv(), "start-0", seed=0, noise=0.0, max_turns=3) is None


def test_without_an_expert_chance_is_the_teacher() -> None:
    """A random walk that reaches the goal is shown, and taught as it is."""
    shown = [demonstrate(LineEnv(), "start-8", seed=seed, noise=0.0, max_turns=9) for seed in range(9)]
    solved = [one for one in shown if one is not None]
    assert solved
    assert all(all(one.taught) and one.results[-1] == "You are in cell 9 of 0..9." for one in solved)


class SilentEnv(LineEnv):
    """An environment that lists no actions."""

    def reset(self, **arguments: Any) -> Any:
        """Leave them out."""
        observation, info = super().reset(**arguments)
        return observation, {"success": info["success"]}


def test_an_env_without_expert_and_actions_is_refused() -> None:
    """The message says what is missing."""
    with pytest.raises(ConfigError, match=r"expert\(seed\) method or with info"):
        demonstrate(SilentEnv(), "start-0", seed=0, noise=0.0, max_turns=3)


def test_an_expert_that_hardly_ever_wins_is_refused() -> None:
    """Demonstrations of the few lucky episodes would be a biased sample."""
    with pytest.raises(ConfigError, match="one episode in ten"):
        collect(TaughtLineEnv(), ["start-0"], 2, seed=0, noise=0.0, max_turns=3)


def test_token_rows_train_on_taught_actions_only() -> None:
    """The row is opening, action, observation, action; only taught actions are in the loss."""
    codec = ToyCodec()
    shown = demonstrate(TaughtLineEnv(), "start-7", seed=0, noise=0.0, max_turns=5)
    assert shown is not None
    row = token_row(codec, shown)
    opening, action = codec.opening("", shown.opening), list(codec.action("right"))
    answer = codec.reply(shown.results[0], closed=True)
    assert row.ids.tolist() == opening + action + answer + action
    assert row.ids[row.loss_mask].tolist() == action * 2
    assert row.turn_of_token[row.loss_mask].tolist() == [0] * len(action) + [1] * len(action)


def test_batches_hold_every_row_once_within_their_size() -> None:
    """No row is lost or repeated, and the padded size of a batch keeps to the limit."""
    codec, env = ToyCodec(), TaughtLineEnv()
    shown = [demonstrate(env, f"start-{cell}", seed=0, noise=0.0, max_turns=10) for cell in range(9)]
    rows = [token_row(codec, one) for one in shown if one is not None] * 3
    found = batches(rows, 700, generator(0))
    assert sorted(id(row) for batch in found for row in batch) == sorted(id(row) for row in rows)
    assert all(len(batch) == 1 or max(map(len, batch)) * len(batch) <= 700 for batch in found)


def test_a_taught_policy_solves_what_it_was_shown(tmp_path: Path) -> None:
    """A policy from scratch learns to walk right and is saved as a folder that loads."""
    sizes = ["hidden=32", "layers=2", "heads=2", "kv_heads=1", "intermediate=64"]
    config = load_sft_config(
        None,
        [
            f"env.kind={TaughtLineEnv.__module__}:TaughtLineEnv",
            f"out={tmp_path}",
            "demonstrations=100",
            "epochs=10",
            *sizes,
        ],
    )
    policy = HFPolicy.load(run(config))
    assert {parameter.dtype for parameter in policy.model.parameters()} == {policy.model.dtype}

    async def play() -> float:
        async with HostPool(lambda: InlineHost(TaughtLineEnv), 8) as hosts:
            rules = EpisodeRules(max_turns=12, sampling=Sampling(max_tokens=4), text_format=Bare())
            tasks = [Task(id=f"start-{cell}", split="test") for cell in range(9)]
            player = Rollout(policy=policy, hosts=hosts, rules=rules)
            return (await evaluate(player, tasks, 18, temperature=0.5, seed=0)).rate

    assert asyncio.run(play()) >= 0.9


def test_a_choice_is_taught_among_the_admissible_actions() -> None:
    """The first token of "right" could have begun "left" or "look", the next ones follow; unlisted steps are free."""
    codec = ToyCodec()
    shown = demonstrate(TaughtLineEnv(), "start-8", seed=0, noise=0.0, max_turns=5)
    assert shown is not None
    assert shown.choices == (("left", "look", "right"),)
    row = token_row(codec, shown, admissible=True)
    ids = codec.action("right")
    starts = sorted({codec.action(action)[0] for action in ("left", "look", "right")})
    expected = [tuple(starts), *((id_,) for id_ in ids[1:])]
    assert [among for among in row.support if among is not None] == expected
    free = token_row(codec, shown)
    assert set(free.support) == {None}
    names = np.array(starts)
    for seed in range(9):
        changed = renamed(row, names, generator(seed))
        places = np.flatnonzero(changed.loss_mask).tolist()
        assert all(changed.ids[place] in (changed.support[place] or ()) for place in places)


def test_names_change_places_everywhere_alike() -> None:
    """Names are permuted among themselves: equal ones stay equal, everything else stays as it is."""
    codec = ToyCodec()
    shown = demonstrate(TaughtLineEnv(), "start-6", seed=0, noise=0.0, max_turns=10)
    assert shown is not None
    row = token_row(codec, shown)
    names = np.unique(row.ids)[:4]
    found = {tuple(renamed(row, names, generator(seed)).ids.tolist()) for seed in range(200)}
    assert len(found) == 24, "all orders of four names"
    for ids in found:
        changed = dict(zip(row.ids.tolist(), ids, strict=True))
        assert [changed[id_] for id_ in row.ids.tolist()] == list(ids)
        assert {changed[name] for name in names.tolist()} == set(names.tolist())
        assert all(changed[id_] == id_ for id_ in set(row.ids.tolist()) - set(names.tolist()))
    assert renamed(row, names, generator(0)).loss_mask.tolist() == row.loss_mask.tolist()


def test_a_shopper_is_taught_to_say_its_calls(tmp_path: Path) -> None:
    """The policy that a shop's demonstrations make can say every action that the shop takes, exactly."""
    sizes = ["hidden=32", "layers=1", "heads=2", "kv_heads=1", "intermediate=64"]
    words = ["env.kind=webshop", "env.observation=brief", f"out={tmp_path}", "demonstrations=4", "epochs=1", *sizes]
    words.append(r"names=gen\d{7}")
    codec = HFPolicy.load(run(load_sft_config(None, words))).codec
    env = WebShopEnv(observation="brief")
    _, info = env.reset(options={"task": env.tasks("test")[0]})
    said = list(info["admissible_actions"])
    said += env.step(said[0])[4]["admissible_actions"]
    assert len(said) > 10
    assert [codec.decode(codec.action(action)) for action in said] == said


def test_numbered_names_start_near_each_other(line_policy: Path) -> None:
    """The vectors of "cell 3" and "cell 4" are closer than those of unrelated words."""
    policy = HFPolicy.load(line_policy)
    tokenizer = policy.codec.tokenizer
    config = load_sft_config(None, ["out=/nowhere", "hidden=64", "layers=1", "heads=2", "kv_heads=1"])
    vectors = new_model(config, tokenizer).get_input_embeddings().weight.detach().numpy()

    def cosine(first: str, second: str) -> float:
        a, b = (vectors[tokenizer.convert_tokens_to_ids(word)] for word in (first, second))
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    assert cosine("cell 3", "cell 4") > 0.2 + abs(cosine("left", "right"))


def turns_file(path: Path, *episodes: tuple[str, bool, list[str]]) -> Path:
    """Episodes as ``prover eval --turns`` keeps them: task, success and actions; an empty one could not be read."""
    lines = [
        {
            "task": task,
            "success": success,
            "opening": f"Task {task}.",
            "turns": [
                {"text": f"I go {action}.", "action": action, "result": f"After {action}."} for action in actions
            ],
        }
        for task, success, actions in episodes
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_episodes_of_another_player_are_demonstrations(tmp_path: Path) -> None:
    """Those that were solved and readable; the actions are taught, without the words around them."""
    path = turns_file(
        tmp_path / "x.jsonl",
        ("start-7", True, ["right", "right"]),
        ("start-8", False, ["left"]),
        ("start-8", True, ["", "right"]),
    )
    (shown,) = read_turns(path, ["start-7", "start-8"])
    assert (shown.task, shown.opening, shown.actions, shown.results, shown.taught) == (
        "start-7",
        "Task start-7.",
        ("right", "right"),
        ("After right.", "After right."),
        (True, True),
    )


def test_tested_tasks_are_not_learned_from(tmp_path: Path) -> None:
    """A file of another split is refused, as is one without a solved episode, and what is no such file."""
    path = turns_file(tmp_path / "x.jsonl", ("start-7", True, ["right"]), ("start-8", False, ["left"]))
    with pytest.raises(DataError, match=r"got task 'start-8'; measure with evaluation\.split set to env\.split"):
        read_turns(path, ["start-7"])
    with pytest.raises(DataError, match=r"solved episodes in .*, got none of 1"):
        read_turns(turns_file(tmp_path / "y.jsonl", ("start-8", False, ["left"])), ["start-8"])
    (tmp_path / "z.jsonl").write_text('{"task": "start-7"}')
    with pytest.raises(DataError, match=r"a file of `prover eval --turns` at .*KeyError"):
        read_turns(tmp_path / "z.jsonl", ["start-7"])


def test_a_policy_is_made_from_kept_turns(tmp_path: Path) -> None:
    """It says what was shown to it, though the environment has no expert."""
    path = turns_file(tmp_path / "x.jsonl", *[(f"start-{cell}", True, ["right"] * (9 - cell)) for cell in range(9)])
    settings = ["env.kind=line", f"out={tmp_path / 'policy'}", f"turns={path}", "epochs=2", "hidden=32", "layers=1"]
    settings += ["heads=2", "kv_heads=1", "intermediate=64"]
    seen: dict[str, Any] = {}
    run(load_sft_config(overrides=settings), watch=lambda event, metrics: seen.update({event: dict(metrics)}))
    assert seen["demonstrations"] == {"n": 9, "mean_turns": 5.0}
    codec = HFPolicy.load(tmp_path / "policy").codec
    assert codec.decode(codec.action("right")) == "right"
