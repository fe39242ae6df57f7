"""One batch of a tiny policy."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from prover import build, stage
from prover.branch import Branch
from prover.config import RunConfig, load_config
from prover.diagnosis.book import Batch
from prover.diagnosis.probe import Probe, recording
from prover.diagnosis.rules import Rules
from prover.diagnosis.survey import FIRST
from prover.errors import SnapshotError
from prover.judges.every_turn import EveryTurnJudge
from prover.judges.random_segment import RandomJudge
from prover.protocols import Judge
from prover.records import Group, NoProposal, Trajectory
from prover.tasks import TaskStream
from prover.update import PolicyUpdate


class Silent:
    """A judge whose service is down."""

    name = "silent"

    async def propose(self, group: Group, *, seed: int) -> NoProposal:
        return NoProposal(reason="judge_timeout")


SELECTORS: dict[str, Judge] = {"random_segment": RandomJudge(), "silent": Silent()}

RULES = Rules(selectors=tuple(SELECTORS), judge="random_segment", continuations=6, eligible_max=3)


def config(policy: Path, *overrides: str) -> RunConfig:
    """Eight groups of four on LineEnv."""
    settings = ["env.kind=line", f"policy.path={policy}", "rollout.groups=8", "rollout.group_size=4"]
    settings += ["rollout.max_turns=12", "verify.continuations=6", "judge.kind=random_segment"]
    return load_config(None, [*settings, *overrides])


def made(
    policy: Path, *overrides: str, number: int = 0, selectors: dict[str, Judge] = SELECTORS
) -> tuple[Batch, NDArray[np.float32]]:
    """A batch with its gradients."""
    settings = config(policy, *overrides)

    async def play() -> tuple[Batch, NDArray[np.float32]]:
        player: Any = build.policy(settings.policy)
        async with stage.host_pool(settings) as hosts:
            probe = Probe(
                config=settings,
                policy=player,
                rollout=recording(stage.rollout(settings, player, hosts)),
                selectors=selectors,
                rules=replace(RULES, selectors=tuple(selectors), continuations=settings.verify.continuations),
                stream=TaskStream(tasks=stage.tasks(settings.env, "train"), seed=0),
                update=PolicyUpdate(player.model, settings.optim, horizon=160),
            )
            return await probe.batch(number)

    return asyncio.run(play())


@pytest.fixture(scope="module")
def batch(line_policy: Path) -> tuple[Batch, NDArray[np.float32]]:
    """One to look at."""
    return made(line_policy)


def test_a_batch_tells_what_was_sampled(batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """Groups with one to three successes are eligible and surveyed; each is asked about once by each selector."""
    found, _ = batch
    assert found.sizes == (4,) * 8
    assert found.eligible == tuple(i for i, n in enumerate(found.successes) if 1 <= n <= 3)
    assert found.eligible
    assert [course.group for course in found.courses] == [*found.eligible]
    assert found.chosen == len(found.courses)
    assert found.unmeasured == ()
    assert [one.group for one in found.named if one.selector == "silent"] == [*found.eligible]
    assert {one.outcome for one in found.named if one.selector == "silent"} == {"no_proposal:judge_timeout"}
    assert found.cpu_seconds > 0


def test_gradients_are_there_for_every_part(batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """GRPO moves the policy; a silent judge's credit is nothing."""
    found, gradients = batch
    names = RULES.parts()
    assert gradients.shape[0] == len(names)
    assert np.linalg.norm(gradients[0]) > 0
    assert not gradients[names.index("silent")].any()
    assert set(found.costs) == set(names)
    assert found.costs["silent"] == found.costs["grpo"] == 0


