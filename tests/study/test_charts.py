"""The curves of a study."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from study_records import run

from prover.study.charts import curve, draw


def test_points_are_means_of_runs_over_windows() -> None:
    """Six updates of 10 turns, success 0 to 5: windows of five with middles at cost 25 and 35."""
    spent, success = curve([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]], [[10] * 6, [10] * 6])
    assert np.allclose(spent, [25, 35])
    assert np.allclose(success, [2, 3])


def test_short_runs_have_one_point() -> None:
    """Two updates fill no window: their mean."""
    spent, success = curve([[0.2, 0.4]], [[10, 10]])
    assert np.allclose(spent, [10])
    assert np.allclose(success, [0.3])


def test_one_file_a_start_the_same_every_time(tmp_path: Path) -> None:
    """SVG with the methods' names as text, byte for byte equal on a second drawing."""
    records = [run("grpo", 0, 0.3), replace(run("more", 0, 0.4), success_U=(0.3, 0.5))]
    (first,) = draw(records, tmp_path)
    text = first.read_bytes()
    (again,) = draw(records, tmp_path)
    assert first.name == "one.svg"
    assert b">more (1)<" in text
    assert again.read_bytes() == text
