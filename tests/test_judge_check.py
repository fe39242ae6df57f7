"""The check of a judge on one known group."""

import json
import re
import sys
import types
from collections.abc import Sequence
from typing import Any

import pytest

from prover.backend_config import CustomBackendConfig
from prover.chat import Answer, Ask, ToolCall
from prover.errors import ServiceError
from prover.judge_check import PIVOT, check, known_group
from prover.judge_config import (
    ContrastJudgeConfig,
    CustomJudgeConfig,
    EveryTurnJudgeConfig,
    LLMJudgeConfig,
    NoJudgeConfig,
)
from prover.records import Group, Proposal, Segment
from prover.testing.backend import ScriptedBackend


def reply(start: int, end: int) -> Any:
    """A reply that cites the first failed run that it is shown."""

    def answer(ask: Ask) -> str:
        found = re.search(r"^run (\w+): failed", ask.messages[1].content, re.MULTILINE)
        assert found is not None
        said = {"failure_mode": "no key", "evidence": [{"trajectory": found[1], "turn": 0}], "reason": "the key opens"}
        return json.dumps(said | {"start_turn": start, "end_turn": end, "confidence": 0.9})

    return answer


def checked(script: Sequence[Any], monkeypatch: pytest.MonkeyPatch) -> tuple[bool, str]:
    """The result and the account of a check of a scripted model."""
    module = types.ModuleType("tests_check_module")
    backend = ScriptedBackend(script)
    vars(module)["Backend"] = lambda: backend
    monkeypatch.setitem(sys.modules, "tests_check_module", module)
    lines: list[str] = []
    config = LLMJudgeConfig(backend=CustomBackendConfig(kind="tests_check_module:Backend"))
    passed = check(config, lines.append)
    assert backend.closed
    return passed, "\n".join(lines)


def test_every_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompt, tools, calls and their results, a refused reply and its repair, the proposal, what it took."""
    call = ToolCall(id="1", name="search_trajectory", arguments='{"query": "locked"}')
    script = [Answer(text="", finish="tool_calls", tool_calls=(call,)), "Turn 2, I think.", reply(2, 2)]
    passed, told = checked(script, monkeypatch)
    assert passed
    for words in (
        "[system] You compare runs",
        "[user] --- ",
        "tools: search_trajectory, get_segment; schema: no",
        'calls search_trajectory({"query": "locked"})',
        "[tool] --- ",
        "The shed is locked.",
        "[assistant] Turn 2, I think.",
        "[user] That cannot be used (no_object: no object).",
        "tools: none; schema: yes",
        "Proposal: turns 2 to 2 (2 take iron key).",
        "the judge found it",
        "repairs 1",
        "tool_calls 1",
    ):
        assert words in told
    assert told.count("[system]") == 1


def test_a_valid_proposal_elsewhere_passes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is of the connection; that the decisive turn was missed is said."""
    passed, told = checked([reply(0, 1)], monkeypatch)
    assert passed
    assert "the judge missed it" in told


def test_an_outage_fails_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the service said stands in the account."""
    passed, told = checked([ServiceError("the key is refused", "unauthorized")], monkeypatch)
    assert not passed
    assert "<- no answer (unauthorized): the key is refused" in told
    assert "No proposal: judge_unauthorized. the key is refused" in told


def test_judges_without_a_model_are_checked_as_well() -> None:
    """The judge that ships points at a turn; one that proposes nothing fails."""
    lines: list[str] = []
    assert check(ContrastJudgeConfig(), lines.append)
    assert not check(NoJudgeConfig(), lines.append)
    assert lines[-1].startswith("No proposal: no_judge")


class Odd:
    """A judge of one's own that answers whatever it is told to."""

    name = "odd"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def propose(self, group: Group, *, seed: int) -> Any:
        """The answer."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def pointing(trajectory: int, start: int, end: int) -> Proposal:
    """A proposal of a judge of one's own."""
    return Proposal(segment=Segment(trajectory=trajectory, start=start, end=end), reason="so", judge="odd")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (pointing(0, 0, 0), "cannot be measured: turns 0 to 0 of trajectory 0, not_a_success."),
        (pointing(99, 0, 0), "cannot be measured: turns 0 to 0 of trajectory 99, unknown_trajectory."),
        (pointing(1, 3, 70), "cannot be measured: turns 3 to 70 of trajectory 1, out_of_bounds."),
        (pointing(1, 4, 4), "cannot be measured: turns 4 to 4 of trajectory 1, terminal_endpoint."),
        (RuntimeError("boom"), "The judge odd failed: RuntimeError: boom"),
        (None, "The judge odd failed: AttributeError: 'NoneType' object has no attribute 'reason'"),
    ],
)
def test_a_judge_of_ones_own_is_told_what_a_run_would_refuse(
    monkeypatch: pytest.MonkeyPatch, answer: Any, told: str
) -> None:
    """What cannot be measured, and what raises, fails the check in words."""
    module = types.ModuleType("tests_odd_module")
    vars(module)["Judge"] = lambda: Odd(answer)
    monkeypatch.setitem(sys.modules, "tests_odd_module", module)
    lines: list[str] = []
    assert not check(CustomJudgeConfig(kind="tests_odd_module:Judge"), lines.append)
    assert told in lines[-1]


def test_turns_of_a_failed_run_are_not_the_decisive_one() -> None:
    """A judge that names every turn begins with the first run, a failed one."""
    lines: list[str] = []
    assert check(EveryTurnJudgeConfig(), lines.append)
    assert lines[-1] == "The decisive turn is 2 (take iron key): the judge missed it."


def test_the_group_is_as_told() -> None:
    """One of three succeeded, and no failure ever did what the decisive turn does."""
    group = known_group()
    assert [run.success for run in group.trajectories] == [False, True, False]
    decisive = group.trajectories[1].turns[PIVOT].action
    assert decisive == "take iron key"
    assert all(turn.action != decisive for run in group.trajectories if not run.success for turn in run.turns)
