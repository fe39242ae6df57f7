"""Judgements in a file."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from prover.errors import DataError
from prover.judges.llm.cache import JudgementCache, key_of
from prover.records import Group, NoProposal, Proposal, Segment, Turn

PROPOSAL = Proposal(segment=Segment(trajectory=1, start=2, end=3), reason="so \u2713", judge="llm")
NOTHING = NoProposal(reason="refused_schema", detail="no")
STEPS = [("look", "A desk."), ("wait", "Nothing.")]


def test_judgements_are_found_by_another_reader(tmp_path: Path) -> None:
    """Both kinds come back equal, in this process and in the next, and nothing is written twice."""
    cache = JudgementCache(tmp_path / "below" / "judge_cache.jsonl")
    assert cache.get("a") is None
    assert not cache.path.exists()
    cache.put("a", PROPOSAL, task="t", seed=7)
    cache.put("b", NOTHING)
    cache.put("a", NOTHING)
    for reader in (cache, JudgementCache(cache.path)):
        assert [reader.get(key) for key in "abc"] == [PROPOSAL, NOTHING, None]
    first = json.loads(cache.path.read_text(encoding="utf-8").splitlines()[0])
    assert (first["task"], first["seed"]) == ("t", 7)
    assert len(cache.path.read_text(encoding="utf-8").splitlines()) == 2


def test_a_line_that_was_cut_is_passed_over(tmp_path: Path) -> None:
    """What a stopped run had begun to write harms neither what stands before nor what comes after."""
    path = tmp_path / "judge_cache.jsonl"
    JudgementCache(path).put("a", PROPOSAL)
    with path.open("a", encoding="utf-8") as lines:
        lines.write('{"key": "b", "propo')
    again = JudgementCache(path)
    assert again.get("b") is None
    again.put("b", NOTHING)
    assert [JudgementCache(path).get(key) for key in "ab"] == [PROPOSAL, NOTHING]


def test_another_file_is_named(tmp_path: Path) -> None:
    """A file that holds something else is an error that says which line."""
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"update": 1}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1 of .*metrics\.jsonl"):
        JudgementCache(path).get("a")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder and bytes that are no text are mistakes, said before anybody is asked; no file is one only to replay."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "bytes"):
        with pytest.raises(DataError, match=r"name another file as judge\.cache_path"):
            JudgementCache(path).load()
    JudgementCache(tmp_path / "none").load()
    with pytest.raises(DataError, match="got no such file"):
        JudgementCache(tmp_path / "none").load(needed=True)


def test_the_key_is_the_content(group_of: Callable[..., Group]) -> None:
    """Texts, outcomes, order and settings decide; seeds, members and rewards do not."""
    group = group_of((STEPS, True), (STEPS, False))
    key = key_of(group, model="m")
    run = group.trajectories[1]
    same = replace(group, index=9, trajectories=(group.trajectories[0], replace(run, member=3, seed=8)))
    assert key_of(same, model="m") == key
    turn = run.turns[0]
    others = [
        replace(run, opening="elsewhere"),
        replace(run, success=True),
        replace(run, turns=run.turns[:1]),
        replace(run, turns=(Turn(text="hm", action=turn.action, result=turn.result, reward=0.0), run.turns[1])),
        replace(run, turns=(replace(turn, invalid="env"), run.turns[1])),
    ]
    keys = {key_of(replace(group, trajectories=(group.trajectories[0], other)), model="m") for other in others}
    keys |= {key, key_of(group, model="n"), key_of(replace(group, trajectories=group.trajectories[::-1]), model="m")}
    assert len(keys) == 8
