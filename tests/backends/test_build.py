"""From a config to a backend."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prover.backend_config import HttpBackendConfig
from prover.backends.build import open_backend
from prover.chat import Answer, Ask, Message, Usage
from prover.errors import ConfigError, DataError, ServiceError, UnknownNameError

ASK = Ask(messages=(Message(role="user", content="x"),))


class Own:
    """A backend of one's own."""

    name = "own"

    def __init__(self, text: str = "yes") -> None:
        self.text = text

    async def ask(self, ask: Ask) -> Answer:
        return Answer(text=self.text, finish="stop", usage=Usage(prompt_tokens=10, completion_tokens=5, calls=1))

    async def aclose(self) -> None:
        """Nothing to free."""


class Blocking(Own):
    """One that is no coroutine."""

    def ask(self, ask: Ask) -> Answer:  # type: ignore[override]  # wrong on purpose
        raise AssertionError("is never asked")


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> str:
    """This module, where import strings find it."""
    monkeypatch.setitem(sys.modules, "own_backends", sys.modules[__name__])
    return "own_backends"


def test_a_server_is_opened_from_a_section_or_its_keys() -> None:
    """Both give the same backend, and nothing is sent."""
    keys = {"url": "http://127.0.0.1:9/v1", "model": "m"}
    assert open_backend(keys).name == open_backend(HttpBackendConfig(**keys)).name == "m at http://127.0.0.1:9/v1"


def test_keys_are_checked() -> None:
    """Mistakes among the keys are told as those of a config file."""
    with pytest.raises(ConfigError, match=r"backend\.model is missing"):
        open_backend({"url": "http://127.0.0.1:9/v1"})
    with pytest.raises(ConfigError, match="unknown key 'modle'"):
        open_backend({"url": "http://127.0.0.1:9/v1", "model": "m", "modle": "x"})


def test_a_class_of_ones_own(own: str) -> None:
    """It gets its options, its ledger and its budget."""
    backend = open_backend({"kind": f"{own}:Own", "options": {"text": "hi"}, "budget_tokens": 20})
    assert [asyncio.run(backend.ask(ASK)).text for _ in range(2)] == ["hi", "hi"]
    with pytest.raises(ServiceError, match="budget"):
        asyncio.run(backend.ask(ASK))
    spent = open_backend({"kind": f"{own}:Own", "budget_tokens": 20}, spent=Usage(prompt_tokens=20))
    with pytest.raises(ServiceError, match="budget"):
        asyncio.run(spent.ask(ASK))


@pytest.mark.parametrize(
    ("section", "error", "match"),
    [
        ({"kind": "own_backends:Nobody"}, UnknownNameError, "Nobody"),
        ({"kind": "htpp"}, UnknownNameError, "Did you mean 'http'"),
        ({"kind": "own_backends:Own", "options": {"tetx": "x"}}, ConfigError, "does not take its options"),
        ({"kind": "own_backends:Blocking"}, ConfigError, "async def ask"),
        ({"kind": "local"}, ConfigError, "Set path to the folder of a model"),
        ({"kind": "local", "path": "/nowhere"}, DataError, "config.json"),
    ],
)
@pytest.mark.usefixtures("own")
def test_what_cannot_be_opened(section: dict[str, Any], error: type[Exception], match: str) -> None:
    """Every mistake has its error, before anything is asked."""
    with pytest.raises(error, match=match):
        open_backend(section)


def test_a_local_model_is_the_policy_or_a_folder(line_policy: Path) -> None:
    """Without a path the given policy is asked, with one the model of the folder."""
    from prover.policies.hf import HFPolicy

    policy = HFPolicy.load(line_policy)
    ask = Ask(messages=(Message(role="user", content="look"),), max_tokens=4)
    found = [
        asyncio.run(backend.ask(ask))
        for backend in (
            open_backend({"kind": "local"}, policy),
            open_backend({"kind": "local", "path": str(line_policy)}),
        )
    ]
    assert found[0].text == found[1].text
    assert found[0].usage.prompt_tokens == len(policy.codec.opening("", "look"))


def test_a_missing_package_is_named(line_policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wants constraints without the package for them is told what to install."""
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    monkeypatch.delitem(sys.modules, "prover.backends.grammar", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'prover\[grammar\]'"):
        open_backend({"kind": "local", "path": str(line_policy), "constrain": True})


def test_a_server_is_opened_without_torch() -> None:
    """Asking over HTTP loads neither torch nor transformers."""
    program = (
        "from prover.backends.build import open_backend; import sys; "
        "open_backend({'url': 'http://127.0.0.1:9/v1', 'model': 'm'}); "
        "print(*sorted(set(sys.modules) & {'torch', 'transformers', 'xgrammar'}))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
