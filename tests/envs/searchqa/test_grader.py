"""A chat model's say on the answers of an evaluation."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion, late, say

from prover.cli import main
from prover.env_config import SemanticConfig
from prover.envs.searchqa import SearchQAEnv
from prover.envs.searchqa.grader import Opinions, SemanticGrader
from prover.envs.searchqa.outcome import Outcome
from prover.errors import ConfigError, DataError
from prover.evaluate import Evaluation
from prover.records import EndReason, Task, Trajectory

QUESTION = Outcome(question="What?", answers=("Tall Bridge",), answer="")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A chat model that says as it is told."""
    one = ChatServer()
    yield one
    one.close()


def config(server: ChatServer, **options: Any) -> SemanticConfig:
    """A section that names the server; what is no key of its own is one of the backend."""
    own = {name: options.pop(name) for name in ("repairs", "reply_tokens") if name in options}
    backend = {"kind": "http", "url": server.url, "model": "m", "retries": 0, **options}
    return SemanticConfig.model_validate_json(json.dumps({"backend": backend, **own}))


def ended(answer: str | None, em: float = 0.0) -> Trajectory:
    """An episode that ended with an answer, which stands in its opening, or with none."""
    return Trajectory(
        task=Task(id="q", split="test"),
        member=0,
        seed=0,
        policy_version=0,
        opening="" if answer is None else answer,
        turns=(),
        rows=(),
        reward=em,
        success=em == 1,
        end=EndReason.DONE,
        metrics={"em": em},
    )


def answered(run: Trajectory) -> Outcome | None:
    """What ``ended`` says that an episode answered."""
    said = run.opening
    return Outcome(question=QUESTION.question, answers=QUESTION.answers, answer=said) if said else None


def grade(section: SemanticConfig, folder: Path, runs: Sequence[Trajectory]) -> list[dict[str, float]]:
    """The figures of episodes that end all at once."""

    async def all_of_them() -> list[dict[str, float]]:
        grader = SemanticGrader(section, folder, answered)
        try:
            return list(await asyncio.gather(*(grader.grade(run) for run in runs)))
        finally:
            await grader.aclose()

    return asyncio.run(all_of_them())


def by_answer(body: dict[str, Any]) -> Any:
    """Says that bridges mean the same, and breaks for whoever asks about a mill."""
    asked = body["messages"][-1]["content"]
    if "mill" in asked:
        return say(b"gone", status=500)
    return say(completion('{"same": true}' if "given answer: a bridge" in asked else '{"same": false}'))


def test_figures(server: ChatServer, tmp_path: Path) -> None:
    """An exact match and no answer need no asking; where the service fails there is no figure, and that is counted."""
    server.script = by_answer
    runs = [ended("Tall Bridge", em=1.0), ended(None), ended("a bridge"), ended("a boat"), ended("a mill")]
    same, other = {"semantic": 1.0, "semantic_unanswered": 0.0}, {"semantic": 0.0, "semantic_unanswered": 0.0}
    assert grade(config(server), tmp_path, runs) == [same, other, same, other, {"semantic_unanswered": 1.0}]
    assert len(server.requests) == 3


def test_nothing_is_asked_twice(server: ChatServer, tmp_path: Path) -> None:
    """Equal answers at once are one request, and none later; a failure is asked again; another model is asked anew."""
    server.script = by_answer
    section = config(server)
    grade(section, tmp_path, [ended("a bridge")] * 5 + [ended("a mill")])
    assert len(server.requests) == 2
    assert grade(section, tmp_path, [ended("a bridge"), ended("a mill")])[0]["semantic"] == 1.0
    assert len(server.requests) == 3
    assert "mill" in server.requests[-1]["messages"][-1]["content"]
    grade(config(server, deadline_s=7.0, concurrency=3), tmp_path, [ended("a bridge")])
    assert len(server.requests) == 3
    grade(config(server, body={"top_p": 0.5}), tmp_path, [ended("a bridge")])
    assert len(server.requests) == 4


def test_repairs_have_an_end(server: ChatServer, tmp_path: Path) -> None:
    """What cannot be read is sent back so often and no more."""
    server.script = [say(completion("Yes.")), say(completion('{"same": true}')), say(completion("Who knows"))]
    assert grade(config(server), tmp_path, [ended("a bridge")])[0]["semantic"] == 1.0
    repaired = server.requests[1]["messages"]
    assert [message["role"] for message in repaired] == ["system", "user", "assistant", "user"]
    assert repaired[2]["content"] == "Yes."
    found = grade(config(server, repairs=3), tmp_path, [ended("a boat")])
    assert found == [{"semantic_unanswered": 1.0}]
    assert len(server.requests) == 2 + 4


