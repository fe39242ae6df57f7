"""The suites of ProVer: ``pytest benchmarks --suite NAME --policy POLICY``, see docs/benchmarks.md."""

import pytest


@pytest.mark.prover_suite(manifest="suites/*.yaml")
def test_suite(prover_suite) -> None:  # type: ignore[no-untyped-def]  # a fixture of the plugin
    """A measurement; a low score is a result, and only what cannot be measured fails."""
    prover_suite.run()
