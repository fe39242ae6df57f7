"""Episode: all that changes while a question is being answered."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Literal, Self

from prover.errors import SnapshotError


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A search that was made, or the answer."""

    kind: Literal["search", "answer"]
    text: str
    """Query or answer."""
    passages: tuple[str, ...] = ()
    """Ids of the passages that were shown, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A state: a value, never changed. Below 10 kB as JSON in UTF-8 with the default budgets; nothing is random.

    The latest observation is kept as text, so that it comes back as it was even if the index has changed since; of
    earlier ones the trajectory has the texts, and the state the ids of their passages and what was found in them.
    """

    task: str
    """Id of the question."""
    observation: str
    """What the last ``reset`` or ``step`` answered."""
    moves: tuple[Move, ...] = ()
    """Searches, and at the end the answer. What could not be read or was not carried out is no move."""
    names: tuple[str, ...] = ()
    """Names and numbers that question and passages showed, the question's first, then the newest."""
    found: tuple[str, ...] = ()
    """Titles of supporting passages that were shown, sorted."""
    reason: str = ""
    """Why the last action was not carried out; empty if it was."""

    @property
    def searches(self) -> int:
        """Number of searches that were made."""
        return sum(move.kind == "search" for move in self.moves)

    @property
    def answer(self) -> str | None:
        """The answer; None before it was given."""
        return self.moves[-1].text if self.done else None

    @property
    def done(self) -> bool:
        """Whether the answer was given, which ends the episode."""
        return bool(self.moves) and self.moves[-1].kind == "answer"

    def key(self) -> str:
        """Hash of the state, the same in every process; whether the last action meant something is no part of it."""
        moves = [(move.kind, move.text, move.passages) for move in self.moves]
        state = repr((self.task, moves, self.names, self.found))
        return blake2b(state.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The state as a dictionary that ``json`` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The state that ``to_json`` gave, after a way through JSON.

        Raises:
            SnapshotError: it is no state.

        >>> import json
        >>> state = Episode(task="q", observation="?", moves=(Move(kind="search", text="x", passages=("7",)),))
        >>> Episode.from_json(json.loads(json.dumps(state.to_json()))) == state
        True
        """
        try:
            moves = tuple(Move(**{**move, "passages": tuple(move["passages"])}) for move in value["moves"])
            return cls(**{**value, "moves": moves, "names": tuple(value["names"]), "found": tuple(value["found"])})
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"expected a state as Episode.to_json gives it, got {value!r} ({error})") from error
