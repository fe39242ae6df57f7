"""The rule that tests which need shared data may be skipped on a desk and never in CI."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

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
        (None, False, {"skipped": 3}),
        ("CI=true", False, {"failed": 1, "skipped": 1, "errors": 1}),
        ("PROVER_REQUIRE_SHARED=1", False, {"failed": 1, "skipped": 1, "errors": 1}),
        (None, True, {"failed": 1, "passed": 1, "skipped": 1}),
    ],
)
def test_skips_for_want_of_shared_data_fail_where_it_must_be(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    folder: bool,
    outcome: dict[str, int],
) -> None:
    """Without the folder they are skipped, unless in CI or on demand; where the folder is, a missing part fails."""
    for name in ("CI", "PROVER_REQUIRE_SHARED"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(*variable.split("="))
    monkeypatch.setenv("PROVER_SHARED", str(pytester.path if folder else pytester.path / "nowhere"))
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(SUITE)
    pytester.runpytest_inprocess("-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(**outcome)
