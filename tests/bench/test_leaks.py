"""Splits that share tasks are found, by id and by text, and refused."""

from collections.abc import Sequence
from typing import Any

import pytest

from prover.bench import leaks
from prover.bench.leaks import OPENINGS, overlap, refuse
from prover.errors import ConfigError, DataError, EnvError
from prover.testing import LineEnv


class Numbered(LineEnv):
    """Twenty tasks with goals of their own, but for one that repeats another's in other letters."""

    def __init__(self, splits: dict[str, range], same: tuple[int, int] = (12, 3)) -> None:
        super().__init__()
        self.splits = {name: [f"task-{number}" for number in numbers] for name, numbers in splits.items()}
        self.same = {f"task-{same[0]}": f"task-{same[1]}"}
        self.opened: list[str] = []

    def tasks(self, split: str) -> Sequence[str]:
        return self.splits[split]

    def goal(self, task: str) -> str:
        return f"Buy number {self.same[task]}.".upper() if task in self.same else f"Buy  number {task}."

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        task = (options or {})["task"]
        self.opened.append(task)
        return self.goal(task), {"success": False}


class WithoutGoals(LineEnv):
    """The same, seen through openings only."""

    def __init__(self, splits: dict[str, range]) -> None:
        super().__init__()
        self.inner = Numbered(splits)

    def tasks(self, split: str) -> Sequence[str]:
        return self.inner.tasks(split)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        return self.inner.reset(seed=seed, options=options)


def test_shared_ids_are_counted() -> None:
    """Dev tasks 5 to 9 are trained on as well."""
    env = Numbered({"dev": range(5, 10), "train": range(5, 20)}, same=(99, 99))
    found = overlap(env, env.tasks("dev"), "dev", ["train"])
    assert found.ids == tuple(f"task-{number}" for number in range(5, 10))
    with pytest.raises(
        DataError, match=r"split 'dev' shares 5 ids and 0 texts with 'train': 'task-5', .* --allow-leak"
    ):
        refuse(found, allowed=False)


@pytest.mark.parametrize("make", [Numbered, WithoutGoals])
def test_shared_texts_are_found_under_other_ids(make: type[Any]) -> None:
    """Task 12 asks for the same as task 3, in capitals and with other blanks; goals and openings tell it alike."""
    env = make({"test": range(5), "dev": range(5, 10), "train": range(10, 20)})
    found = overlap(env, env.tasks("test"), "test", ["train", "dev"])
    assert (found.ids, found.texts, found.compared) == ((), ("task-3",), 15)
    with pytest.raises(DataError, match="shares 0 ids and 1 texts with 'train', 'dev': 'task-3'"):
        refuse(found, allowed=False)


def test_a_leak_that_is_allowed_is_told() -> None:
    """What is to be marked on the result says how much is shared."""
    env = Numbered({"test": range(5), "train": range(4, 20)}, same=(99, 99))
    assert refuse(overlap(env, env.tasks("test"), "test", ["train"]), allowed=True) == (
        "split 'test' shares 1 ids and 0 texts with 'train': 'task-4'"
    )


def test_held_out_tasks_pass() -> None:
    """Nothing is shared, so nothing is marked."""
    env = Numbered({"test": range(5), "train": range(5, 12)})
    assert refuse(overlap(env, env.tasks("test"), "test", ["train"]), allowed=False) is None


def test_without_training_nothing_is_opened() -> None:
    """A suite in which nothing is held out costs no reset."""
    env = WithoutGoals({"test": range(5)})
    assert not overlap(env, env.tasks("test"), "test", [])
    assert env.inner.opened == []


def test_openings_are_capped_and_goals_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 training tasks at most 4 are opened, spread over all; ids and goals are compared in full."""
    monkeypatch.setattr(leaks, "OPENINGS", 4)
    splits = {"test": range(100, 103), "train": range(20)}
    opened, told = WithoutGoals(splits), Numbered(splits)
    assert overlap(opened, opened.tasks("test"), "test", ["train"]).compared == 4
    assert opened.inner.opened[:4] == ["task-0", "task-5", "task-10", "task-15"]
    assert overlap(told, told.tasks("test"), "test", ["train"]).compared == 20
    assert OPENINGS == 1000


def test_a_split_that_cannot_be_listed_is_named() -> None:
    """Most likely it is misspelt."""
    env = Numbered({"test": range(5), "train": range(5, 12)})
    with pytest.raises(ConfigError, match=r"got 'trian': KeyError: 'trian'; check `trained_on`"):
        overlap(env, env.tasks("test"), "test", ["trian"])


def test_a_task_that_cannot_be_opened_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that fails in the check is told with the task."""
    env = WithoutGoals({"test": range(5), "train": range(5, 12)})

    def goal(task: str) -> str:
        raise RuntimeError("worn out")

    monkeypatch.setattr(env.inner, "goal", goal)
    with pytest.raises(EnvError, match="text of task 'task-5' for the leak check, got RuntimeError: worn out"):
        overlap(env, env.tasks("test"), "test", ["train"])
