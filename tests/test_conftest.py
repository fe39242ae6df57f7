"""The rule that tests which need shared data may be skipped on a desk and never in CI."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest

def test_needs_the_folder(shared):
    pass

def test_needs_a_part_of_it():
    pytest.skip("needs shared data: a part")

def test_is_skipped_for_another_reason():
    pytest.skip("other")
"""


@pytest.mark.parametrize(
    ("variable", "folder", "outcome"),
    [
        ({}, False, "3 skipped"),
        ({"CI": "true"}, False, "1 failed, 1 skipped, 1 error"),
        ({"PROVER_REQUIRE_SHARED": "1"}, False, "1 failed, 1 skipped, 1 error"),
        ({}, True, "1 failed, 1 passed, 1 skipped"),
    ],
)
def test_skips_for_want_of_shared_data_fail_where_it_must_be(
    tmp_path: Path, variable: dict[str, str], folder: bool, outcome: str
) -> None:
    """Without the folder they are skipped, unless in CI or on demand; where the folder is, a missing part fails."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    shared = tmp_path if folder else tmp_path / "nowhere"
    plain = {key: value for key, value in os.environ.items() if key not in ("CI", "PROVER_REQUIRE_SHARED")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        env={**plain, "PROVER_SHARED": str(shared), **variable},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout.splitlines()[-1].startswith(f"{outcome} in ")
