"""The package itself: its names and its environments."""

import subprocess
import sys

import gymnasium
import pytest

import prover
from prover.envs.alfworld.env import ALFWorldEnv
from prover.envs.webshop.env import WebShopEnv
from prover.testing import CoinEnv, LineEnv


def test_every_public_name_is_there() -> None:
    """All names of ``__all__`` resolve, sorted and at most 25."""
    assert all(hasattr(prover, name) for name in prover.__all__)
    assert sorted(prover.__all__) == prover.__all__
    assert len(prover.__all__) <= 25


def test_a_wrong_name_is_an_attribute_error() -> None:
    """It points at the public names."""
    with pytest.raises(AttributeError, match=r"'Enviroment'.*prover\.__all__"):
        prover.Enviroment  # type: ignore[attr-defined]  # noqa: B018 - the misuse


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("prover/Line-v1", LineEnv),
        ("prover/Coin-v1", CoinEnv),
        ("prover/ALFWorld-v1", ALFWorldEnv),
        ("prover/WebShop-v1", WebShopEnv),
    ],
)
def test_registered_environments_come_without_wrappers(name: str, kind: type) -> None:
    """``gymnasium.make`` gives the environment itself."""
    env = gymnasium.make(name)
    assert type(env) is kind
    env.close()


def test_importing_the_package_loads_few_modules() -> None:
    """Neither torch nor the configs nor any adapter comes with ``import prover``."""
    heavy = ("torch", "transformers", "pydantic", "prover.envs", "prover.policies", "prover.testing")
    program = f"import prover, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