def test_asks_are_bounded(server: ChatServer, tmp_path: Path) -> None:
    """No more at once than ``concurrency``, and none beyond the budget, which outlives a process."""
    server.script = [late(0.02, say(completion('{"same": false}', prompt=90, reply=10)))]
    section = config(server, concurrency=2, budget_tokens=500)
    found = grade(section, tmp_path, [ended(f"boat {number}") for number in range(4)])
    assert (len(found), server.most_at_once) == (4, 2)
    found = grade(section, tmp_path, [ended("raft"), ended("boat 1")])
    assert (len(server.requests), [run["semantic"] for run in found]) == (5, [0.0, 0.0])
    assert grade(section, tmp_path, [ended("canoe")]) == [{"semantic_unanswered": 1.0}]
    assert len(server.requests) == 5


def test_what_grades_is_told(server: ChatServer, tmp_path: Path) -> None:
    """Model, words and settings that decide; not what an answer costs."""
    one = SemanticGrader(config(server), tmp_path, answered).about
    assert (one["model"], one["prompt"], one["figures"]) == ("m", 1, ["semantic", "semantic_unanswered"])
    assert SemanticGrader(config(server, timeout_s=5.0), tmp_path, answered).about == one
    assert SemanticGrader(config(server, structured="none"), tmp_path, answered).about != one
    assert json.loads(json.dumps(one)) == one


def test_checks(server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key, a missing model and a damaged file show before anything is asked."""
    monkeypatch.delenv("GRADER_KEY", raising=False)
    with pytest.raises(ConfigError, match="GRADER_KEY"):
        SemanticGrader(config(server, key_env="GRADER_KEY"), tmp_path, answered).check()
    local = SemanticConfig.model_validate({"backend": {"kind": "local", "path": "nowhere"}})
    with pytest.raises(DataError, match=r"env\.semantic\.backend\.path, got nowhere"):
        SemanticGrader(local, tmp_path, answered).check()
    with pytest.raises(ConfigError, match="no policy grades its own answers"):
        SearchQAEnv(semantic={"backend": {"kind": "local"}})
    (tmp_path / "semantic.jsonl").write_text('{"key": "k"}\n')
    with pytest.raises(DataError, match=r"line 1 of .*semantic\.jsonl, got KeyError"):
        SemanticGrader(config(server), tmp_path, answered).check()
    assert server.requests == []


def test_a_line_that_was_cut(tmp_path: Path) -> None:
    """It is passed over, and the next one is whole."""
    path = tmp_path / "semantic.jsonl"
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "calls": 1, "seconds": 0.5, "cost": 0.0}
    path.write_text(json.dumps({"key": "a", "same": False, "usage": usage}) + '\n{"key": "b", "sa')
    Opinions(path).put("c", True, Opinions(path).spent(), QUESTION)
    again = Opinions(path)
    assert (again.get("a"), again.get("b"), again.get("c")) == (False, None, True)
    assert again.spent().tokens == 10


def test_evaluations_are_graded(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``prover eval`` reports the figure apart, with n, and keeps who gave it; success and reward stay as they are."""
    said = {"kind": "prover.testing:ScriptedBackend", "options": {"replies": ['{"same": true}'], "repeat": True}}
    setting = f"env.semantic={json.dumps({'backend': said})}"
    words = ["env.kind=searchqa", f"env.data={folder}", "env.syntax=brackets", "policy.decoding=admissible"]
    words += ["env.datasets=[one]", "evaluation.temperatures=[1.0]", "evaluation.split=test", "format.kind=bare"]
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stopped:
        main(["eval", *words, setting, "--policy", "random", "--episodes", "12", "--out", str(out)])
    assert not stopped.value.code
    result = Evaluation.load(out / "test-random-s0.json")
    answers = [episode for episode in result.episodes if episode.metrics["searches"] < episode.turns]
    wrong = [episode for episode in answers if episode.metrics["em"] == 0]
    assert wrong
    assert all(episode.metrics["semantic"] == 1.0 and not episode.success for episode in wrong)
    assert result.means()["semantic_unanswered"].mean == 0.0
    assert result.setting["grader"]["model"] == "prover.testing:ScriptedBackend"
    lines = (out / "semantic.jsonl").read_text().splitlines()
    assert result.setting["grading"]["asks"] == len(lines) > 0
    assert "semantic " in capsys.readouterr().out
