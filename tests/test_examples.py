"""The examples run, at a small size, with the policy that comes with ProVer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prover.cli import main
from prover.config import load_config, load_sft_config
from prover.env_config import WebshopEnvConfig
from prover.evaluate import Evaluation
from prover.methods import METHODS, NO_JUDGE
from prover.policies.hf import HFPolicy

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SMALL = ["optim.updates=1", "rollout.groups=2", "rollout.group_size=4", "evaluation.temperatures=[1.0]"]


def run(*words: object) -> int:
    """Exit code of a command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


def test_households_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One update on generated households: measured before and after, with a readable record of every episode."""
    folder = tmp_path / "run"
    assert run("train", EXAMPLES / "households.yaml", *SMALL, "evaluation.episodes=40", "--run", folder) == 0
    shown = capsys.readouterr().out
    assert "on held-out tasks (test)" in shown
    assert str(folder) in shown
    episodes = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    assert len(episodes) == 8
    assert episodes[0]["opening"].startswith("-= Welcome to TextWorld, ALFRED! =-")
    # The shipped policy solves about a quarter: none or nearly all of 40 would mean that it does not fit its games.
    before = Evaluation.load(folder / "evaluations" / "update-000000-T1.json")
    assert 1 <= before.successes <= 28


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(method: str, tmp_path: Path) -> None:
    """Three updates on generated households; a method without a judge plays no continuations."""
    words = [
        *SMALL,
        f"method={method}",
        "optim.updates=3",
        "rollout.max_turns=8",
        "evaluation.episodes=2",
        *([] if method in NO_JUDGE else ["verify.continuations=2"]),
    ]
    if method == "grpo_budget":
        other = tmp_path / "other"
        other.mkdir()
        (other / "metrics.jsonl").write_text('{"turns": 60, "verifier_turns": 20}')
        words.append(f"rollout.match_turns={other}")
    assert run("train", EXAMPLES / "households.yaml", *words, "--run", tmp_path / "run") == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    # Eight turns at most; the last episode that was added may go beyond the 80 turns an update.
    assert method != "grpo_budget" or 220 <= sum(line["turns"] for line in lines) <= 250
    measures = method not in NO_JUDGE and method != "judge_trusted"
    assert method != "vineppo" or all(line["measured"] == line["turns"] for line in lines)
    assert measures or sum(line["verifier_turns"] for line in lines) == 0


def test_original_games_train(shared: Path, tmp_path: Path) -> None:
    """The same policy trains on games of the official layout."""
    expand = [sys.executable, str(shared / "data" / "alfworld" / "expand.py"), str(tmp_path / "games"), "--limit", "6"]
    subprocess.run(expand, check=True, capture_output=True)
    words = [*SMALL, f"env.data={tmp_path / 'games'}", "evaluation.episodes=6", "rollout.max_turns=10"]
    with pytest.warns(UserWarning, match="6"):
        assert run("train", EXAMPLES / "alfworld.yaml", *words, "--run", tmp_path / "run") == 0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["episodes"] == 8


def test_the_shop_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy made from demonstrations, small, is trained in the made-up shop; all that it does are actions."""
    start, folder = tmp_path / "start", tmp_path / "run"
    sizes = ["demonstrations=40", "epochs=1", "layers=1", "hidden=64"]
    assert run("sft", EXAMPLES / "webshop_sft.yaml", f"out={start}", *sizes) == 0
    words = [*SMALL, f"policy.path={start}", "rollout.max_turns=10", "evaluation.episodes=6"]
    assert run("train", EXAMPLES / "webshop.yaml", *words, "--run", folder) == 0
    assert "on held-out tasks (test)" in capsys.readouterr().out
    episodes = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    assert len(episodes) == 8
    assert episodes[0]["opening"].startswith("Find me ")
    actions = [turn["action"] for episode in episodes for turn in episode["turns"]]
    assert all(action.startswith(("search[", "click[")) and action.endswith("]") for action in actions)


def test_a_chat_model_shops_on_whole_pages() -> None:
    """Both examples play the same shop; a chat model reads the exact pages and is held to the whole reward."""
    small, chat = (load_config(EXAMPLES / name) for name in ("webshop.yaml", "webshop_chat.yaml"))
    assert isinstance(small.env, WebshopEnvConfig)
    assert isinstance(chat.env, WebshopEnvConfig)
    assert (small.env.observation, chat.env.observation) == ("brief", "text")
    assert small.env.model_copy(update={"observation": "text", "threshold": 1.0}) == chat.env
    assert small.rollout.max_turns == chat.rollout.max_turns == 15


def test_the_recipe_makes_a_policy_like_the_shipped_one(tmp_path: Path) -> None:
    """A few demonstrations with the recipe's sizes: the same architecture and tokens, ready to be trained on."""
    out = tmp_path / "small"
    assert run("sft", EXAMPLES / "sft.yaml", f"out={out}", "demonstrations=30", "epochs=1") == 0
    made = HFPolicy.load(out).model.config
    shipped = HFPolicy.load(ROOT / "prover" / "policies" / "small").model.config
    for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "model_type"):
        assert getattr(made, name) == getattr(shipped, name)
    assert load_sft_config(EXAMPLES / "sft.yaml").hidden == shipped.hidden_size


def test_the_shipped_weights_are_small() -> None:
    """They are safetensors of less than 6 MB."""
    folder = ROOT / "prover" / "policies" / "small"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 6_000_000
    assert (folder / "model.safetensors").is_file()
