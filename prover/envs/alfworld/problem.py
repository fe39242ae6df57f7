"""Problem: what the text of a PDDL problem says."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prover.errors import DataError

Expression = str | tuple["Expression", ...]
"""A PDDL expression: a lower-case symbol, or a tuple of expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The facts of a problem, all symbols in lower case as the planner reads them."""

    entities: dict[str, tuple[str, ...]]
    """Sorted ids of the entities that occur in the facts, per type; an entity in no fact is unknown to the game."""
    facts: dict[str, tuple[tuple[str, ...], ...]]
    """Arguments of the initial facts, per predicate, in the order of the text."""
    goal: Expression

    @classmethod
    def parse(cls, text: str) -> "Problem":
        """Read a PDDL problem.

        Raises:
            DataError: the text is no PDDL problem with objects, initial facts and a goal.
        """
        sections = {part[0]: part[1:] for part in _read(text)[1:] if isinstance(part, tuple) and part}
        try:
            declared, facts, (goal,) = sections[":objects"], sections[":init"], sections[":goal"]
        except (KeyError, ValueError) as error:
            raise DataError(
                f"expected a PDDL problem with (:objects ...), (:init ...) and (:goal ...), got sections "
                f"{sorted(map(str, sections))}; regenerate the game"
            ) from error
        by_predicate: dict[str, list[tuple[str, ...]]] = {}
        for predicate, *arguments in (tuple(map(str, fact)) for fact in facts):
            # Assignments such as (= (total-cost) 0) are no facts.
            if predicate != "=":
                by_predicate.setdefault(predicate, []).append(tuple(arguments))
        mentioned = {argument for rows in by_predicate.values() for row in rows for argument in row}
        by_type: dict[str, set[str]] = {}
        for name, kind in typed(declared):
            if name in mentioned:
                by_type.setdefault(kind, set()).add(name)
        return cls(
            entities={kind: tuple(sorted(names)) for kind, names in by_type.items()},
            facts={predicate: tuple(dict.fromkeys(rows)) for predicate, rows in by_predicate.items()},
            goal=goal,
        )


def typed(symbols: Iterable[Expression]) -> Iterator[tuple[str, str]]:
    """Pairs of name and type of a PDDL typed list.

    >>> list(typed(("a", "b", "-", "object", "r", "-", "receptacle")))
    [('a', 'object'), ('b', 'object'), ('r', 'receptacle')]
    """
    names: list[str] = []
    words = iter(symbols)
    for word in words:
        if word == "-":
            kind = str(next(words))
            yield from ((name, kind) for name in names)
            names = []
        else:
            names.append(str(word))


def _read(text: str) -> tuple[Expression, ...]:
    """The one s-expression of ``text``, as nested tuples."""
    stack: list[list[Expression]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text).lower()):
        if token == "(":
            stack.append([])
        elif token != ")":
            stack[-1].append(token)
        elif len(stack) > 1:
            closed = tuple(stack.pop())
            stack[-1].append(closed)
        else:
            raise DataError("expected a PDDL problem, got one bracket too many; regenerate the game")
    if len(stack) != 1 or len(stack[0]) != 1 or not isinstance(stack[0][0], tuple):
        raise DataError("expected one PDDL problem in brackets, got text with unclosed or several; regenerate the game")
    return stack[0][0]
