"""The error tree."""

import inspect
import pickle

import pytest

from prover import errors
from prover.errors import ProverError

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_errors_pickle_and_are_drawn(error: type[ProverError]) -> None:
    """Every error survives the way to another process, has a docstring, and stands in the tree of the module."""
    copy = pickle.loads(pickle.dumps(error("expected a, got b; do c")))
    assert type(copy) is error
    assert str(copy) == "expected a, got b; do c"
    assert issubclass(error, ProverError)
    assert error.__doc__
    assert error.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("error", "standard"),
    [
        (errors.ConfigError, ValueError),
        (errors.DataError, FileNotFoundError),
        (errors.UnknownNameError, LookupError),
        (errors.EnvError, RuntimeError),
        (errors.EnvTimeoutError, TimeoutError),
        (errors.EnvTimeoutError, errors.EnvError),
        (errors.SnapshotError, errors.EnvError),
        (errors.TokenError, ValueError),
        (errors.NumericsError, ArithmeticError),
        (errors.CheckpointError, RuntimeError),
        (errors.FailureShareError, RuntimeError),
    ],
)
def test_errors_refine_what_is_known(error: type[Exception], standard: type[Exception]) -> None:
    """Who does not know ProVer still catches the right thing."""
    assert issubclass(error, standard)
