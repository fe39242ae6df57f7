"""What the tests of the kit share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prover.build import EnvFactory
from prover.checks import check_text_env

Failed = Callable[..., set[str]]


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module ``planted`` can be imported, in worker processes too."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)


@pytest.fixture
def failed() -> Failed:
    """Names of the rules that a planted environment breaks; without ``spawn``, none is tried in another process."""

    def check(name: str, *, spawn: bool = False, **options: Any) -> set[str]:
        factory = EnvFactory(f"planted:{name}", options)
        report = check_text_env(factory if spawn else lambda: factory(), ending=["leave"], raises=False)
        return {result.rule for result in report.failures}

    return check
