"""The pytest plugin, from outside: suites of a third party, options, failures, interruptions, other people's runs."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import prover.bench.plugin  # noqa: F401 - loaded here, or every run in this process would load numpy anew and fail

pytest_plugins = ["pytester"]

THIRD_PARTY = Path(__file__).parents[1] / "third_party"

SLOW = """
import time
from prover.testing import LineEnv

class Slow(LineEnv):
    def reset(self, **options):
        time.sleep(0.3)
        with open("started.txt", "a") as file:
            file.write(options["options"]["task"] + "\\n")
        return super().reset(**options)
"""
SUITES = """
import pytest

@pytest.mark.prover_suite(manifest="*.yaml")
def test_suite(prover_suite):
    prover_suite.run()
"""
WALK = "suite: {name}\nversion: 1\nenv: {{kind: '{env}'}}\ntrained_on: {trained}\nmax_turns: 30\n"


@pytest.fixture
def maze(tmp_path: Path) -> Path:
    """The third party's package in a folder of its own."""
    shutil.copytree(THIRD_PARTY, tmp_path / "maze")
    return tmp_path / "maze"


@pytest.fixture
def walks(tmp_path: Path) -> Path:
    """A folder with two suites of the toy walk, one whose split is leaked, and one without its environment."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "test_walks.py").write_text(SUITES)
    for name, env, trained in (
        ("walk_short", "line", "[]"),
        ("walk_slow", "slow:Slow", "[]"),
        ("leaked", "line", "[train]"),
        ("broken", "nowhere:Env", "[]"),
    ):
        (tmp_path / f"{name}.yaml").write_text(WALK.format(name=name, env=env, trained=trained))
    return tmp_path


def command(*words: str) -> list[str]:
    """A pytest run in a process of its own."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]


def run_apart(folder: Path, *words: str) -> tuple[int, str]:
    """Exit code and output of a pytest run in a process of its own.

    For errors while collecting too: showing them parses source, which in CPython 3.11 two threads cannot do at once.
    """
    done = subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, timeout=200)
    return done.returncode, done.stdout + done.stderr


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Exit code and output of a pytest run in a folder, in this process, which is faster."""

    def go(folder: Path, *words: str) -> tuple[int, str]:
        monkeypatch.chdir(folder)
        done = pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)
        return int(done.ret), done.stdout.str() + done.stderr.str()

    return go


def started(folder: Path) -> list[str]:
    """Tasks of the slow walk that were started."""
    return (folder / "started.txt").read_text().split()


def test_a_third_party_adds_a_suite_with_a_marker_and_a_manifest(maze: Path, run: Run) -> None:
    """Chance and its expert are measured, with its own metrics and task types, seeds are joined."""
    code, shown = run(maze, "maze_suite.py", "--policy", "expert", "--out", "expert", "--seeds", "2")
    assert code == 0, shown
    assert "2 passed" in shown
    (row,) = [line for line in shown.splitlines() if line.split()[:2] == ["maze", "expert"]]
    assert row.split()[2:5] == ["100.0", "[61.0,", "100.0]"]
    stored = json.loads((maze / "expert" / "maze-expert-s1.json").read_text())
    assert stored["setting"]["suite"]["version"] == 3
    assert (stored["metrics"]["doors"]["mean"], stored["by_kind"]["wide"]["n"]) == (3.0, 6)
    code, shown = run(maze, "maze_suite.py", "--policy", "random", "--episodes", "3", "--out", "random")
    assert code == 1, "the test of the third party asks for six episodes"
    assert "maze-random-s0.json" in os.listdir(maze / "random")


def test_a_leaked_suite_of_a_third_party_is_refused(maze: Path, run: Run) -> None:
    """Two of its tasks are trained on as well; allowed, the table says so."""
    manifest = (maze / "maze.yaml").read_text().replace("split: test", "split: shared")
    (maze / "maze.yaml").write_text(manifest)
    code, shown = run(maze, "maze_suite.py", "--policy", "random", "--out", "here")
    assert code == 1
    assert "DataError: expected held-out tasks, got a leaked split: split 'shared' shares 2 ids" in shown
    assert "Traceback" not in shown
    code, shown = run(maze, "maze_suite.py", "--policy", "random", "--out", "here", "--allow-leak")
    assert code == 0, shown
    assert "LEAKED SPLIT" in shown


def test_suites_are_chosen_as_tests_are(walks: Path, run: Run) -> None:
    """By family and ``-k``; what is broken or leaked fails with a message, and ``-x`` or ``--maxfail`` stop there."""
    code, shown = run(walks, "--suite", "walk", "-k", "short", "--policy", "random", "--out", "a")
    assert (code, "1 passed, 1 deselected" in shown) == (0, True), shown
    code, shown = run(walks, "--suite", "all", "--policy", "random", "--out", "b", "-x")
    assert (code, "1 failed" in shown, "There is no module 'nowhere'" in shown) == (1, True, True), shown
    code, shown = run(
        walks, "--suite", "leaked", "--suite", "broken", "--policy", "random", "--out", "c", "--maxfail=2"
    )
    assert (code, "2 failed" in shown) == (1, True), shown


def test_unknown_names_are_usage_errors(walks: Path, run: Run) -> None:
    """A suite that does not exist, with a near name; a policy that does not exist fails each measurement."""
    code, shown = run(walks, "--suite", "walk_shrot", "--policy", "random")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "did you mean 'walk_short'? there are broken, leaked, walk_short, walk_slow" in shown
    code, shown = run(walks, "--suite", "walk_short", "--policy", "rnd", "--out", "a")
    assert code == 1
    assert "expected a policy (random, expert" in shown
    code, shown = run(walks, "--suite", "walk_short", "--policy", "random", "--resume")
    assert code == pytest.ExitCode.USAGE_ERROR, shown
    assert "expected a run to resume" in shown


@pytest.mark.parametrize("option", ["episodes", "seeds"])
def test_numbers_below_one_are_usage_errors(walks: Path, run: Run, option: str) -> None:
    """They would mean the default, or nothing at all."""
    code, shown = run(walks, "--suite", "walk_short", "--policy", "random", f"--{option}", "0")
    assert code == pytest.ExitCode.USAGE_ERROR, shown
    assert f"expected a number of {option} of at least 1, got 0; raise --{option}" in shown


def test_workers_of_xdist_share_one_folder(walks: Path) -> None:
    """Measurements are spread over processes, and their results stand in one table."""
    code, shown = run_apart(walks, "--suite", "walk_short", "--policy", "random", "--seeds", "2", "-n", "2")
    assert code == 0, shown
    (folder,) = (walks / "runs").glob("bench-*")
    assert sorted(os.listdir(folder)) == [f"walk_short-random-s{seed}.json" for seed in range(2)]
    (row,) = [line for line in shown.splitlines() if line.split()[:2] == ["walk_short", "random"]]
    assert "pass@2" in row
    assert row.split()[-3:-1] == ["9", "18"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_suite_goes_on_without_repeating_a_task(walks: Path, end: signal.Signals) -> None:
    """Whether it is asked to stop or killed; one task may have been under way, no other is played twice."""
    words = ("--suite", "walk_slow", "--policy", "random")
    # Where the tests run in the background SIGINT is ignored, and a process would inherit that.
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    running = subprocess.Popen(
        command(*words), cwd=walks, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    signal.signal(signal.SIGINT, ours)
    until = time.monotonic() + 150
    while time.monotonic() < until and not ((walks / "started.txt").exists() and len(started(walks)) > 3):
        time.sleep(0.05)
    running.send_signal(end)
    shown = running.communicate(timeout=60)[0]
    n = len(started(walks))
    assert 3 < n < 9, shown
    if end is signal.SIGINT:
        assert "--resume --out" in shown
    code, shown = run_apart(walks, *words, "--resume")
    assert code == 0, shown
    assert len(started(walks)) <= 10
    assert set(started(walks)) == {f"start-{cell}" for cell in range(9)}
    (result,) = (walks / "runs").glob("bench-*/*.json")
    assert json.loads(result.read_text())["n"] == 9


def test_other_peoples_runs_are_as_they_were(tmp_path: Path) -> None:
    """Nothing of ProVer is imported, and another plugin's options of the same names work."""
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--suite')\n    parser.addoption('--resume')\n    parser.addoption('--policy')\n"
    )
    (tmp_path / "test_own.py").write_text(
        "import sys\n\ndef test_own(pytestconfig):\n"
        "    assert pytestconfig.getoption('--suite') == 'mine'\n    assert pytestconfig.getoption('--resume') == 'x'\n"
        "    assert not [name for name in sys.modules if name.partition('.')[0] == 'prover']\n"
    )
    code, shown = run_apart(tmp_path, "--suite", "mine", "--resume", "x", "--strict-markers")
    assert (code, "1 passed" in shown) == (0, True), shown


