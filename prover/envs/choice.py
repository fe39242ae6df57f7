"""Which task a reset starts: shared by environments that take ``options`` of a task or a split."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from prover.errors import ConfigError


def chosen_task(
    options: Mapping[str, Any] | None, tasks: Callable[[str], Sequence[str]], split: str, rng: np.random.Generator
) -> str:
    """``options["task"]``, or a task drawn from the split ``options["split"]``.

    Args:
        options: Options of ``reset``.
        tasks: Lists the tasks of a split.
        split: Split that is drawn from where the options name none.
        rng: Draws; untouched where a task is named.

    Raises:
        ConfigError: there is another key in ``options``.
    """
    wanted = dict(options or {})
    task, named = wanted.pop("task", None), wanted.pop("split", None) or split
    if wanted:
        raise ConfigError(f"expected options 'task' and 'split', got also {sorted(wanted)}; leave them out")
    if task is not None:
        return task  # type: ignore[no-any-return]  # whatever was given; the caller knows its tasks
    listed = tasks(named)
    return listed[int(rng.integers(len(listed)))]
