"""Which policy sampled stored groups."""

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from prover import group_store
from prover.config import load_config
from prover.errors import ConfigError
from prover.folder import RunFolder
from prover.origin import Origin, difference, origin
from prover.records import Group


@pytest.fixture
def copy(stored_run: Path, tmp_path: Path) -> Path:
    """A run, to be changed."""
    shutil.copytree(stored_run, tmp_path / "copy")
    return tmp_path / "copy"


def first_group(run: Path, update: int) -> Group:
    """A group of an update."""
    (stored,) = [found for found in group_store.stored(RunFolder(run).groups) if found.update == update]
    return stored.load()[0]


def found(run: Path, update: int, *, any_policy: bool = False) -> Origin:
    """The policy of an update."""
    return origin(load_config(run / "config.yaml"), run, update, first_group(run, update), any_policy=any_policy)


def test_the_policy_of_the_run_gives_the_stored_log_probabilities(stored_run: Path) -> None:
    """Loaded again, start and checkpoint agree with what was sampled to rounding, and not with each other's."""
    start, later = (found(stored_run, update) for update in (0, 2))
    assert (start.name, start.exact, later.name, later.exact) == ("start", True, "update-000002", True)
    assert difference(start.policy, first_group(stored_run, 0)) < 1e-5
    assert difference(later.policy, first_group(stored_run, 2)) < 1e-5
    assert difference(start.policy, first_group(stored_run, 2)) > 1e-3


def test_a_policy_that_is_gone_is_named(copy: Path) -> None:
    """The message says which are there; asked to, the nearest one is taken and called what it is."""
    shutil.rmtree(copy / "checkpoints" / "update-000002")
    with pytest.raises(ConfigError, match=r"the checkpoint after 2 updates(.|\n)*those after \[3\](.|\n)*--any-policy"):
        found(copy, 2)
    nearest = found(copy, 2, any_policy=True)
    assert (nearest.name, nearest.exact) == ("update-000003", False)


def test_other_weights_under_the_right_name_are_noticed(copy: Path) -> None:
    """Weights that give the stored tokens other log-probabilities did not sample them."""
    file = copy / "checkpoints" / "update-000002" / "model.safetensors"
    moved = {
        name: value + 0.3 * value.std() * (-1) ** number for number, (name, value) in enumerate(load_file(file).items())
    }
    save_file(moved, file, {"format": "pt"})
    with pytest.raises(ConfigError, match=r"expected 'update-000002' to be the policy(.|\n)*differ by"):
        found(copy, 2)
    changed = found(copy, 2, any_policy=True)
    assert (changed.name, changed.exact) == ("update-000002", False)
