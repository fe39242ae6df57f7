"""Which tasks an update trains on."""

from collections.abc import Sequence
from dataclasses import dataclass

from prover.errors import DataError
from prover.records import Task
from prover.seeds import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStream:
    """Every task once per epoch, in an order drawn from the seed and the epoch.

    What update ``step`` trains on follows from the seed and the step alone, so a resumed run goes on where it stopped.

    >>> stream = TaskStream(tasks=tuple(Task(id=str(i), split="train") for i in range(4)), seed=0)
    >>> sorted(task.id for step in range(2) for task in stream.draw(step, 2))
    ['0', '1', '2', '3']
    """

    tasks: tuple[Task, ...]
    seed: int

    def __post_init__(self) -> None:
        if not self.tasks:
            raise DataError("expected at least one task to train on, got none; check env.split and env.tasks")

    def draw(self, step: int, n: int) -> list[Task]:
        """The ``n`` tasks of 0-based update ``step``; an update may reach into the next epoch."""
        size = len(self.tasks)
        first = step * n
        orders: dict[int, Sequence[int]] = {}
        chosen = []
        for position in range(first, first + n):
            epoch, place = divmod(position, size)
            if epoch not in orders:
                orders[epoch] = generator(self.seed, epoch).permutation(size).tolist()
            chosen.append(self.tasks[orders[epoch][place]])
        return chosen
