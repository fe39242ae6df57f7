"""What can be checked before torch is loaded: names, options, packages, data, the run folder."""

import importlib.util
import tempfile
from pathlib import Path

from prover import build
from prover.config import RunConfig
from prover.errors import ConfigError

_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors")


def check_config(config: RunConfig) -> None:
    """Check that all that a run is made of can be had.

    Raises:
        UnknownNameError: An environment, judge, split or task does not exist.
        ConfigError: Something cannot be imported or does not take its options, or a package is missing.
        DataError: A split has no tasks, or there is no policy at its path.
    """
    build.judge(config.judge)
    for split in dict.fromkeys((config.env.split, config.evaluation.split)):
        build.env_tasks(config.env, split)
    check_packages()
    build.policy_path(config.policy)


def check_packages() -> None:
    """Check that the packages of the extra ``train`` are installed, without loading them.

    Raises:
        ConfigError: One is missing.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise ConfigError(build.missing_package(package))


def check_run_folder(path: Path, *, resume: bool) -> None:
    """Check that a run can start in, or go on in, a folder, which is made if there is none.

    Raises:
        ConfigError: It holds a run and is not to be resumed, holds none and is, or cannot be written.
    """
    held = (path / "config.yaml").exists()
    if held and not resume:
        raise ConfigError(f"Expected a new run folder, got {path}, which holds a run. Choose another or add --resume.")
    if resume and not held:
        raise ConfigError(f"Expected a run to resume in {path}, got a folder without config.yaml. Leave out --resume.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise ConfigError(f"Expected a folder that can be written at {path}, got {error}. Choose another.") from None
