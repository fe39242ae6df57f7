"""SemanticGrader: asks a chat model whether the answers of an evaluation mean the same as the right ones."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import structlog

from prover.backend_config import LocalBackendConfig
from prover.backends.build import open_backend
from prover.backends.ledger import LedgerBackend
from prover.chat import Ask, Usage
from prover.env_config import SemanticConfig
from prover.envs.searchqa import opinion
from prover.envs.searchqa.outcome import Outcome
from prover.errors import DataError, ServiceError
from prover.records import Trajectory
from prover.seeds import derive

_log = structlog.get_logger(__name__)

_OPERATION = {"concurrency", "deadline_s", "budget_tokens", "budget_cost", "key_env", "timeout_s", "retries"}
_OPERATION |= {"price_prompt", "price_reply"}
"""Keys of a backend that do not decide what it answers."""


class SemanticGrader:
    """Adds ``semantic``, 1 or 0, to the metrics of episodes, and ``semantic_unanswered``; see ``Grader``.

    An exact match means the same, and an episode without an answer has none that does; nobody is asked. Where the model
    gives no opinion, ``semantic`` is missing and ``semantic_unanswered`` is 1.

    Args:
        config: The chat model and what it may take.
        folder: Where opinions are kept, in ``semantic.jsonl``: none is asked for twice.
        outcome_of: What an episode was asked and answered.
    """

    def __init__(
        self, config: SemanticConfig, folder: Path, outcome_of: Callable[[Trajectory], Outcome | None]
    ) -> None:
        self._config = config
        self._outcome_of = outcome_of
        self._identity = config.backend.model_dump_json(exclude=_OPERATION)
        self._opinions = Opinions(folder / "semantic.jsonl")
        self._backend: LedgerBackend | None = None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._warned = False

    @property
    def about(self) -> dict[str, Any]:
        """See ``Grader.about``."""
        backend = self._config.backend
        return {
            "figures": ["semantic", "semantic_unanswered"],
            "model": getattr(backend, "model", None) or getattr(backend, "path", None) or backend.kind,
            "prompt": opinion.VERSION,
            "fingerprint": blake2b(self._identity.encode(), digest_size=8).hexdigest(),
        }

    def check(self) -> None:
        """See ``Grader.check``.

        Raises:
            ConfigError: a key of the service or a package is missing.
            DataError: there is no model in the folder, or the file of opinions holds something else.
        """
        self._opinions.read()
        backend = self._config.backend
        if not isinstance(backend, LocalBackendConfig):
            self._opened()
        elif not (Path(str(backend.path)) / "config.json").is_file():
            raise DataError(
                f"expected the folder of a model at env.semantic.backend.path, got {backend.path}; name another"
            )

    async def grade(self, run: Trajectory) -> dict[str, float]:
        """See ``Grader.grade``."""
        outcome = self._outcome_of(run)
        exact = run.metrics["em"] == 1
        same = exact if exact or outcome is None else await self._same(outcome)
        unanswered = {"semantic_unanswered": float(same is None)}
        return unanswered if same is None else {"semantic": float(same)} | unanswered

    def stats(self) -> dict[str, float]:
        """See ``Grader.stats``."""
        return {} if self._backend is None else self._backend.ledger.snapshot()

    async def aclose(self) -> None:
        """Close the backend."""
        if self._backend is not None:
            await self._backend.aclose()

    def _opened(self) -> LedgerBackend:
        if self._backend is None:
            self._backend = open_backend(self._config.backend, spent=self._opinions.spent())
        return self._backend

    async def _same(self, outcome: Outcome) -> bool | None:
        """The opinion on an answer; None where there is none."""
        key = opinion.key_of(outcome, self._identity)
        # Of equal answers in flight one is asked about, the others wait for it.
        async with self._locks.setdefault(key, asyncio.Lock()):
            if (known := self._opinions.get(key)) is not None:
                return known
            same, why, usage = await self._ask(outcome, key)
            self._opinions.put(key, same, usage, outcome)
        if same is None and not self._warned:
            self._warned = True
            _log.warning("no opinion on an answer; the episode has no figure semantic and is counted", because=why)
        return same

    async def _ask(self, outcome: Outcome, key: str) -> tuple[bool | None, str, Usage]:
        """The opinion, why there is none, and what it took."""
        messages, usage, said = opinion.conversation(outcome, key), Usage(), ""
        for attempt in range(1 + self._config.repairs):
            ask = Ask(
                messages=tuple(messages),
                schema=opinion.SCHEMA,
                max_tokens=self._config.reply_tokens,
                seed=derive(int(key, 16), 1, attempt),
            )
            try:
                answer = await self._opened().ask(ask)
            except ServiceError as error:
                return None, str(error), usage
            usage, said = usage + answer.usage, answer.text
            if (same := opinion.read(said)) is not None:
                return same, "", usage
            messages += opinion.repair(said)
        return None, f"the model said {said[:200]!r}", usage


class Opinions:
    """A JSON Lines file of opinions, which grows by a line with each; one that was cut is passed over.

    Where there was no opinion, a line keeps what asking for it cost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[Mapping[str, Any]] | None = None
        self._known: dict[str, bool] = {}

    def get(self, key: str) -> bool | None:
        """The opinion; None where there is none."""
        self.read()
        return self._known.get(key)

    def spent(self) -> Usage:
        """What all of them took."""
        return sum((Usage(**line["usage"]) for line in self.read()), Usage())

    def put(self, key: str, same: bool | None, usage: Usage, outcome: Outcome) -> None:
        """Keep an opinion, with what it is on."""
        lines = self.read()
        line = {"key": key, "same": same, "usage": asdict(usage), **asdict(outcome)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A line that was cut must not swallow the next one.
        gap = "\n" if self.path.exists() and self.path.read_bytes()[-1:] not in (b"", b"\n") else ""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(gap + json.dumps(line) + "\n")
        lines.append(line)
        if same is not None:
            self._known[key] = same

    def read(self) -> list[Mapping[str, Any]]:
        """All lines; the file is read once.

        Raises:
            DataError: it holds something else.
        """
        if self._lines is not None:
            return self._lines
        lines: list[Mapping[str, Any]] = []
        texts = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        for number, text in enumerate(texts, start=1):
            try:
                line = json.loads(text)
            except ValueError:  # Cut when a run was stopped.
                continue
            try:
                key, same = str(line["key"]), line["same"]
                Usage(**line["usage"])
            except (KeyError, TypeError) as error:
                raise DataError(
                    f"expected an opinion in line {number} of {self.path}, got {error!r}; move the file away"
                ) from error
            lines.append(line)
            if isinstance(same, bool):
                self._known[key] = same
        self._lines = lines
        return lines
