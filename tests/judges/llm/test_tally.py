"""Counters of a judge."""

from prover.chat import Usage
from prover.judges.llm.tally import Tally


def test_counts_are_told_once_and_totals_stay() -> None:
    """A look tells everything since the last one, zeros included; tokens and repairs are summed besides."""
    tally = Tally()
    tally.counts.update(judged=2, repairs=3, orders_compared=4, orders_flipped=1)
    tally.refused["schema"] += 2
    tally.usage += Usage(prompt_tokens=10, completion_tokens=5, calls=2, seconds=1.5, cost=0.25)
    first = tally.drain()
    assert (first["judged"], first["repairs"], first["tool_calls"]) == (2, 3, 0)
    assert (first["orders_compared"], first["flip_share"], first["refused"]) == (4, 0.25, {"schema": 2})
    assert (first["prompt_tokens"], first["completion_tokens"], first["requests"]) == (10, 5, 2)
    assert (first["seconds"], first["cost"]) == (1.5, 0.25)
    second = tally.drain()
    assert (second["judged"], second["flip_share"], second["refused"], second["cost"]) == (0, None, {}, 0.0)
    assert (tally.total.tokens, tally.repairs) == (15, 3)
