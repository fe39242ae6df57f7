"""The examples of this environment run, at a small size: demonstrations, then both methods."""

import json
from pathlib import Path

import pytest

from prover.cli import main
from prover.evaluate import Evaluation

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*words: object) -> int:
    """Exit code of a command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a policy made from a few demonstrations: it knows the words and little else."""
    folder = tmp_path_factory.mktemp("policy") / "start"
    sizes = ["demonstrations=60", "epochs=1", "layers=1", "hidden=32", "heads=2", "kv_heads=1", "intermediate=64"]
    assert run("sft", EXAMPLES / "searchqa_sft.yaml", f"out={folder}", *sizes) == 0
    return folder


@pytest.mark.parametrize("method", ["grpo", "prover"])
def test_training(start: Path, method: str, tmp_path: Path) -> None:
    """One update and evaluations; every action is one of those proposed, and the results say what they are of."""
    folder = tmp_path / "run"
    sizes = ["optim.updates=1", "rollout.groups=2", "rollout.group_size=4", "verify.continuations=2"]
    measured = ["evaluation.episodes=8", "evaluation.temperatures=[1.0]"]
    words = [f"method={method}", f"policy.path={start}", *sizes, *measured]
    assert run("train", EXAMPLES / "searchqa.yaml", *words, "--run", folder) == 0
    episodes = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    assert len(episodes) == 8
    actions = [turn["action"] for episode in episodes for turn in episode["turns"]]
    assert all(action.startswith(("search[", "answer[")) and action.endswith("]") for action in actions)
    result = Evaluation.load(sorted((folder / "evaluations").glob("*.json"))[-1])
    assert result.provenance.manifest["label"] == "SearchQA-generated"
    assert set(result.by_kind()) <= {"one_hop", "two_hop"}
    assert {"em", "f1", "searches", "gold_retrieved"} <= set(result.means())


def test_evaluation_on_a_folder_in_tags(start: Path, folder: Path, tmp_path: Path) -> None:
    """A policy that writes freely is measured on questions of one's own; what is no action is counted as invalid."""
    words = [f"env.data={folder}", "env.syntax=tags", "policy.decoding=free", "rollout.max_turns=2"]
    sizes = ["evaluation.episodes=4", "evaluation.temperatures=[1.0]", "env.datasets=[one, two, questions]"]
    policy = ["--policy", start, "--out", tmp_path / "out"]
    assert run("eval", EXAMPLES / "searchqa.yaml", *words, *sizes, *policy) == 0
    (file,) = [path for path in (tmp_path / "out").rglob("*.json") if "T1" in path.name]
    result = Evaluation.load(file)
    assert result.n == 4
    assert result.provenance.manifest["label"] == "SearchQA-mini"
    assert all(episode.invalid == episode.turns == 2 for episode in result.episodes)
