"""What a check found: one result per rule."""

from dataclasses import dataclass
from typing import Literal

from prover.errors import EnvError


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How an environment did by one rule."""

    rule: str
    status: Literal["ok", "failed", "skipped"]
    detail: str = ""
    """What was expected, what was got and what to do; or why the rule was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How an environment did by every rule."""

    env: str
    """Name of the environment."""
    results: tuple[Result, ...]

    @property
    def failures(self) -> tuple[Result, ...]:
        """The rules that were broken."""
        return tuple(result for result in self.results if result.status == "failed")

    @property
    def passed(self) -> bool:
        """Whether no rule was broken."""
        return not self.failures

    def __str__(self) -> str:
        """A line per rule, and what to do about those that were broken."""
        n = len(self.failures)
        verdict = "keeps the contract" if self.passed else f"breaks {n} rule{'s' if n > 1 else ''}"
        lines = [f"{self.env} {verdict}"]
        for result in self.results:
            detail = "\n           ".join(result.detail.splitlines())
            lines.append(f"  {result.status:7}  {result.rule}" + (f": {detail}" if detail else ""))
        return "\n".join(lines)

    def raise_if_failed(self) -> None:
        """Turn broken rules into an error.

        Raises:
            EnvError: a rule was broken; the message holds all of them.
        """
        if not self.passed:
            broken = "\n".join(f"- {result.rule}: {result.detail}" for result in self.failures)
            raise EnvError(
                f"expected {self.env} to keep the contract of TextEnv, got {len(self.failures)} broken:\n{broken}"
            )
