"""The door of ProVer's pytest plugin: options, the marker ``prover_suite`` and the fixture of that name.

It lies outside the package and imports nothing of it before a marked test is collected, and its options are there only
where one of them, or help, is asked for: pytest runs that have nothing to do with ProVer are as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

_MARKER = (
    "prover_suite(manifest): measure what --policy names on the suites of these manifests (names or patterns of YAML "
    "files beside the test); the test calls run() of the fixture prover_suite"
)
_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "suite",
        {"action": "append", "metavar": "NAME", "help": "Suite, family of suites, pattern or 'all'; repeatable."},
    ),
    ("policy", {"metavar": "POLICY", "help": "random, expert, default, a model's or run's folder, or a YAML file."}),
    ("episodes", {"type": int, "metavar": "N", "help": "Episodes of each measurement; by default as the suite says."}),
    ("seeds", {"type": int, "metavar": "N", "help": "Measurements with other seeds; their episodes are joined."}),
    ("out", {"metavar": "DIR", "help": "Folder of the results; by default a new one in runs/."}),
    ("resume", {"action": "store_true", "help": "Go on with an interrupted run: that of --out, or the newest."}),
    ("turns", {"action": "store_true", "help": "Keep what was said in every turn as well, in .turns.jsonl files."}),
    ("allow-leak", {"action": "store_true", "help": "Measure on a leaked split as well; the result is marked."}),
)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> Iterator[None]:
    """Offer the options where they are asked for. What another plugin calls alike stays that plugin's."""
    yield
    words = {word.partition("=")[0] for word in args}
    if not words & {"--suite", "--policy", "--help", "-h"} or not (_free(parser, "suite") and _free(parser, "policy")):
        return
    group = parser.getgroup("prover", "benchmark suites (ProVer)")
    for name, settings in _OPTIONS:
        shown = f"--{name}" if _free(parser, name) else f"--prover-{name}"
        group.addoption(shown, dest=f"prover_{name.replace('-', '_')}", **settings)


def _free(parser: pytest.Parser, name: str) -> bool:
    """Whether no other plugin has an option of this name."""
    probe = f"--{name}=x"
    try:
        return probe in parser.parse_known_and_unknown_args([probe])[1]
    except pytest.UsageError:
        return False


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a marked test run once for every measurement."""
    marker = metafunc.definition.get_closest_marker("prover_suite")
    if marker is None:
        return
    if "prover_suite" not in metafunc.fixturenames:
        raise pytest.Collector.CollectError(
            f"{metafunc.function.__name__}: a test marked prover_suite takes the argument prover_suite"
        )
    from prover.bench import plugin
    from prover.errors import ProverError

    manifests = marker.kwargs.get("manifest", marker.args)
    try:
        found = plugin.cases(metafunc.config, metafunc.definition.path.parent, manifests)
    except (ProverError, FileNotFoundError) as error:
        raise pytest.Collector.CollectError(str(error)) from None
    marks = {one.skip: [pytest.mark.skip(reason=one.skip)] if one.skip else [] for one in found}
    cases = [pytest.param(one, id=one.id, marks=marks[one.skip]) for one in found]
    metafunc.parametrize("prover_suite", cases, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose suites were not asked for; suites may take longer than a test's time limit."""
    marked = [item for item in items if item.get_closest_marker("prover_suite")]
    if not marked:
        return
    from prover.bench import plugin

    plugin.check_options(config)
    # Who asks for a suite does not ask for what lies beside it.
    others = [item for item in items if item not in marked] if config.getoption("prover_suite", None) else []
    idle = others + [item for item in marked if _idle(item)]
    if idle:
        config.hook.pytest_deselected(items=idle)
        items[:] = [item for item in items if item not in idle]
    if config.pluginmanager.hasplugin("timeout"):
        for item in marked:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(0))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where results go."""
    if node.config.getoption("prover_suite", None) or node.config.getoption("prover_policy", None):
        from prover.bench import plugin

        node.workerinput["prover_out"] = str(plugin.out(node.config))


@pytest.fixture
def prover_suite(request: pytest.FixtureRequest) -> Any:
    """One measurement of a suite: ``run()`` returns its ``prover.evaluate.Evaluation``."""
    from prover.bench import plugin

    if not hasattr(request, "param"):
        pytest.fail(
            "expected the marker prover_suite(manifest=...) on a test with this fixture, got none", pytrace=False
        )
    return plugin.SuiteRun(request.param, request)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the results."""
    if config.getoption("prover_out", None) is None:
        return
    from prover.bench import plugin

    reports = [report for some in terminalreporter.stats.values() for report in some]
    found = [dict(getattr(report, "user_properties", ())).get(plugin.PROPERTY) for report in reports]
    lines = [*plugin.summary_lines(config, [path for path in found if path])]
    if lines:
        terminalreporter.section("benchmark suites")
    for line in lines:
        terminalreporter.write_line(line)


def _idle(item: pytest.Item) -> bool:
    """Whether a test stands for no suite, and is not to be reported as skipped either."""
    case = item.callspec.params.get("prover_suite") if hasattr(item, "callspec") else None
    return case is not None and case.suite is None and not case.skip