def test_costs_are_those_of_the_states_between(batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """A random turn takes the continuations of its two states, every turn those of all states of the successes."""
    found, _ = batch
    runs = {(course.group, course.trajectory): course.passes[FIRST] for course in found.courses}
    named = [(one.group, one.segment) for one in found.named if one.segment is not None]
    ends = [(group, s.trajectory, turn) for group, s in named for turn in (s.start, s.end + 1)]
    assert found.costs["random_segment"] == sum(runs[group, index][turn].turns for group, index, turn in ends)
    assert found.costs["every turn"] == sum(state.turns for states in runs.values() for state in states)
    assert found.costs["as configured"] == found.costs["random_segment, signed"] == found.costs["random_segment"]
    outcomes = [runs[group, index][turn].outcomes for group, index, turn in ends]
    assert found.costs["random_segment, continuations 2"] == sum(one.turns for pair in outcomes for one in pair[:2])
    assert found.costs["train_continuations"] == found.costs["random_segment"]


def test_continuations_have_a_gradient(batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """What was played from states with two outcomes is trained on beside the rollouts."""
    _, gradients = batch
    assert np.abs(gradients[RULES.parts().index("train_continuations")]).max() > 0


def test_the_configured_rule_is_its_selector_at_lambda_1(batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """The preset `prover` gives gains at lambda 1."""
    _, gradients = batch
    names = RULES.parts()
    mine, same = (gradients[names.index(name)] for name in ("as configured", "random_segment"))
    assert np.abs(mine).max() > 0
    assert np.array_equal(mine, same)


def test_lambda_scales_a_rule(line_policy: Path, batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """A run with lambda 4 has four times the part of lambda 1, by its own forward and backward pass."""
    _, gradients = batch
    _, heavy = made(line_policy, "credit.weight=4.0")
    mine = RULES.parts().index("as configured")
    assert np.abs(gradients[mine]).max() > 0
    np.testing.assert_allclose(heavy[mine], 4 * gradients[mine], rtol=1e-3, atol=1e-6)


def test_configured_training_on_continuations(line_policy: Path, batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """Its part is that of the credits and that of the continuations, by one forward and backward pass of both."""
    _, gradients = batch
    _, both = made(line_policy, "verify.train_continuations=true")
    names = RULES.parts()
    summed = gradients[names.index("random_segment")] + gradients[names.index("train_continuations")]
    np.testing.assert_allclose(both[names.index("as configured")], summed, rtol=1e-3, atol=1e-6)


def test_a_batch_is_a_function_of_its_number(line_policy: Path, batch: tuple[Batch, NDArray[np.float32]]) -> None:
    """Made again it is the same; another number has other episodes."""
    again, other = made(line_policy)[0], made(line_policy, number=1)[0]
    assert (again.courses, again.named, again.turns) == (batch[0].courses, batch[0].named, batch[0].turns)
    assert (other.tasks, other.courses) != (again.tasks, again.courses)


def test_runs_beyond_the_chosen_ones_are_surveyed_if_named(line_policy: Path) -> None:
    """A judge that names turns of all successes has them measured; chosen ones come first."""
    found, _ = made(line_policy, selectors={"random_segment": RandomJudge(), "all": EveryTurnJudge(of="successes")})
    successes = sum(found.successes[group] for group in found.eligible)
    assert len(found.courses) == successes > found.chosen == len(found.eligible)
    turns = sum(course.n_turns for course in found.courses)
    assert len([one for one in found.named if one.selector == "all" and one.segment is not None]) == turns


def test_a_method_without_a_judge_is_probed_as_well(line_policy: Path) -> None:
    """States are recorded though GRPO needs none, and the config's judge is asked what it would have named."""
    found, gradients = made(line_policy, "method=grpo")
    assert any(one.segment is not None for one in found.named)
    assert found.costs["as configured"] == 0
    assert not gradients[-1].any()


def test_successes_whose_states_do_not_come_back_are_counted(
    line_policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left out with their reason, nothing is credited, and GRPO's gradient is there all the same."""

    def refuse(self: Branch, trajectory: Trajectory, turn: int) -> None:
        raise SnapshotError("the state is gone")

    monkeypatch.setattr(Branch, "check", refuse)
    found, gradients = made(line_policy)
    assert found.unmeasured == ("the state is gone",) * len(found.eligible)
    assert (found.courses, found.chosen) == ((), 0)
    assert {one.outcome for one in found.named if one.selector == "random_segment"} == {"verifier_failed"}
    assert np.abs(gradients[0]).max() > 0
    names = RULES.parts()
    assert {name for name, one in zip(names, gradients, strict=True) if one.any()} == {
        *("grpo", "gigpo", "advantage.std ddof1")
    }
