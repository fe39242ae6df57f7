"""Goal: a PDDL goal, compiled once into a test of states."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prover.envs.alfworld.facts import Facts, Value
from prover.envs.alfworld.problem import Expression, typed
from prover.envs.alfworld.state import State
from prover.errors import DataError

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""ALFWorld's names of its six types of task."""

Binding = dict[str, Value]
Test = Callable[[State, Binding], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What has to be reached, and what it is about."""

    test: Callable[[State], bool]
    """Whether a state fulfils the goal."""
    task_type: str
    """One of `TASK_TYPES`; empty when the goal is like none of them."""
    object: str
    """Type of the object to bring or to look at, e.g. ``alarmclock``; empty when there is none."""
    receptacle: str
    """Type of the receptacle it must end in, e.g. ``sidetable``; empty when there is none."""
    lamp: str
    """Type of the lamp to look at it with, e.g. ``desklamp``; empty when there is none."""

    @classmethod
    def compile(cls, expression: Expression, facts: Facts) -> "Goal":
        """Compile ``and``, ``or``, ``not``, ``=``, ``exists``, ``forall`` over the predicates of the domain.

        Quantifiers range over the entities that occur in the game's facts.

        Raises:
            DataError: the goal uses another connective or predicate.
        """
        _, _, test = _compile(expression, facts)
        return cls(test=lambda state: test(state, {}), **_about(expression))


_CHANGING: dict[str, Callable[..., bool]] = {
    "atlocation": lambda state, agent, place: state.place == place,
    "objectatlocation": lambda state, thing, place: thing in state.lying[place],
    "opened": lambda state, receptacle: receptacle in state.opened,
    "inreceptacle": lambda state, thing, receptacle: thing in state.contents[receptacle],
    "holds": lambda state, agent, thing: state.held == thing,
    "holdsany": lambda state, agent: state.held is not None,
    "isclean": lambda state, thing: thing in state.clean,
    "ishot": lambda state, thing: thing in state.hot,
    "iscool": lambda state, thing: thing in state.cool,
    "issliced": lambda state, thing: thing in state.sliced,
    "istoggled": lambda state, thing: thing in state.used,
}
_FIXED = {
    *("receptacleatlocation", "receptacletype", "objecttype", "cancontain", "openable", "pickupable", "moveable"),
    *("cleanable", "heatable", "coolable", "sliceable", "toggleable", "isreceptacleobject", "inreceptacleobject"),
}


def _compile(expression: Expression, facts: Facts) -> tuple[frozenset[str], bool, Test]:
    """Free variables, whether the value can change during a game, and the test itself."""
    match expression:
        case ("and", *parts):
            return _all([_compile(part, facts) for part in parts])
        case ("or", *parts):
            return _compile(("not", ("and", *(("not", part) for part in parts))), facts)
        case ("not", part):
            free, changing, test = _compile(part, facts)
            return free, changing, lambda state, binding: not test(state, binding)
        case ("exists", tuple(), _):
            return _exists(expression, facts)
        case ("forall", tuple() as variables, part):
            return _compile(("not", ("exists", variables, ("not", part))), facts)
        case (str(predicate), *terms) if all(isinstance(term, str) for term in terms):
            return _atom(predicate, [str(term) for term in terms], facts)
    raise DataError(f"expected a PDDL goal, got {expression!r}; this engine cannot play the game")


def _all(parts: list[tuple[frozenset[str], bool, Test]]) -> tuple[frozenset[str], bool, Test]:
    tests = tuple(test for _, _, test in parts)
    return (
        frozenset().union(*(free for free, _, _ in parts)),
        any(changing for _, changing, _ in parts),
        lambda state, binding: all(test(state, binding) for test in tests),
    )


def _exists(expression: Expression, facts: Facts) -> tuple[frozenset[str], bool, Test]:
    """Nested loops over the variables; every conjunct is tested as soon as its variables are bound."""
    variables: list[tuple[str, str]] = []
    while isinstance(expression, tuple) and expression[0] == "exists":
        variables += typed(expression[1])
        expression = expression[2]
    parts = [_compile(part, facts) for part in _conjuncts(expression)]
    unbound = {name for name, _ in variables}
    guards = [part for part in parts if not part[0] & unbound]
    waiting = [part for part in parts if part[0] & unbound]
    loops: list[tuple[str, tuple[Value, ...], tuple[Test, ...]]] = []
    for name, kind in variables:
        unbound.discard(name)
        ready = [part for part in waiting if not part[0] & unbound]
        waiting = [part for part in waiting if part[0] & unbound]
        fixed = [test for free, changing, test in ready if not changing and free == {name}]
        # A fixed test of one variable needs no state: it thins out the candidates once and for all.
        candidates = tuple(
            value for value in facts.values(kind) if all(test(_NOWHERE, {name: value}) for test in fixed)
        )
        loops.append((name, candidates, tuple(test for _, _, test in ready if test not in fixed)))
    _, _, guard = _all(guards)

    def search(state: State, binding: Binding, depth: int) -> bool:
        if depth == len(loops):
            return True
        name, candidates, tests = loops[depth]
        for value in candidates:
            binding[name] = value
            if all(test(state, binding) for test in tests) and search(state, binding, depth + 1):
                return True
        return False

    free = frozenset().union(*(part[0] for part in parts)) - {name for name, _ in variables}
    return free, True, lambda state, binding: guard(state, binding) and search(state, dict(binding), 0)


_NOWHERE = State(place=-1, held=None, opened=frozenset(), contents=(), lying=())


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    if expression[0] == "and":
        for part in expression[1:]:
            yield from _conjuncts(part)
    else:
        yield expression


def _atom(predicate: str, terms: list[str], facts: Facts) -> tuple[frozenset[str], bool, Test]:
    free = frozenset(term for term in terms if term.startswith("?"))
    readers = tuple(_reader(term, facts) for term in terms)
    if predicate == "=":
        first, second = readers
        return free, False, lambda state, binding: first(binding) == second(binding)
    if predicate in _CHANGING:
        holds = _CHANGING[predicate]
        return free, True, lambda state, binding: holds(state, *(read(binding) for read in readers))
    if predicate not in _FIXED:
        raise DataError(
            f"expected a predicate of the ALFWorld domain in the goal, got {predicate!r}; "
            f"this engine cannot play the game"
        )
    rows = facts.rows(predicate)
    return free, False, lambda state, binding: tuple(read(binding) for read in readers) in rows


def _reader(term: str, facts: Facts) -> Callable[[Binding], Value]:
    if term.startswith("?"):
        return lambda binding: binding[term]
    value = facts.value(term)
    return lambda binding: value


def _about(expression: Expression) -> dict[str, str]:
    """Task type and the types of object, receptacle and lamp, read off the goal's facts."""
    atoms = list(_atoms(expression))
    predicates = {atom[0] for atom in atoms}
    lamps = {atom[1] for atom in atoms if atom[0] == "istoggled"}
    kinds = [(atom[1], atom[2].removesuffix("type")) for atom in atoms if atom[0] == "objecttype"]
    wanted = [kind for variable, kind in kinds if variable not in lamps]
    receptacles = [atom[2].removesuffix("type") for atom in atoms if atom[0] == "receptacletype"]
    two = "inreceptacle" in predicates and len(wanted) > 1
    signs = {
        "look_at_obj_in_light": "istoggled" in predicates,
        "pick_clean_then_place_in_recep": "isclean" in predicates,
        "pick_heat_then_place_in_recep": "ishot" in predicates,
        "pick_cool_then_place_in_recep": "iscool" in predicates,
        "pick_two_obj_and_place": two,
        "pick_and_place_simple": "inreceptacle" in predicates,
    }
    task_type = next((name for name, sign in signs.items() if sign), "")
    return {
        "task_type": task_type,
        "object": wanted[0] if wanted else "",
        "receptacle": receptacles[0] if receptacles else "",
        "lamp": next((kind for variable, kind in kinds if variable in lamps), ""),
    }


def _atoms(expression: Expression) -> Iterator[tuple[str, ...]]:
    if isinstance(expression, tuple) and expression:
        if all(isinstance(part, str) for part in expression):
            yield tuple(str(part) for part in expression)
        for part in expression:
            yield from _atoms(part)
