"""As many turns as another run."""

import json
from pathlib import Path

import pytest

from prover.errors import DataError
from prover.turn_budget import TurnBudget


def test_a_run_tells_what_it_spent(tmp_path: Path) -> None:
    """Rollouts and continuations, but not random segments: 100 + 20, then 90 + 10; later 110 an update on average."""
    lines = [
        {"turns": 100, "verifier_turns": 20, "probe_turns": 7},
        {"turns": 90, "verifier_turns": 10, "probe_turns": 0},
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    budget = TurnBudget.of(tmp_path)
    assert [budget.allowance(update) for update in range(4)] == [120, 220, 330, 440]


def test_groups_get_what_is_left() -> None:
    """Eight episodes of ten turns leave 35 of 115 turns: three more episodes, for the first three of four groups."""
    budget = TurnBudget(spent=(115, 230))
    assert budget.more(0, 80, 8, 4) == [1, 1, 1, 0]
    budget.own = 80 + 30
    # 230 - 110 leaves 120; 8 episodes of 5 turns leave 80, which are 16 more.
    assert budget.more(1, 40, 8, 4) == [4, 4, 4, 4]


def test_a_run_that_is_ahead_gets_nothing() -> None:
    """Turns that were taken too many are made up for later; episodes are never taken away."""
    budget = TurnBudget(spent=(50,), own=20)
    assert budget.more(0, 40, 8, 2) == [0, 0]
    assert budget.more(0, 0, 8, 2) == [0, 0]


@pytest.mark.parametrize("text", ["", "{}", "oops"])
def test_a_folder_without_metrics_is_refused(tmp_path: Path, text: str) -> None:
    """The message names the key to correct."""
    (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(DataError, match=r"finished run in"):
        TurnBudget.of(tmp_path)
    with pytest.raises(DataError, match=r"rollout\.match_turns"):
        TurnBudget.of(tmp_path / "elsewhere")
