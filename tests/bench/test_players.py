"""From contenders to what plays: a chat model over HTTP, and what cannot play."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion, say

from prover.bench import measurement
from prover.bench.contender import contender
from prover.bench.suite import load_suite
from prover.errors import ConfigError, FailureShareError
from prover.evaluate import Evaluation


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A model that always goes right."""
    found = ChatServer()
    found.script = [say(completion("Action: right"))]
    yield found
    found.close()


@pytest.fixture
def measured(manifest: Callable[..., Path], server: ChatServer, tmp_path: Path) -> Callable[..., Evaluation]:
    """Measures the chat model on the walk, with further keys of its backend."""

    def run(backend: str = "", *, resume: bool = False, suite: str = "") -> Evaluation:
        config = tmp_path / "talker.yaml"
        config.write_text(
            f"policy: {{kind: api, backend: {{kind: http, url: '{server.url}', model: m, retries: 0, {backend}}}}}\n"
            "format: {kind: react}\n"
        )
        plan = measurement.plan_of_suite(load_suite(manifest(more=suite)))
        who = contender(str(config))
        return measurement.run(plan, who, temperature=0.5, seed=0, path=tmp_path / "x.json", resume=resume)

    return run


def test_a_chat_model_plays_a_suite(measured: Callable[..., Evaluation], server: ChatServer) -> None:
    """Nine walks to the right are 45 turns; it is told the actions, and what it cost stands in the result."""
    found = measured()
    assert (found.rate, found.n, len(server.requests)) == (1.0, 9, 45)
    assert found.setting["usage"] == {
        "prompt_tokens": 45 * 7,
        "completion_tokens": 45 * 3,
        "calls": 45,
        "seconds": found.setting["usage"]["seconds"],
        "cost": 0.0,
    }
    first = server.requests[0]
    assert first["temperature"] == 0.5
    assert first["messages"][-1]["content"].endswith("Admissible actions:\nleft\nlook\nright")
    assert found.setting["rules"]["format"] == "react"


def test_free_suites_tell_no_actions(measured: Callable[..., Evaluation], server: ChatServer) -> None:
    """What a policy of ours would not be held to, a chat model is not told."""
    measured(suite="decoding: free\n")
    assert all("Admissible" not in json.dumps(request) for request in server.requests)


def test_failed_calls_void_their_episodes(measured: Callable[..., Evaluation], server: ChatServer) -> None:
    """The walk from cell 8 is refused: eight episodes count, and the ninth is no failure of the model."""

    def script(body: dict[str, Any]) -> Any:
        refused = "cell 8" in body["messages"][1]["content"]
        return say({"error": "no"}, status=400) if refused else say(completion("Action: right"))

    server.script = script
    found = measured()
    assert (found.n, found.rate, found.failures) == (8, 1.0, 1)


def test_a_budget_ends_the_measurement_and_is_kept(measured: Callable[..., Evaluation], server: ChatServer) -> None:
    """After 200 tokens nothing is asked; what finished is kept, and going on counts on from there."""
    with pytest.raises(FailureShareError, match="budget"):
        measured("budget_tokens: 200, concurrency: 1")
    with pytest.raises(FailureShareError, match="budget"):
        measured("budget_tokens: 200, concurrency: 1", resume=True)
    assert len(server.requests) == 20
    found = measured("budget_tokens: 1000, concurrency: 1", resume=True)
    assert (found.n, found.setting["usage"]["calls"]) == (9, len(server.requests))
    assert "model: m" in found.setting["model"]


def test_an_environment_without_an_expert_is_refused(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """Before anything is played."""
    plan = measurement.plan_of_suite(load_suite(manifest()))
    with pytest.raises(ConfigError, match=r"with an expert\(seed\) method, got 'line' without one"):
        measurement.run(plan, contender("expert"), temperature=1.0, seed=0, path=tmp_path / "x.json")


def test_the_expert_of_the_households_plays(tmp_path: Path) -> None:
    """Three generated games, all solved."""
    suites = Path(__file__).parents[2] / "benchmarks" / "suites"
    plan = measurement.plan_of_suite(load_suite(suites / "alfworld_generated.yaml", ["tasks_hash=null"]), 3)
    found = measurement.run(plan, contender("expert"), temperature=1.0, seed=0, path=tmp_path / "x.json")
    assert (found.n, found.rate) == (3, 1.0)
    assert len(found.by_kind()) > 1


def test_chance_plays_in_processes_as_well(manifest: Callable[..., Path], tmp_path: Path) -> None:
    """Where an environment may hang, and with the same episodes as in this process."""
    found = [
        measurement.run(
            measurement.plan_of_suite(load_suite(manifest(), [f"isolation={isolation}"]), 3),
            contender("random"),
            temperature=1.0,
            seed=0,
            path=tmp_path / f"{isolation}.json",
        )
        for isolation in ("inline", "process")
    ]
    assert found[0].episodes == found[1].episodes
