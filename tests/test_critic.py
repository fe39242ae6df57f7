"""The critic: a linear head on hidden states, and what becomes of its differences."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from episodes import TASK, played
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.torch import load_file

from prover import checkpoint
from prover.config import AdvantageConfig, load_config
from prover.critic import Critic, Head, centred, quality
from prover.protocols import TrainablePolicy
from prover.records import Group, TokenRow, Trajectory, Turn
from prover.train import TrainResult, train


class IdReader:
    """A policy whose hidden state at a place is the id there."""

    def features(
        self, ids: Sequence[NDArray[np.int64]], places: Sequence[Sequence[int]], *, batch: int
    ) -> NDArray[np.float32]:
        found = [float(row[place]) for row, mine in zip(ids, places, strict=True) for place in mine]
        return np.array(found, dtype=np.float32)[:, None]


POLICY = cast("TrainablePolicy", IdReader())


def row(ids: list[int], turns: list[int]) -> TokenRow:
    """A row whose tokens belong to these turns; -1 for the environment's."""
    of_token = np.array(turns)
    return TokenRow(
        ids=np.array(ids),
        turn_of_token=of_token,
        loss_mask=of_token >= 0,
        logprobs=np.zeros(len(ids)),
        support=(None,) * len(ids),
    )


def run(success: bool, prompts: list[int], *rows: TokenRow) -> Trajectory:
    """A trajectory whose turns were sampled after so many ids of their rows."""
    turns = tuple(Turn(text="", action="", result="", reward=0.0, prompt_length=n) for n in prompts)
    return played(turns, success, rows=rows)


def batch(*runs: Trajectory) -> list[Group]:
    """One group."""
    return [Group(index=0, task=TASK, trajectories=runs)]


def critic(window: int = 8) -> Critic:
    """One of weight 2 and ridge 1."""
    made = Critic.of(AdvantageConfig(critic_weight=2.0, critic_ridge=1.0, critic_window=window), batch=4)
    assert made is not None
    return made


# States 3 and 1 ended in a success and a failure: the mean is 2, the variance 1, the covariance with the outcome .5, so
# with ridge 1 the slope is .5 / (1 + 1) and V(x) = .5 + .25 (x - 2).
LEARNT = batch(run(True, [1], row([3, 9], [-1, 0])), run(False, [1], row([1, 9], [-1, 0])))
# V before its turns: .5, 1 and .75; it succeeds: steps .5, -.25 and .25. One, two and one tokens: they add up to .25.
SCORED = run(True, [1, 3, 6], row([2, 9, 4, 9, 9, 3, 9], [-1, 0, -1, 1, 1, -1, 2]))


def test_a_head_on_two_features() -> None:
    """Four states on a square: variances 1 and 1, covariances .5 and 0, mean .5; ridge 1 halves the slope."""
    features = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    head = Head.fit(features, np.array([1.0, 1.0, 0.0, 0.0]), ridge=1.0)
    assert head.weights_H.tolist() == pytest.approx([0.25, 0.0])
    assert head.values(features).tolist() == pytest.approx([0.75, 0.75, 0.25, 0.25])


def test_a_head_on_unequal_features() -> None:
    """Variances 4 and 0, so the unit of the penalty is 2: slope (2 x .5) / (4 + .5 x 2) = .2 on one, 0 on the other."""
    head = Head.fit(np.array([[2.0, 7.0], [-2.0, 7.0]]), np.array([1.0, 0.0]), ridge=0.5)
    assert head.weights_H.tolist() == pytest.approx([0.2, 0.0])
    assert head.values(np.array([[1.0, 8.0]])).tolist() == pytest.approx([0.7])


def test_states_that_are_all_alike_have_the_mean_value() -> None:
    """Nothing to tell them apart by: V is the share of successes, everywhere."""
    head = Head.fit(np.ones((4, 3)), np.array([1.0, 0.0, 0.0, 0.0]), ridge=0.1)
    assert head.values(np.array([[1.0, 1.0, 1.0], [5.0, 0.0, 2.0]])).tolist() == [0.25, 0.25]


