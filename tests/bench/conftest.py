"""What tests of suites share: manifests of the toy walk, and contenders without a model."""

from collections.abc import Callable
from pathlib import Path

import pytest

MANIFEST = """
suite: {name}
version: 1
env: {{kind: line}}
split: test
trained_on: []
max_turns: 30
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Callable[..., Path]:
    """Writes a manifest of the toy walk, with more lines if there are any."""

    def write(name: str = "walk", more: str = "", folder: Path = tmp_path) -> Path:
        path = folder / f"{name}.yaml"
        path.write_text(MANIFEST.format(name=name) + more, encoding="utf-8")
        return path

    return write
