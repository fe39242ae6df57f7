"""Fixtures and rules of all tests."""

import os

# Before anything imports torch: tests run side by side, one thread each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

SHARED = Path(os.environ.get("PROVER_SHARED", Path(__file__).parents[2] / "shared"))
NEEDS_SHARED = "needs shared data:"

# The same examples in every run, however busy the machine.
settings.register_profile("prover", deadline=None, derandomize=True, database=None)
settings.load_profile("prover")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of data and vectors that do not come with the project; the test is skipped where there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"{NEEDS_SHARED} no folder {SHARED}; set PROVER_SHARED")
    return SHARED


def _fail_instead(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip for want of shared data into a failure where the data must be there."""
    required = SHARED.is_dir() or os.environ.get("CI") == "true" or os.environ.get("PROVER_REQUIRE_SHARED") == "1"
    if required and report.skipped and NEEDS_SHARED in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped where shared data are required: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """No test may be skipped for want of shared data in CI, or where the data are."""
    report = yield
    _fail_instead(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that is skipped as a whole."""
    report = yield
    _fail_instead(report)
    return report
