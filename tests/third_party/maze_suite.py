"""The suite of somebody else: a marker, a manifest, and what a test wants to say of the result."""

import pytest


@pytest.mark.prover_suite(manifest="maze.yaml")
def test_maze(prover_suite):
    """Every measurement has all tasks."""
    assert prover_suite.suite.version == 3
    assert prover_suite.run().n == 6
