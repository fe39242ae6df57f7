"""Groups on disk come back as they were."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prover import group_store
from prover.errors import DataError
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.protocols import Policy, TextEnv
from prover.records import Failure, FailureCause, Group, Sampling, Task, TokenRow, Trajectory
from prover.rollout import EpisodeRules, Rollout
from prover.testing import LineEnv, ScriptedPolicy, UniformPolicy

RULES = EpisodeRules(max_turns=6, sampling=Sampling(temperature=0.7, max_tokens=16), text_format=Bare())


def played(
    policy: Policy,
    rules: EpisodeRules = RULES,
    tasks: Sequence[str] = ("start-7", "start-8"),
    size: int = 3,
    env: Callable[[], TextEnv] = LineEnv,
) -> list[Group]:
    """Groups of episodes."""

    async def play() -> list[Group]:
        async with HostPool(lambda: InlineHost(env), 4) as hosts:
            rollout = Rollout(policy=policy, hosts=hosts, rules=rules)
            return await rollout.groups([Task(id=task, split="train") for task in tasks], size, seed=5)

    return asyncio.run(play())


def back(folder: Path, groups: Sequence[Group]) -> list[Group]:
    """Groups after a way to the disk and back."""
    group_store.save(folder, 12, groups)
    (stored,) = group_store.stored(folder)
    assert stored.update == 12
    return stored.load()


def assert_same_rows(first: TokenRow, second: TokenRow) -> None:
    """All arrays are equal in value, type and shape."""
    for name in ("ids", "turn_of_token", "loss_mask", "logprobs"):
        one, other = getattr(first, name), getattr(second, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert (first.support, first.temperature) == (second.support, second.temperature)


def assert_same(first: Sequence[Group], second: Sequence[Group]) -> None:
    """All is equal but the snapshots, which are gone."""
    assert len(first) == len(second)
    for group, other in zip(first, second, strict=True):
        for field in fields(Group):
            if field.name != "trajectories":
                assert getattr(group, field.name) == getattr(other, field.name)
        for run, again in zip(group.trajectories, other.trajectories, strict=True):
            for field in fields(Trajectory):
                if field.name not in ("rows", "turns"):
                    assert getattr(run, field.name) == getattr(again, field.name), field.name
                    assert type(getattr(run, field.name)) is type(getattr(again, field.name))
            assert tuple(replace(turn, snapshot=None) for turn in run.turns) == again.turns
            assert len(run.rows) == len(again.rows)
            for row, other_row in zip(run.rows, again.rows, strict=True):
                assert_same_rows(row, other_row)


@pytest.mark.parametrize("mode", ["append", "window"])
def test_what_was_sampled_comes_back_exactly(mode: Any, tmp_path: Path) -> None:
    """Ids, masks, log-probabilities, support, prompt lengths, versions, seeds, keys: all equal, in either mode."""
    policy = UniformPolicy(version=7)
    groups = played(policy, replace(RULES, mode=mode, admissible=True, window=1))
    supports = [
        support for group in groups for run in group.trajectories for row in run.rows for support in row.support
    ]
    assert None in supports
    assert any(support is not None and len(support) > 1 for support in supports)
    assert_same(groups, back(tmp_path, groups))


def test_cut_and_odd_replies_come_back(tmp_path: Path) -> None:
    """Masked tokens, whole-vocabulary support, characters that are no UTF-8 and an unplayed last turn survive."""
    policy = ScriptedPolicy(["right", "\udc80 \n\u2028", "right " * 9], repeat=True)
    groups = played(policy, replace(RULES, end_on_cut=True, train_on_cut=False), size=2)
    rows = [row for group in groups for run in group.trajectories for row in run.rows]
    assert any((row.turn_of_token >= 0).sum() > row.loss_mask.sum() for row in rows)
    assert any(turn.truncated for group in groups for run in group.trajectories for turn in run.turns)
    assert_same(groups, back(tmp_path, groups))


def test_failures_and_empty_groups_come_back(tmp_path: Path) -> None:
    """A group whose episodes all failed is stored with its failures."""
    failure = Failure(
        cause=FailureCause.TIMEOUT, where="env.step", task="start-1", member=1, seed=2**62, turn=3, detail="Traceback"
    )
    group = Group(index=3, task=Task(id="start-1", split="train"), trajectories=(), failures=(failure,), env_seed=2**62)
    (again,) = back(tmp_path, [group])
    assert (again.index, again.env_seed, again.trajectories) == (3, 2**62, ())
    assert again.failures == (failure,)
    assert type(again.failures[0].cause) is FailureCause


def test_metrics_of_the_environment_come_back(tmp_path: Path) -> None:
    """What an environment measured besides its success is not lost."""

    class Measuring(LineEnv):
        def step(self, action: str) -> Any:
            observation, reward, terminated, truncated, info = super().step(action)
            return observation, reward, terminated, truncated, info | {"metrics": {"f1": 0.1}}

    groups = played(ScriptedPolicy(["right"], repeat=True), env=Measuring)
    assert [dict(run.metrics) for run in back(tmp_path, groups)[0].trajectories] == [{"f1": 0.1}] * 3


def test_no_snapshot_reaches_the_disk(tmp_path: Path) -> None:
    """Nothing of an environment is pickled: its states are not in the files."""

    class Secret(LineEnv):
        def snapshot(self) -> Any:
            return ("secret", super().snapshot())

    group_store.save(tmp_path, 0, played(ScriptedPolicy(["right"], repeat=True), env=Secret))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["update-000000.json", "update-000000.safetensors"]
    assert all(b"secret" not in file.read_bytes() for file in tmp_path.iterdir())


def test_an_interrupted_update_is_no_stored_one(tmp_path: Path) -> None:
    """Without the file that is written last there is nothing; saved again, the update is there."""
    groups = played(ScriptedPolicy(["right"], repeat=True))
    group_store.save(tmp_path, 3, groups)
    (tmp_path / "update-000003.json").unlink()
    assert group_store.stored(tmp_path) == []
    assert group_store.stored(tmp_path / "nowhere") == []
    assert_same(groups, back(tmp_path, groups))


@pytest.mark.parametrize("damage", ["cut", "no arrays", "format"])
def test_damaged_files_are_named(damage: str, tmp_path: Path) -> None:
    """What cannot be read is an error that says where and what to do."""
    group_store.save(tmp_path, 3, played(ScriptedPolicy(["right"], repeat=True)))
    file = tmp_path / "update-000003.json"
    if damage == "cut":
        file.write_text(file.read_text()[:100])
    elif damage == "format":
        file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 9}))
    else:
        file.with_suffix(".safetensors").unlink()
    with pytest.raises(DataError, match=r"the groups of update 3 in .*update-000003\.json(.|\n)*remove the two files"):
        group_store.stored(tmp_path)[0].load()


@pytest.mark.parametrize(
    ("checkpoints", "span", "kept"),
    [
        ([20, 40], 1, [0, 20, 40]),
        ([40], 2, [0, 1, 40, 41]),
        ([], 1, [0]),
        ([20, 40], 0, []),
        ([60], 99, [0, 1, 20, 21, 40, 41]),
    ],
)
def test_only_updates_after_kept_checkpoints_stay(
    checkpoints: list[int], span: int, kept: list[int], tmp_path: Path
) -> None:
    """Of stored updates the first ones after the start and after each kept checkpoint remain, both files of each."""
    for update in (0, 1, 20, 21, 40, 41):
        group_store.save(tmp_path, update, [])
    group_store.prune(tmp_path, checkpoints, span)
    assert [found.update for found in group_store.stored(tmp_path)] == kept
    assert len(list(tmp_path.iterdir())) == 2 * len(kept)
