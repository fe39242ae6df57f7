"""Sections of environments."""

import pytest

from prover.config import load_config
from prover.env_config import CustomEnvConfig, LineEnvConfig, WebshopEnvConfig
from prover.errors import ConfigError


def test_the_kind_chooses_the_section() -> None:
    """A shipped kind has keys of its own; any other is a custom one with options."""
    assert isinstance(load_config(None, ["env.kind=webshop"]).env, WebshopEnvConfig)
    assert isinstance(load_config(None, ["env.kind=line"]).env, LineEnvConfig)
    assert isinstance(load_config(None, ["env.kind=my:Env"]).env, CustomEnvConfig)


def test_a_key_of_another_kind_is_refused() -> None:
    """A shop has no task types to choose from."""
    with pytest.raises(ConfigError, match="task_types"):
        load_config(None, ["env.kind=webshop", "env.task_types=[clean]"])
