"""Which tasks an update trains on."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.errors import DataError
from prover.records import Task
from prover.tasks import TaskStream


def stream(size: int, seed: int = 0) -> TaskStream:
    """A stream over the tasks 0.. ."""
    return TaskStream(tasks=tuple(Task(id=str(i), split="train") for i in range(size)), seed=seed)


def ids(found: list[Task]) -> list[str]:
    """Their ids."""
    return [task.id for task in found]


@given(size=st.integers(1, 12), n=st.integers(1, 15), epochs=st.integers(1, 3), seed=st.integers(0, 2**40))
def test_every_epoch_has_every_task_once(size: int, n: int, epochs: int, seed: int) -> None:
    """Whatever number is drawn per update, each stretch of ``size`` tasks is a permutation of all."""
    steps = -(-size * epochs // n)
    drawn = [task for step in range(steps) for task in ids(stream(size, seed).draw(step, n))]
    for epoch in range(epochs):
        assert sorted(drawn[epoch * size : (epoch + 1) * size], key=int) == [str(i) for i in range(size)]


@given(step=st.integers(0, 1000), n=st.integers(0, 15))
def test_a_draw_depends_on_seed_and_step_alone(step: int, n: int) -> None:
    """It makes no difference what was drawn before."""
    used = stream(7)
    for earlier in range(min(step, 5)):
        used.draw(earlier, n)
    assert used.draw(step, n) == stream(7).draw(step, n)
    assert len(used.draw(step, n)) == n


def test_a_resumed_run_goes_on_where_it_stopped() -> None:
    """Of tasks 0..9, two per step: after step 3 come the two that an unbroken run has next, and none comes twice."""
    unbroken = [ids(stream(10).draw(step, 2)) for step in range(10)]
    assert [ids(stream(10).draw(step, 2)) for step in range(3, 10)] == unbroken[3:]
    # Saved at the end of an epoch, the second epoch has all five steps.
    assert Counter(task for pair in unbroken[5:] for task in pair) == Counter(str(i) for i in range(10))


def test_orders_differ_between_seeds_and_epochs() -> None:
    """The order is drawn, not the listed one, and drawn anew each epoch."""
    listed = [str(i) for i in range(20)]
    orders = [ids(stream(20, seed).draw(epoch, 20)) for seed in range(2) for epoch in range(2)]
    assert len({tuple(order) for order in [listed, *orders]}) == 5


def test_there_must_be_tasks() -> None:
    """An empty split is refused before anything is drawn."""
    with pytest.raises(DataError, match="at least one task to train on"):
        stream(0)