def test_marked_tests_are_skipped_where_nothing_is_asked_for(walks: Path, run: Run) -> None:
    """The reason says what to give; the options stand in the help, with names that are free."""
    code, shown = run(walks, "-rs")
    assert (code, "1 skipped" in shown) == (0, True), shown
    assert "give --suite NAME --policy POLICY" in shown
    (walks / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--out')\n")
    _, shown = run(walks, "--help")
    assert "--allow-leak" in shown
    assert "--prover-out" in shown


def test_a_marker_without_its_fixture_is_an_error(walks: Path) -> None:
    """And a manifest that is not there; both say what to do."""
    (walks / "test_walks.py").write_text(SUITES.replace("(prover_suite)", "()").replace("prover_suite.run()", "pass"))
    code, shown = run_apart(walks, "--policy", "random")
    assert (code, "takes the argument prover_suite" in shown) == (2, True), shown
    (walks / "test_walks.py").write_text(SUITES.replace("*.yaml", "none.yaml"))
    code, shown = run_apart(walks, "--policy", "random")
    assert (code, "expected a manifest none.yaml in" in shown) == (2, True), shown


def test_a_terminal_sees_a_bar_that_goes_away(walks: Path) -> None:
    """It counts episodes while they are played, although pytest captures what tests print."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    words = command("--suite", "walk_slow", "--policy", "random", "--episodes", "3", "-q")
    with subprocess.Popen(words, cwd=walks, stdout=theirs, stderr=theirs, env=environment) as running:
        os.close(theirs)
        shown = b""
        # A terminal whose other end is gone is an error on Linux, not an end of file.
        with suppress(OSError), open(ours, "rb", buffering=0) as screen:
            while part := screen.read(4096):
                shown += part
    assert running.returncode == 0, shown
    assert re.search(rb"walk_slow random .*[012]/3", shown), shown
    assert b"1 passed" in shown
