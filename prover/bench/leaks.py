"""The leak check: tasks that are tested on must not occur among those that are trained on, by id or by text.

Ids are compared in full. Texts are those of an environment's optional ``goal(task)``, for every task, or else opening
observations, which cost a reset each: of every tested task, and of at most ``OPENINGS`` training tasks, spread evenly
over all of them. Case and runs of blanks do not matter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prover.errors import ConfigError, DataError, EnvError, ProverError
from prover.protocols import TextEnv

OPENINGS = 1000
"""Most training tasks that are opened for their texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What a tested split shares with the splits that are trained on."""

    tested: str
    trained_on: tuple[str, ...]
    ids: tuple[str, ...]
    """Ids in both."""
    texts: tuple[str, ...]
    """Tested tasks under ids of their own whose text is that of a training task."""
    compared: int
    """Training tasks whose texts were looked at."""

    def __bool__(self) -> bool:
        return bool(self.ids or self.texts)

    @property
    def text(self) -> str:
        """What is shared, in words."""
        shown = ", ".join(repr(task) for task in (self.ids + self.texts)[:3])
        count = f"{len(self.ids)} ids and {len(self.texts)} texts"
        return f"split {self.tested!r} shares {count} with {', '.join(map(repr, self.trained_on))}: {shown}"


def overlap(env: TextEnv, tested: Sequence[str], split: str, trained_on: Sequence[str]) -> Overlap:
    """Compare tasks with those of the splits that are trained on.

    Args:
        env: environment; it is reset where it has no ``goal(task)``.
        tested: ids of the tasks that are tested on.
        split: their split.
        trained_on: other splits.

    Raises:
        ConfigError: the environment cannot list one of them.
        EnvError: it cannot tell the text of a task.
    """
    text = _text_of(env)
    trained = list(dict.fromkeys(task for name in trained_on for task in _listed(env, name)))
    known = set(trained)
    ids = tuple(task for task in tested if task in known)
    if trained and not hasattr(env, "goal"):
        trained = trained[:: max(1, -(-len(trained) // OPENINGS))]
    seen = {text(task) for task in trained}
    texts = tuple(task for task in tested if task not in known and text(task) in seen) if seen else ()
    return Overlap(tested=split, trained_on=tuple(trained_on), ids=ids, texts=texts, compared=len(trained))


def refuse(found: Overlap, *, allowed: bool) -> str | None:
    """Stop at a leaked split unless it is allowed; what is to be marked on the result then.

    Raises:
        DataError: something is shared, and that is not allowed.
    """
    if not found:
        return None
    if not allowed:
        raise DataError(
            f"expected held-out tasks, got a leaked split: {found.text}; leave these out of one of the splits, or "
            "measure with --allow-leak, which marks the result"
        )
    return found.text


def _listed(env: TextEnv, split: str) -> Sequence[str]:
    try:
        return env.tasks(split)
    except ProverError:
        raise
    except Exception as error:
        raise ConfigError(
            f"expected a split whose tasks can be listed for the leak check, got {split!r}: {type(error).__name__}: "
            f"{error}; check `trained_on` of the suite, or env.split of the config"
        ) from error


def _text_of(env: TextEnv) -> Callable[[str], str]:
    """A task's text as it is compared."""
    goal: Callable[[str], Any] | None = getattr(env, "goal", None)

    def text(task: str) -> str:
        try:
            said = goal(task) if goal is not None else env.reset(seed=0, options={"task": task})[0]
        except ProverError:
            raise
        except Exception as error:
            raise EnvError(
                f"expected the text of task {task!r} for the leak check, got {type(error).__name__}: {error}; mend the "
                "environment, or leave the task out of its split"
            ) from error
        return " ".join(str(said).casefold().split())

    return text