@given(st.floats(0.01, 100), st.integers(1, 6), st.integers(1, 12), st.integers(0, 9))
def test_the_scale_of_hidden_states_does_not_matter(scale: float, width: int, n: int, seed: int) -> None:
    """Numbers of another policy may be larger: the ridge means the same, also with more features than turns."""
    rng = np.random.default_rng(seed)
    features, outcomes = rng.normal(size=(n, width)), rng.integers(0, 2, n).astype(np.float64)
    first = Head.fit(features, outcomes, ridge=0.3).values(features)
    second = Head.fit(features * scale, outcomes, ridge=0.3).values(features * scale)
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_centring_weighs_tokens() -> None:
    """Steps .5 (one token) and -.25 (three), and 1 (one): the mean is (.5 - .75 + 1) / 5 = .15."""
    found, mean = centred([np.array([0.5, -0.25]), np.array([1.0])], [np.array([1, 3]), np.array([1])])
    assert mean == pytest.approx(0.15)
    assert [step.tolist() for step in found] == [pytest.approx([0.35, -0.4]), pytest.approx([0.85])]


def test_nothing_trained_has_no_mean() -> None:
    """Replies that were all cut leave the steps alone."""
    found, mean = centred([np.array([0.5])], [np.array([0])])
    assert (found[0].tolist(), mean) == ([0.5], 0.0)


def test_quality_by_hand() -> None:
    """Errors of .25 against deviations of .5: 1 - .25 = .75. What is off by a constant still correlates."""
    outcomes = np.array([1.0, 1.0, 0.0, 0.0])
    right = np.array([0.75, 0.75, 0.25, 0.25])
    assert quality(right, outcomes) == {"critic_r2": pytest.approx(0.75), "critic_correlation": pytest.approx(1.0)}
    # Off by 1: errors .75 twice and 1.25 twice, and the squared deviations are 1 in all.
    off = quality(right + 1.0, outcomes)
    assert off == {"critic_r2": pytest.approx(1 - 2 * 0.75**2 - 2 * 1.25**2), "critic_correlation": pytest.approx(1.0)}
    assert quality(np.full(4, 0.5), outcomes) == {"critic_r2": pytest.approx(0.0), "critic_correlation": None}
    assert quality(right, np.ones(4)) == {"critic_r2": None, "critic_correlation": None}


def test_a_turn_earns_what_it_changed_in_value() -> None:
    """Three turns, the outcome standing for V after the last; less the mean of four tokens, .0625; doubled."""
    mine = critic()
    steps, told = mine.see(LEARNT, POLICY)
    assert steps == []
    assert told == {"critic_r2": None, "critic_correlation": None, "critic_mean": None}
    steps, told = mine.see(batch(SCORED), POLICY)
    assert [step.tolist() for step in steps] == [pytest.approx([0.875, -0.625, 0.375])]
    assert told["critic_mean"] == pytest.approx(0.0625)
    assert told["critic_r2"] is None  # One outcome varies not at all.


def test_a_failure_ends_in_0() -> None:
    """From V .75 to 0 with one turn, and from V .25 to 1: -.75 and .75 per token, and the mean of both is 0."""
    mine = critic()
    mine.see(LEARNT, POLICY)
    steps, told = mine.see(batch(run(False, [1], row([3, 9], [-1, 0])), run(True, [1], row([1, 9], [-1, 0]))), POLICY)
    assert [step.tolist() for step in steps] == [pytest.approx([-1.5]), pytest.approx([1.5])]
    # V has it the wrong way round: errors .75, deviations .5.
    assert told["critic_r2"] == pytest.approx(1 - 2 * 0.75**2 / 0.5)
    assert told["critic_correlation"] == pytest.approx(-1.0)


def test_a_row_for_each_turn_is_read_alike() -> None:
    """In window mode every turn has a row, and its state is the last id of the prompt of that row."""
    mine, rows = critic(), (row([8, 2, 9], [-1, -1, 0]), row([4, 9, 9], [-1, 1, 1]), row([7, 7, 3, 9], [-1, -1, -1, 2]))
    mine.see(LEARNT, POLICY)
    steps, _ = mine.see(batch(run(True, [2, 1, 3], *rows)), POLICY)
    assert [step.tolist() for step in steps] == [pytest.approx([0.875, -0.625, 0.375])]


