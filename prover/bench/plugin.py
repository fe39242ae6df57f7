"""What the pytest plugin does once a suite is collected; ``_prover_pytest``, its door, loads this when it is needed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from prover.bench import measurement, report, results
from prover.bench.contender import Contender, contender
from prover.bench.suite import SuiteConfig, fits, load_suite, no_such_suite
from prover.errors import DataError, ProverError
from prover.evaluate import Evaluation

PROPERTY = "prover_result"
"""Name under which a test's report carries the path of its result, also from another process."""


@dataclass(slots=True)
class Session:
    """What the suites of one pytest run share."""

    known: set[str] = field(default_factory=set)
    """Names of all suites that were collected."""
    plans: dict[str, measurement.Plan | ProverError] = field(default_factory=dict)
    """By digest of the suite: looked up, and checked for leaks, once."""
    contender: Contender | None = None


_SESSION = pytest.StashKey[Session]()


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement of a suite; without a suite, the stand-in for a test that has nothing to do in this run."""

    suite: SuiteConfig | None
    temperature: float = 1.0
    seed: int = 0
    skip: str = ""

    @property
    def id(self) -> str:
        """Its name in the test's id."""
        if self.suite is None:
            return "none"
        return f"{self.suite.suite}-T{self.temperature:g}-s{self.seed}"


def session_of(config: pytest.Config) -> Session:
    """What the suites of this run share."""
    return config.stash.setdefault(_SESSION, Session())


def cases(config: pytest.Config, folder: Path, manifests: str | tuple[str, ...]) -> list[Case]:
    """The measurements that a test with the marker stands for.

    Args:
        config: of pytest.
        folder: of the test's file; manifests are named from there.
        manifests: names or patterns of manifests.

    Raises:
        ConfigError: a manifest is wrong.
        FileNotFoundError: there is none.
    """
    wanted, policy = option(config, "suite"), option(config, "policy")
    patterns = (manifests,) if isinstance(manifests, str) else manifests
    paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    if not paths:
        raise FileNotFoundError(f"expected a manifest {', '.join(patterns)} in {folder}, found none; name a YAML file")
    if not wanted and not policy:
        return [Case(None, skip="benchmark suite: give --suite NAME --policy POLICY")]
    found = []
    for suite in map(load_suite, paths):
        session_of(config).known.add(suite.suite)
        if not wanted or any(fits(suite.suite, name) for name in wanted):
            # Chance and scripts know no temperature: one measurement is enough.
            heats = suite.temperatures[:1] if policy in ("random", "expert") else suite.temperatures
            n_seeds = option(config, "seeds")
            seeds = tuple(suite.seeds[0] + i for i in range(n_seeds)) if n_seeds else suite.seeds
            found += [Case(suite, temperature, seed) for temperature in heats for seed in seeds]
    return found or [Case(None)]


def check_options(config: pytest.Config) -> None:
    """Check, after collection, that every suite that was asked for exists, and that there is a place for results.

    Raises:
        UsageError: one does not, a number is below 1, or there is nothing to resume.
    """
    known = session_of(config).known
    for name in ("episodes", "seeds"):
        if (given := option(config, name)) is not None and given < 1:
            raise pytest.UsageError(f"expected a number of {name} of at least 1, got {given}; raise --{name}")
    for wanted in option(config, "suite") or ():
        if not any(fits(name, wanted) for name in known):
            raise pytest.UsageError(str(no_such_suite(wanted, known)))
    if known:
        out(config)


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """The value of the fixture ``prover_suite``."""

    case: Case
    request: Any

    @property
    def suite(self) -> SuiteConfig:
        """The manifest."""
        assert self.case.suite is not None, "tests without a suite are skipped or deselected"
        return self.case.suite

    def run(self) -> Evaluation:
        """Measure; whatever the score, that is a result. What cannot be measured makes the test fail."""
        try:
            return self._measure(self.request.config)
        except ProverError as error:
            problem = f"{type(error).__name__}: {error}"
        pytest.fail(problem, pytrace=False)

    def _measure(self, config: pytest.Config) -> Evaluation:
        who = self._contender(config)
        path = out(config) / results.file_name(self.suite.suite, who, self.case.temperature, self.case.seed)
        plan = self._plan(config)
        with progress(config, f"{self.suite.suite} {who.name}") as watch:
            result = measurement.run(
                plan,
                who,
                temperature=self.case.temperature,
                seed=self.case.seed,
                path=path,
                resume=bool(option(config, "resume")),
                allow_leak=bool(option(config, "allow_leak")),
                keep_turns=bool(option(config, "turns")),
                watch=watch,
            )
        self.request.node.user_properties.append((PROPERTY, str(path)))
        return result

    def _contender(self, config: pytest.Config) -> Contender:
        session = session_of(config)
        if session.contender is None:
            session.contender = contender(option(config, "policy") or "default")
        return session.contender

    def _plan(self, config: pytest.Config) -> measurement.Plan:
        plans = session_of(config).plans
        if self.suite.digest not in plans:
            try:
                plans[self.suite.digest] = measurement.plan_of_suite(self.suite, option(config, "episodes"))
            except ProverError as error:
                plans[self.suite.digest] = error
        found = plans[self.suite.digest]
        if isinstance(found, ProverError):
            raise found
        return found


def option(config: pytest.Config, name: str) -> Any:
    """An option of the plugin; None where it was not given."""
    return config.getoption(f"prover_{name}", None)


def out(config: pytest.Config) -> Path:
    """Folder of the results, the same in all processes of a run.

    Raises:
        UsageError: there is nothing to resume.
    """
    if (shared := getattr(config, "workerinput", {}).get("prover_out")) is not None:
        return Path(shared)
    if config.option.prover_out is None:
        runs = config.invocation_params.dir / "runs"
        if option(config, "resume"):
            begun = sorted(runs.glob("bench-*"))
            if not begun:
                raise pytest.UsageError(f"expected a run to resume in {runs}, found none; name it with --out")
            config.option.prover_out = str(begun[-1])
        else:
            config.option.prover_out = str(runs / time.strftime("bench-%Y%m%d-%H%M%S"))
    return Path(config.option.prover_out)


@contextmanager
def progress(config: pytest.Config, label: str) -> Iterator[measurement.Watch]:
    """A bar on the terminal, where there is one; as long as it stands, nothing is captured."""
    reporter, capture = (config.pluginmanager.get_plugin(name) for name in ("terminalreporter", "capturemanager"))
    if reporter is None or capture is None or not reporter.isatty:
        with report.progress(label, Console(file=StringIO())) as watch:
            yield watch
        return
    with capture.global_and_fixture_disabled():
        reporter.ensure_newline()
        with report.progress(label, Console()) as watch:
            yield watch


def summary_lines(config: pytest.Config, paths: list[str]) -> Iterator[str]:
    """The table at the end of a run."""
    written = StringIO()
    shown = Console(file=written, width=max(120, config.get_terminal_writer().fullwidth))
    if paths:
        try:
            found = results.gathered(Evaluation.load(Path(path)) for path in paths)
        except DataError as error:  # Two manifests of one name; each result is on disk.
            shown.print(f"no table: {error}", markup=False, highlight=False)
        else:
            report.print_all(report.summary(found), shown)
    yield from written.getvalue().rstrip().splitlines()
    folder = config.option.prover_out
    if folder and Path(folder).is_dir():
        yield f"Results with every episode: {folder}"
        if any(Path(folder).glob("*.partial.jsonl")):
            yield f"Some measurements did not end; --resume --out {folder} goes on with them."
