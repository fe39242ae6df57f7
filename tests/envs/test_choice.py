"""Which task a reset starts."""

import numpy as np
import pytest

from prover.envs.choice import chosen_task
from prover.errors import ConfigError

SPLITS = {"train": ("a", "b"), "test": ("c",)}


def chosen(options: dict[str, str] | None, seed: int = 0) -> str:
    """The task for these options."""
    return chosen_task(options, SPLITS.__getitem__, "train", np.random.default_rng(seed))


def test_a_named_task_is_taken() -> None:
    """Also one that no split lists: whoever resets knows the tasks."""
    assert chosen({"task": "z"}) == "z"


def test_a_task_is_drawn_from_the_split() -> None:
    """From the one that is named, else from the environment's own, where every task can come."""
    assert chosen({"split": "test"}) == "c"
    assert {chosen(None, seed) for seed in range(20)} == {"a", "b"}


def test_another_option_is_refused() -> None:
    """A misspelt one would otherwise start any task."""
    with pytest.raises(ConfigError, match=r"got also \['tsak'\]"):
        chosen({"tsak": "a"})
