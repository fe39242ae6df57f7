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


@pytest.fixture(scope="session")
def line_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny untrained policy that knows the words of LineEnv."""
    from prover.config import SftConfig
    from prover.policies.codec import HFCodec
    from prover.policies.hf import HFPolicy
    from prover.policies.words import build_word_tokenizer
    from prover.sft import new_model

    folder = tmp_path_factory.mktemp("policy")
    cells = [f"You are in cell {cell} of 0..9." for cell in range(10)]
    tokenizer = build_word_tokenizer(["left", "look", "right", "Nothing happens.", *cells])
    model = new_model(SftConfig(out=folder, hidden=32, layers=2, heads=2, kv_heads=1, intermediate=64), tokenizer)
    HFPolicy(model, HFCodec(tokenizer)).save(folder)
    return folder


@pytest.fixture(scope="session")
def stored_run(line_policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished run of three updates on LineEnv, with the groups of updates 0 and 2. Not to be changed."""
    from prover.config import load_config
    from prover.train import train

    folder = tmp_path_factory.mktemp("run")
    settings = [
        "env.kind=line",
        f"policy.path={line_policy}",
        "method=grpo",
        "rollout.groups=8",
        "rollout.group_size=4",
    ]
    settings += ["rollout.max_turns=12", "optim.updates=3", "optim.lr=0.01", "checkpoint.every=1", "checkpoint.keep=2"]
    settings += ["verify.continuations=2", "evaluation.episodes=1", "evaluation.temperatures=[1.0]", f"run={folder}"]
    train(load_config(None, settings))
    return folder


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
