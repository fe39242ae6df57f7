"""What can be checked before torch is loaded: names, options, packages, data."""

import importlib.util
import tempfile
from pathlib import Path

from prover import build
from prover.backend_config import LocalBackendConfig
from prover.config import RunConfig
from prover.env_config import EnvConfig
from prover.errors import ConfigError, DataError
from prover.judge_config import JudgeConfig, LLMJudgeConfig

_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors")


def check_config(config: RunConfig) -> None:
    """Check that all that a run is made of can be had.

    Raises:
        UnknownNameError: An environment, judge, split or task does not exist.
        ConfigError: Something cannot be imported or does not take its options, or a package is missing.
        DataError: A split has no tasks, or there is no policy or judge's model at its path.
        ServiceError: A service that the environment needs does not answer.
    """
    _check_judge(config.judge, config.env)
    for split in dict.fromkeys((config.env.split, config.evaluation.split)):
        build.env_tasks(config.env, split)
    check_packages()
    build.policy_path(config.policy)
    with tempfile.TemporaryDirectory() as empty:
        build.env_grader(config.env, Path(empty))
    build.probe_env(config.env)


def _check_judge(config: JudgeConfig, env: EnvConfig) -> None:
    """Check that a judge can be had; a model in this process is only looked for, since loading it takes torch."""
    if not isinstance(config, LLMJudgeConfig) or not isinstance(config.backend, LocalBackendConfig):
        build.judge(config, env=env)
    elif config.backend.path is not None and not (Path(config.backend.path) / "config.json").is_file():
        raise DataError(
            f"Expected the folder of a model at judge.backend.path, got {config.backend.path}. Name another, or leave "
            "it out to ask the policy itself."
        )


def check_new_policy(path: Path) -> None:
    """Check that a new policy can be written to a folder.

    Raises:
        ConfigError: It holds a model already, or cannot be written.
    """
    if (path / "config.json").exists():
        raise ConfigError(f"Expected a new folder for the policy, got {path}, which holds a model. Set another `out`.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise ConfigError(
            f"Expected a folder that can be written at {path}, got {error}. Set another `out`."
        ) from error


def check_packages() -> None:
    """Check that the packages of the extra ``train`` are installed, without loading them.

    Raises:
        ConfigError: One is missing.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise ConfigError(build.missing_package(package))