def test_a_batch_is_scored_before_it_is_learnt_from() -> None:
    """The same batch scores alike whether the window forgets or not, until it is in the window itself."""
    short, long = critic(window=1), critic(window=2)
    for mine in (short, long):
        mine.see(LEARNT, POLICY)
        mine.see(batch(SCORED), POLICY)
    assert [len(mine.window) for mine in (short, long)] == [1, 2]
    # Short knows SCORED alone, all of which succeeded: V is 1 everywhere, and only the outcome differs from it.
    steps, _ = short.see(LEARNT, POLICY)
    assert [step.tolist() for step in steps] == [pytest.approx([1.0]), pytest.approx([-1.0])]


def test_what_is_known_is_handed_on() -> None:
    """A critic that recalls another one's arrays scores alike, bit for bit, and forgets in the same order."""
    first, second = critic(window=2), critic(window=2)
    for groups in (batch(SCORED), LEARNT):
        first.see(groups, POLICY)
    second.recall(first.arrays())
    for groups in (batch(SCORED, *LEARNT[0].trajectories), LEARNT, batch(SCORED)):
        mine, others = (one.see(groups, POLICY) for one in (first, second))
        assert [step.tolist() for step in mine[0]] == [step.tolist() for step in others[0]]
        assert mine[1] == others[1]


def test_a_weight_of_0_makes_none() -> None:
    """And then nothing is computed."""
    assert Critic.of(AdvantageConfig(), batch=1) is None


def trained(
    folder: Path, policy: Path, method: str, updates: int, *overrides: str, resume: bool = False
) -> TrainResult:
    """A run on LineEnv that takes a second."""
    words = ["env.kind=line", f"policy.path={policy}", f"method={method}", "rollout.groups=3", "rollout.group_size=4"]
    words += [
        "rollout.max_turns=8",
        "optim.lr=0.003",
        "optim.microbatch=4",
        f"optim.updates={updates}",
        f"run={folder}",
    ]
    words += ["evaluation.episodes=1", "evaluation.temperatures=[1.0]", *overrides]
    return train(load_config(None, words), resume=resume)


def weights(result: TrainResult) -> dict[str, torch.Tensor]:
    """Weights of the run's last checkpoint."""
    return load_file(checkpoint.complete(result.folder.checkpoints)[-1].path / "model.safetensors")


def same(first: TrainResult, second: TrainResult) -> bool:
    """Whether both runs ended in the same weights, bit for bit."""
    mine, others = weights(first), weights(second)
    return mine.keys() == others.keys() and all(torch.equal(mine[name], others[name]) for name in mine)


def metrics(result: TrainResult) -> list[dict[str, Any]]:
    """Lines of the run's metrics file, without the seconds."""
    lines = [json.loads(line) for line in (result.folder.path / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("cpu_seconds", "wall_seconds")} for line in lines]


def test_the_first_update_is_plain_grpo(line_policy: Path, tmp_path: Path) -> None:
    """With nothing to learn from yet the weights are those of GRPO bit for bit; a second update differs."""
    for updates in (1, 2):
        grpo = trained(tmp_path / f"grpo-{updates}", line_policy, "grpo", updates)
        mine = trained(tmp_path / f"mine-{updates}", line_policy, "critic_td", updates)
        assert same(grpo, mine) == (updates == 1)
    assert not (checkpoint.complete(grpo.folder.checkpoints)[-1].path / "arrays.safetensors").exists()
    assert not any("critic" in key for line in metrics(grpo) for key in line)


@pytest.mark.parametrize("mode", ["append", "window"])
def test_a_resumed_critic_equals_an_unbroken_one(line_policy: Path, tmp_path: Path, mode: str) -> None:
    """Stopped after two of four updates, the run ends in the same weights and metrics: the critic forgot nothing."""
    rules = (f"transcript.mode={mode}", "advantage.critic_window=2")
    whole = trained(tmp_path / "whole", line_policy, "critic_td", 4, *rules)
    trained(tmp_path / "halves", line_policy, "critic_td", 2, *rules)
    halves = trained(tmp_path / "halves", line_policy, "critic_td", 4, *rules, resume=True)
    assert same(whole, halves)
    assert metrics(whole) == metrics(halves)
    assert metrics(whole)[0]["critic_r2"] is None
    assert all(line["critic_mean"] is not None for line in metrics(whole)[1:])
