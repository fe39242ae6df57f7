"""The judge against chance."""

import pytest

from prover.attribution import Verdict
from prover.null_probe import NullProbe
from prover.records import Arm, Estimate


def estimate(delta: float) -> Estimate:
    """A measured difference of eighths."""
    return Estimate(before=Arm(successes=0, n=8), after=Arm(successes=round(8 * delta), n=8), turns=0, tokens=0)


def verdict(delta: float | None, probe: float | None) -> Verdict:
    """A group in which these differences were measured."""
    return Verdict(
        group=0,
        outcome="measured",
        estimate=None if delta is None else estimate(delta),
        probe=None if probe is None else estimate(probe),
    )


def test_pairs_are_collected_over_the_run() -> None:
    """+.5 and 0 in one update, +.25 in the next; groups without either measurement do not count."""
    probe = NullProbe(warn_after=64)
    first = probe.see([verdict(0.75, 0.25), verdict(0.5, 0.5), verdict(0.5, None), verdict(None, 0.5)])
    assert (first["probe_gains"], first["probe_gain"], first["probe_pairs"]) == ([0.5, 0.0], 0.25, 2)
    second = probe.see([verdict(0.5, 0.25)])
    assert (second["probe_gains"], second["probe_gain"], second["probe_pairs"]) == ([0.25], 0.25, 3)
    # sd .25, standard error .1443, t(2) 4.3027.
    assert second["probe_gain_interval95"] == pytest.approx([0.25 - 0.6211, 0.25 + 0.6211], abs=1e-3)


def test_nothing_measured_is_no_number() -> None:
    """Where there are no pairs there is no mean, and no interval of one pair."""
    probe = NullProbe(warn_after=1)
    assert probe.see([])["probe_gain"] is None
    assert probe.see([verdict(0.5, 0.0)])["probe_gain_interval95"] is None
    assert probe.warning() is None


def test_a_judge_no_better_than_chance_is_told_of_once() -> None:
    """Not before there are enough pairs, and not of one whose interval lies above 0."""
    poor = NullProbe(warn_after=4)
    poor.see([verdict(0.5, 0.25), verdict(0.25, 0.5), verdict(0.5, 0.5)])
    assert poor.warning() is None
    poor.see([verdict(0.5, 0.25)])
    assert "beat random ones by +0.062" in (poor.warning() or "")
    assert poor.warning() is None
    good = NullProbe(warn_after=4)
    good.see([verdict(0.75, 0.25), verdict(0.5, 0.25), verdict(0.75, 0.25), verdict(0.5, 0.0)])
    assert good.warning() is None


def test_a_resumed_run_goes_on_counting() -> None:
    """What the metrics of earlier updates hold is taken in again."""
    probe = NullProbe(warn_after=64)
    probe.recall([{"probe_gains": [0.5, 0.0]}, {}])
    assert probe.see([verdict(0.5, 0.25)])["probe_pairs"] == 3
