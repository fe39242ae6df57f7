"""Facts: the initial facts of a problem, with objects, receptacles and places as indices."""

from prover.envs.alfworld.problem import Problem
from prover.errors import DataError

Value = int | str
"""Index of an object, a receptacle or a place among the sorted ids of its type; the id itself of anything else."""

INDEXED = ("object", "receptacle", "location")
"""The types whose entities are indexed."""


class Facts:
    """Read-only lookup of facts; predicates are in lower case."""

    def __init__(self, problem: Problem) -> None:
        self._entities = problem.entities
        self._index = {id_: index for kind in INDEXED for index, id_ in enumerate(problem.entities.get(kind, ()))}
        self._rows = {
            predicate: frozenset(tuple(self.value(argument) for argument in row) for row in rows)
            for predicate, rows in problem.facts.items()
        }

    def ids(self, kind: str) -> tuple[str, ...]:
        """Sorted ids of the entities of a type."""
        return self._entities.get(kind, ())

    def values(self, kind: str) -> tuple[Value, ...]:
        """All entities of a type."""
        return tuple(self.value(id_) for id_ in self.ids(kind))

    def value(self, id_: str) -> Value:
        """The entity of an id."""
        return self._index.get(id_, id_)

    def rows(self, predicate: str) -> frozenset[tuple[Value, ...]]:
        """Arguments of every fact of a predicate."""
        return self._rows.get(predicate, frozenset())

    def has(self, predicate: str, *arguments: Value) -> bool:
        """Whether a fact holds."""
        return arguments in self.rows(predicate)

    def indices(self, predicate: str) -> tuple[tuple[int, ...], ...]:
        """Sorted arguments of the facts of a predicate that speaks of indexed entities only.

        Raises:
            DataError: a fact speaks of something else.
        """
        rows = []
        for row in self.rows(predicate):
            if not all(isinstance(value, int) for value in row):
                raise DataError(
                    f"expected {predicate} of declared {', '.join(INDEXED)}, got {row}; regenerate the game"
                )
            rows.append(tuple(int(value) for value in row))
        return tuple(sorted(rows))

    def one(self, predicate: str, index: int, id_: str) -> Value | None:
        """The second argument of the fact of a predicate about the entity ``index``; None where there is no such fact.

        Raises:
            DataError: there are several.
        """
        found = [row[1] for row in self.rows(predicate) if row[0] == index]
        if len(found) > 1:
            raise DataError(f"expected one {predicate} of {id_}, got {len(found)}; this engine cannot play the game")
        return found[0] if found else None
