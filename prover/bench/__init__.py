"""Benchmark suites: manifests, the leak check, what can play, measuring that can be interrupted, and tables.

``prover eval`` and the pytest plugin are two doors to the same machinery. docs/benchmarks.md tells how to use it.
"""
