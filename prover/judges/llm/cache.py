"""Judgements by what was judged, in a file: a resumed run does not pay twice, an experiment is replayed offline."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prover.chat import Answer, Ask
from prover.errors import DataError, ServiceError
from prover.records import Group, NoProposal, Proposal, Segment


def key_of(group: Group, **settings: Any) -> str:
    """What names a judgement: all texts and outcomes of a group in their order, and the settings of the judge.

    The seed is no part of it: the same group is judged once.
    """
    runs = [
        [run.success, run.opening, [[t.text, t.action, t.result, t.invalid, t.truncated] for t in run.turns]]
        for run in group.trajectories
    ]
    text = json.dumps([settings, runs], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


class JudgementCache:
    """A JSON Lines file of judgements; it is read at the first look and grows by a line with each new one.

    Args:
        path: The file; it need not exist. A line that was cut when a run was stopped is passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Proposal | NoProposal] | None = None

    def get(self, key: str) -> Proposal | NoProposal | None:
        """The stored judgement; None where there is none.

        Raises:
            DataError: the file holds something else than judgements.
        """
        if self._known is None:
            self._known = self._read()
        return self._known.get(key)

    def load(self, *, needed: bool = False) -> None:
        """Read the file now, so that a wrong one is noticed before anything is played.

        Raises:
            DataError: see ``get``, or the file is ``needed`` and not there.
        """
        if needed and not self.path.is_file():
            raise DataError(
                f"expected stored judgements in {self.path}, got no such file; set judge.cache_path to the "
                "judge_cache.jsonl of the run to replay"
            )
        self._known = self._read()

    def put(self, key: str, judgement: Proposal | NoProposal, **about: Any) -> None:
        """Store a judgement, with what else is worth knowing about it."""
        if self.get(key) is not None:
            return
        assert self._known is not None, "get() has read the file"
        self._known[key] = judgement
        kind = "proposal" if isinstance(judgement, Proposal) else "no_proposal"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A line that was cut must not swallow the next one.
        gap = "\n" if self.path.exists() and self.path.read_bytes()[-1:] not in (b"", b"\n") else ""
        with self.path.open("a", encoding="utf-8") as lines:
            lines.write(gap + json.dumps({"key": key, kind: asdict(judgement), **about}) + "\n")

    def _read(self) -> dict[str, Proposal | NoProposal]:
        known: dict[str, Proposal | NoProposal] = {}
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        except (OSError, UnicodeError) as error:
            raise DataError(
                f"expected judgements in {self.path}, got {error}; name another file as judge.cache_path"
            ) from error
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except ValueError:  # Cut when a run was stopped.
                continue
            try:
                known[record["key"]] = _judgement(record)
            except (KeyError, TypeError) as error:
                raise DataError(
                    f"expected a judgement in line {number} of {self.path}, got {error!r}; name another file as "
                    "judge.cache_path, or delete this one"
                ) from error
        return known


class Offline:
    """Stands in for the chat model where stored judgements are replayed: whatever is asked, there is no answer."""

    name = "offline"

    async def ask(self, ask: Ask) -> Answer:
        """No answer.

        Raises:
            ServiceError: always, with the cause ``not_cached``.
        """
        raise ServiceError("Expected a stored judgement of this group, got none. Set judge.cache to on.", "not_cached")

    async def aclose(self) -> None:
        """There is nothing to close."""


def _judgement(record: Mapping[str, Any]) -> Proposal | NoProposal:
    if "no_proposal" in record:
        return NoProposal(**record["no_proposal"])
    stored = record["proposal"]
    return Proposal(segment=Segment(**stored["segment"]), reason=stored["reason"], judge=stored["judge"])
