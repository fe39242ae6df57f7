"""Sections of chat models."""

from pathlib import Path
from typing import Any

import pytest

from prover.backend_config import BackendConfig, CustomBackendConfig, HttpBackendConfig, LocalBackendConfig
from prover.errors import ConfigError
from prover.sections import Section, dump, load

URL = "http://localhost:8000/v1"


class Config(Section):
    """A config with a chat model."""

    backend: BackendConfig = LocalBackendConfig()


def read(*overrides: str) -> Any:
    """The section with some keys set."""
    return load(Config, None, [f"backend.{override}" for override in overrides]).backend


def test_the_kind_chooses_the_section() -> None:
    """A shipped kind has keys of its own; any other is a custom one with options; without one it is a server."""
    assert isinstance(read(f"url={URL}", "model=m"), HttpBackendConfig)
    assert isinstance(read("kind=local", "path=models/x"), LocalBackendConfig)
    custom = read("kind=my:Backend", "options={a: 1}", "budget_tokens=5")
    assert isinstance(custom, CustomBackendConfig)
    assert (custom.options, custom.budget_tokens) == ({"a": 1}, 5)


def test_what_is_missing_or_unknown_is_named() -> None:
    """A server needs an address and a model, and knows no keys of other kinds."""
    with pytest.raises(ConfigError, match=r"backend\.model is missing"):
        read("kind=http", f"url={URL}")
    with pytest.raises(ConfigError, match="unknown key 'path'"):
        read("kind=http", f"url={URL}", "model=m", "path=x")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host/v1",
        "http://user:planted-secret@host/v1",
        "https://host/v1?key=planted-secret",
        "https://host/v1#planted-secret",
        "https://host/planted-secret@x",
        "http://host:99999/v1",
        "http://",
    ],
)
def test_addresses_hold_no_secrets(url: str) -> None:
    """An address with a password or a query is refused, and the message does not repeat it."""
    with pytest.raises(ConfigError, match="expected an address such as") as caught:
        read("model=m", f"url='{url}'")
    assert "planted-secret" not in str(caught.value)


def test_addresses_lose_their_last_slash() -> None:
    """With or without it, the same server is meant."""
    assert read("model=m", f"url={URL}/").url == URL
    assert read("model=m", "url=https://[::1]:80").url == "https://[::1]:80"


@pytest.mark.parametrize("key", ["sk-planted-secret", "hf_planted_secret", "gsk_PLANTED", "A B"])
def test_a_key_is_no_name_of_a_variable(key: str) -> None:
    """Who writes the key into the config is told not to, and the message does not repeat it."""
    with pytest.raises(ConfigError, match="never the key itself") as caught:
        read("model=m", f"url={URL}", f"key_env={key}")
    assert key not in str(caught.value)


def test_a_cost_limit_needs_prices() -> None:
    """Without prices nothing would ever cost anything."""
    with pytest.raises(ConfigError, match="budget_cost needs price_prompt"):
        read("model=m", f"url={URL}", "budget_cost=2.0")
    assert read("model=m", f"url={URL}", "budget_cost=2.0", "price_reply=8.0").budget_cost == 2.0


def test_a_section_is_written_and_read_back(tmp_path: Path) -> None:
    """All keys survive the way through YAML."""
    section = HttpBackendConfig(url=URL, model="m", key_env="MY_KEY", body={"seed": None, "top_p": 0.5})
    path = tmp_path / "config.yaml"
    path.write_text(dump(Config(backend=section)), encoding="utf-8")
    assert load(Config, path).backend == section
