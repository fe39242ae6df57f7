"""The judge on a real server that misbehaves, under many groups at once, through to the credit."""

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from chat_server import ChatServer, completion, cut, late, reset, say

from prover.attribution import Attribution, CreditRule, attribution_metrics
from prover.backend_config import HttpBackendConfig
from prover.backends.http import HttpBackend
from prover.judges.llm.judge import Limits, LLMJudge
from prover.records import Group, Segment
from prover.retry import RetryPolicy

GROUPS = 64
WON = [("look", "A desk."), ("take mug", "You take it."), ("go to sink", "At the sink."), ("clean mug", "Clean.")]
LOST = [("look", "A desk."), ("go to sink", "At the sink."), ("wait", "Nothing.")]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A server that does what its script says."""
    found = ChatServer()
    yield found
    found.close()


@pytest.fixture
def groups(group_of: Callable[..., Group]) -> list[Group]:
    """Groups that differ in their opening, which tells the server how to behave."""
    return [
        replace(
            group_of((LOST, False), (WON, True), (LOST, False), opening=f"Room {number} of {GROUPS}."), index=number
        )
        for number in range(GROUPS)
    ]


def good(body: dict[str, Any], start: int = 1, end: int = 1) -> str:
    """A reply that cites the first failed run of the prompt."""
    cited = re.search(r"^run (\w+): failed", body["messages"][1]["content"], re.MULTILINE)
    assert cited is not None
    said = {"failure_mode": "no mug", "evidence": [{"trajectory": cited[1], "turn": 1}], "reason": "takes it"}
    return json.dumps(said | {"start_turn": start, "end_turn": end, "confidence": 0.5})


def call(arguments: str) -> dict[str, Any]:
    """A completion that calls a tool."""
    calls = [{"id": "c", "type": "function", "function": {"name": "search_trajectory", "arguments": arguments}}]
    return completion(None, finish="tool_calls", calls=calls)


def day(body: dict[str, Any], seen: int) -> Any:
    """What the server does with the request number ``seen`` of a conversation; twelve kinds of groups."""
    found = re.search(r"Room (\d+) of", body["messages"][1]["content"])
    assert found is not None
    fine = say(completion(good(body)))
    kind = int(found[1]) % 12
    first: dict[int, Any] = {
        1: say("", 429, {"Retry-After": "0"}),
        2: say("", 500),
        3: cut(b'{"choices": ['),
        4: reset,
        5: say(call('{"query": "mug"}')),
        6: say(completion(f"The log says {good(body, 0, 0)}. I say {good(body)}")),
        7: say(completion("I think turn 1.")),
    }
    always: dict[int, Any] = {
        8: say("the key is wrong", 401),
        9: say("no money", 402),
        10: say("", 504),
        11: say(completion(good(body, 3, 3))),
    }
    if kind in always:
        return always[kind]
    return first[kind] if kind in first and seen == 0 else late(0.05, fine)


def test_sixty_four_groups_on_a_bad_day(server: ChatServer, groups: list[Group]) -> None:
    """What can be answered is answered right, the rest is plain GRPO, each with its cause, and nobody waits long."""
    seen: dict[str, int] = defaultdict(int)

    def script(body: dict[str, Any]) -> Any:
        key = body["messages"][1]["content"]
        seen[key] += 1
        return day(body, seen[key] - 1)

    server.script = script
    backend = HttpBackend(HttpBackendConfig(url=server.url, model="m", retries=2))
    backend._retry = RetryPolicy(retries=2, base_s=0.01, cap_s=0.02)
    judge = LLMJudge(backend, limits=Limits(seconds=30.0, repairs=2))
    attribution = Attribution(
        judge=judge, verifier=None, rule=CreditRule(), trusted_delta=0.5, judge_deadline_s=60.0, max_length=4
    )

    async def run() -> Any:
        try:
            return await attribution.judge_groups(groups, seed=3)
        finally:
            await judge.aclose()

    verdicts = asyncio.run(run())
    outcomes: dict[int, set[str]] = defaultdict(set)
    for verdict in verdicts:
        outcomes[verdict.group % 12].add(verdict.outcome)
        if verdict.outcome == "trusted":
            assert verdict.proposal.segment == Segment(trajectory=1, start=1, end=1)
            assert verdict.credit.amount == 0.5
        else:
            assert verdict.credit is None
    assert outcomes == {
        **{kind: {"trusted"} for kind in range(8)},
        8: {"no_proposal:judge_unauthorized"},
        9: {"no_proposal:judge_payment"},
        10: {"no_proposal:judge_timeout"},
        11: {"no_proposal:refused_terminal_endpoint"},
    }
    metrics = attribution_metrics(verdicts, groups)
    kinds = Counter(group.index % 12 for group in groups)
    assert metrics["judge_failures"] == {"unauthorized": kinds[8], "payment": kinds[9], "timeout": kinds[10]}
    assert metrics["judge_answered"] == GROUPS - kinds[8] - kinds[9] - kinds[10]
    stats = judge.stats()
    assert stats["tool_calls"] == kinds[5]
    assert stats["refused"] == {"ambiguous": kinds[6], "no_object": kinds[7], "terminal_endpoint": 3 * kinds[11]}
    # A wrong key and an empty account are told once and not tried again.
    assert sum(" 401" in verdict.detail and "Asked once" in verdict.detail for verdict in verdicts) == kinds[8]
