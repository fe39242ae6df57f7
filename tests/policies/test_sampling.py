"""Tests of drawing tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.errors import NumericsError
from prover.policies.sampling import draw


def one(logits: list[float], uniform: float, temperature: float = 1.0) -> tuple[int, float]:
    """Draw from a single row."""
    columns, logprobs = draw(np.array([logits], dtype=np.float32), np.array([uniform]), np.array([temperature]))
    return int(columns[0]), float(logprobs[0])


@pytest.mark.parametrize(("temperature", "logprob"), [(0.5, -0.0181), (1.0, -0.1269), (1.5, -0.2339)])
def test_logprob_is_that_of_the_tempered_distribution(temperature: float, logprob: float) -> None:
    """Logits [2, 0]: the log-probability of the first is -log(1 + exp(-2 / T))."""
    assert one([2.0, 0.0], 0.0, temperature) == (0, pytest.approx(logprob, abs=1e-4))


def test_uniform_number_inverts_the_cumulative_distribution() -> None:
    """Logits log [1, 2, 1] have steps at 0.25 and 0.75; a number on a step belongs to what follows."""
    logits = np.log([1.0, 2.0, 1.0]).tolist()
    assert [one(logits, u)[0] for u in (0.0, 0.2499, 0.2501, 0.7499, 0.7501, 0.9999)] == [0, 0, 1, 1, 2, 2]


def test_impossible_columns_are_never_drawn() -> None:
    """A column of probability 0 is skipped at both ends and in the middle."""
    logits = [-np.inf, 0.0, -np.inf, 0.0, -np.inf]
    drawn = [one(logits, u) for u in (0.0, 0.5 - 1e-9, 0.5, 1.0 - 2.0**-53)]
    assert [column for column, _ in drawn] == [1, 1, 3, 3]
    assert all(logprob == pytest.approx(np.log(0.5)) for _, logprob in drawn)


def test_temperature_0_takes_the_largest() -> None:
    """At temperature 0 all mass is on the largest logit, so its log-probability is 0."""
    assert [one([1.0, 3.0, 2.0], u, 0.0) for u in (0.0, 0.99)] == [(1, 0.0), (1, 0.0)]


@given(
    logits=st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=20),
    uniforms=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4),
    temperature=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
)
def test_rows_do_not_disturb_each_other(logits: list[float], uniforms: list[float], temperature: float) -> None:
    """A row among others yields exactly what it yields alone, with a finite log-probability."""
    rows = np.array([logits] * len(uniforms), dtype=np.float32)
    columns, logprobs = draw(rows, np.array(uniforms), np.full(len(uniforms), temperature))
    alone = [one(logits, u, temperature) for u in uniforms]
    assert list(zip(columns.tolist(), logprobs.tolist(), strict=True)) == alone
    assert np.isfinite(logprobs).all()
    assert (logprobs <= 0).all()


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_make_no_distribution_are_refused(bad: list[float], temperature: float) -> None:
    """Weights that became NaN are an error, not the first token of the vocabulary."""
    with pytest.raises(NumericsError, match="expected logits with a finite maximum"):
        one(bad, 0.5, temperature)
