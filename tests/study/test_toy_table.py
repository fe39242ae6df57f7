"""The table of the toy study."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from prover.study import toy_table
from prover.study.toy import Method, Outcome
from prover.study.toy_table import difference, rows


def of(*areas: float) -> Outcome:
    """An outcome with these areas."""
    values = np.array(areas)
    return Outcome(area=values, final=values, turns=values, success=values[None])


def test_differences_are_paired_by_seed() -> None:
    """+.1 and +.3 over a mean of .5 are +20% and +60%: mean 40, standard error 20, t(1) 12.706."""
    found = difference(of(0.5, 0.9), of(0.4, 0.6))
    assert found.mean == pytest.approx(40)
    assert found.se == pytest.approx(20)
    assert found.low == pytest.approx(40 - 12.7062 * 20, abs=1e-2)


def test_every_method_gets_a_row_and_a_rival_with_as_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """GRPO comes first; a method is compared with the smallest larger group that plays no fewer turns."""
    turns = {8: 100.0, 9: 110.0, 10: 120.0, 12: 150.0}

    def simulated(method: Method, seeds: object) -> Outcome:
        played = turns[method.group_size] if method.selector == "none" else 115.0
        return Outcome(area=np.ones(2), final=np.ones(2), turns=np.full(2, played), success=np.ones((1, 2)))

    monkeypatch.setattr(toy_table, "simulate", simulated)
    found = list(rows([0, 1], 8.0))
    assert [row.name for row in found] == list(toy_table.METHODS)
    assert found[0].against_grpo is None
    assert {row.budget for row in found[:4]} == {""}
    assert {row.budget for row in found[4:]} == {"GRPO, G 10"}


def test_the_table_shows_differences_with_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are readable in a terminal of 80 columns."""
    monkeypatch.setattr(toy_table, "simulate", lambda method, seeds: of(0.39 + 0.01 * method.weight, 0.6))
    console = Console(file=StringIO(), width=80)
    toy_table.show(list(rows([0, 1], 8.0)), 2, 8.0, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    # Weight 8 against 1: +.07 and 0 over a mean of .5 are +14% and 0; t(1) 12.706 times a standard error of 7.
    assert "+7.0 ±88.9" in text
    assert "…" not in text
