"""The examples of this environment run, at a small size: demonstrations, then both methods."""

import json
from pathlib import Path
from typing import Any

import pytest

from prover.cli import main
from prover.envs.searchqa.library import open_library
from prover.envs.searchqa.names import names
from prover.evaluate import Evaluation

EXAMPLES = Path(__file__).parents[3] / "examples"


def write_lines(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write one JSON value a line."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


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
    said = {"kind": "prover.testing:ScriptedBackend", "options": {"replies": ['{"same": true}'], "repeat": True}}
    measured.append(f"env.semantic={json.dumps({'backend': said})}")
    words = [f"method={method}", f"policy.path={start}", *sizes, *measured]
    assert run("train", EXAMPLES / "searchqa.yaml", *words, "--run", folder) == 0
    episodes = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    assert len(episodes) == 8
    actions = [turn["action"] for episode in episodes for turn in episode["turns"]]
    assert all(action.startswith(("search[", "answer[")) and action.endswith("]") for action in actions)
    result = Evaluation.load(sorted((folder / "evaluations").glob("*.json"))[-1])
    assert result.provenance.manifest["label"] == "SearchQA-generated"
    assert set(result.by_kind()) <= {"one_hop", "two_hop"}
    assert {"em", "f1", "searches", "gold_retrieved", "semantic"} <= set(result.means())
    # Everything means the same to this grader: whoever answered, and only in evaluations.
    assert result.means()["semantic"].mean > result.rate
    assert result.setting["grader"]["model"] == "prover.testing:ScriptedBackend"
    assert (folder / "semantic.jsonl").is_file()
    assert all(episode["success"] == episode["reward"] for episode in episodes)


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


def shown(folder: Path) -> dict[str, set[str]]:
    """What every search of a run showed, by its query."""
    found: dict[str, set[str]] = {}
    for line in (folder / "trajectories.jsonl").read_text().splitlines():
        for turn in json.loads(line)["turns"]:
            if turn["action"].startswith("search["):
                passages = turn["result"].rpartition("\n")[0]  # Without how many searches are left.
                found.setdefault(turn["action"], set()).add(passages)
    return found


def easy(folder: Path) -> Path:
    """Made-up questions in a folder, each answered by any name that a search for its subject shows."""
    library = open_library("generated")
    texts = {passage.title: passage.text for passage in library.passages()}
    for split in ("train", "test"):
        questions = [library.questions[name] for name in library.splits[split][:6]]
        shown = {q.id: [name for title in q.supports for name in names(texts[title])] for q in questions}
        rows = [
            {"id": q.id, "question": q.text, "answers": [name for name in shown[q.id] if name not in names(q.text)]}
            for q in questions
        ]
        write_lines(folder / f"{split}.jsonl", rows)
    return folder


def test_a_run_sees_the_same_passages_from_first_to_last(start: Path, drifting: Any, tmp_path: Path) -> None:
    """Worker processes, continuations, the resumed run and the judges after it share what a server said first."""
    folder = tmp_path / "run"
    sizes = ["rollout.groups=4", "rollout.group_size=8", "rollout.concurrency=2", "verify.continuations=2"]
    measured = ["evaluation.episodes=4", "evaluation.temperatures=[1.0]", "checkpoint.groups=2"]
    words = [f"policy.path={start}", "rollout.isolation=process", "verify.eligible_max=4", *sizes, *measured]
    server = [
        "env.retriever.kind=http",
        f"env.retriever.url={drifting.url}",
        "judge.kind=random_segment",
        f"env.data={easy(tmp_path)}",
    ]
    config = EXAMPLES / "searchqa.yaml"
    assert run("train", config, *words, *server, "optim.updates=1", "--run", folder) == 0
    assert (folder / "retrieval.sqlite").is_file()
    assert "cache_path: null" in (folder / "config.yaml").read_text()
    probes, first = drifting.asked[:2], set(drifting.asked[2:])
    assert len(set(probes)) == 1  # Before torch is loaded, and before the policy is.
    (metrics,) = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    assert metrics["measured"] > 0
    assert metrics["env_stats"]["searches"] >= len(shown(folder)) > 0  # Of all worker processes.
    drifting.asked.clear()
    assert run("train", config, *words, *server, "optim.updates=2", "--run", folder, "--resume") == 0
    assert not first & set(drifting.asked[2:])
    assert {len(texts) for texts in shown(folder).values()} == {1}
    first |= set(drifting.asked[2:])
    drifting.asked.clear()
    assert run("judge", folder, "--continuations", "2") == 0
    assert not first & set(drifting.asked[1:])
    assert (
        run("eval", config, *words, *server, "--policy", "random", "--episodes", "16", "--out", tmp_path / "out") == 0
    )
    assert (tmp_path / "out" / "retrieval.sqlite").is_file()
    (result,) = (tmp_path / "out").glob("*.json")
    assert Evaluation.load(result).setting["env_stats"]["searches_failed"] == 0


@pytest.mark.parametrize("command", ["train", "eval"])
def test_a_server_that_is_not_there(
    start: Path, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told before anything is played, whatever retries are configured, and leaves no run behind."""
    server = ["env.retriever={kind: http, url: 'http://127.0.0.1:1', retries: 500, deadline_s: 9000, pause_s: 0.01}"]
    place = ["--run", tmp_path / "run"] if command == "train" else ["--out", tmp_path / "run"]
    assert run(command, EXAMPLES / "searchqa.yaml", f"policy.path={start}", *server, *place) == 1
    assert "from http://127.0.0.1:1/retrieve, got ConnectError" in capsys.readouterr().err
    assert not list((tmp_path / "run").glob("*.json*"))
