"""check_text_env: does an environment keep the contract of ``prover.protocols.TextEnv``?"""

from prover.checks.kit import check_text_env, load_factory
from prover.checks.report import Report, Result

__all__ = ["Report", "Result", "check_text_env", "load_factory"]
