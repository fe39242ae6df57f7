"""Tests of prover.advantages."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.advantages import (
    batch_advantages,
    discounted_returns,
    gigpo_advantages,
    gigpo_step_advantages,
    group_advantages,
    group_scale,
    has_contrast,
    segment_credit,
    token_advantages,
    vineppo_advantages,
)
from prover.errors import ConfigError, NumericsError, TokenError
from prover.estimates import jeffreys_difference, rate_difference
from prover.records import Credit, Segment

TURNS = np.array([-1, 0, 0, -1, 1, 1, -1, 2])


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, Any]:
    """Ground truth that was computed apart from this project."""
    return json.loads((shared / "vectors" / "algorithm_vectors.json").read_text())


def credit(start: int, end: int, amount: float) -> Credit:
    """A credit of trajectory 0."""
    return Credit(segment=Segment(trajectory=0, start=start, end=end), amount=amount)


def test_group_vectors(vectors: dict[str, Any]) -> None:
    """Mean-only, both standard deviations and leave-one-out agree with the vectors."""
    for case in vectors["group_advantages"]:
        rewards, eps = case["rewards"], case["eps"]
        close = {"rtol": 0, "atol": 1e-9}
        np.testing.assert_allclose(group_advantages(rewards), case["adv_mean_only"], **close)
        np.testing.assert_allclose(group_advantages(rewards, std="ddof0", eps=eps), case["adv_std_ddof0"], **close)
        np.testing.assert_allclose(group_advantages(rewards, std="ddof1", eps=eps), case["adv_std_ddof1"], **close)
        np.testing.assert_allclose(group_advantages(rewards, baseline="rloo"), case["adv_rloo"], **close)
        assert has_contrast(rewards) == case["mixed_outcome"]


def test_batch_vectors(vectors: dict[str, Any]) -> None:
    """Both REINFORCE++ normalisations agree with the vectors."""
    case = vectors["batch_normalised"]
    flat = np.concatenate(batch_advantages(case["groups"], baseline="batch", eps=case["eps"]))
    np.testing.assert_allclose(flat, case["reinforcepp_global_mean_std_ddof0"], atol=1e-9)
    flat = np.concatenate(batch_advantages(case["groups"], baseline="group", eps=case["eps"]))
    np.testing.assert_allclose(flat, case["reinforcepp_baseline_group_mean_then_batch_std_ddof0"], atol=1e-9)


def test_credit_vectors(vectors: dict[str, Any]) -> None:
    """All four bonus rules agree with the vectors, for arms of unequal size as well."""
    for case in vectors["segment_estimates"]:
        counts = case["pre_successes"], case["k_pre"], case["post_successes"], case["k_post"]
        delta, se = rate_difference(*counts).delta, jeffreys_difference(*counts).se
        weight = case["lambda"]
        assert segment_credit(delta, weight=weight) == pytest.approx(case["bonus_positive_only"], abs=1e-9)
        assert segment_credit(delta, weight=weight, sign="signed") == pytest.approx(case["bonus_signed"], abs=1e-9)
        z = segment_credit(delta, weight=weight, se=se, min_z=1)
        assert z == pytest.approx(case["bonus_if_delta_gt_1se_jeffreys"], abs=1e-9)
        lcb = segment_credit(delta, weight=weight, se=se, lcb=0.5)
        assert lcb == pytest.approx(case["bonus_lcb_half_se"], abs=1e-9)


def test_token_vectors(vectors: dict[str, Any]) -> None:
    """Credit lands on the trained tokens of its turns only, with any weight and both signs."""
    case = vectors["token_advantages"]
    turns, mask = np.array(case["turn_of_token"]), np.array(case["loss_mask"], dtype=bool)
    bases = group_advantages(case["group_rewards"])
    assert bases[1] == case["failed_trajectory_advantage"]

    def with_credit(pre: list[int], post: list[int], **options: Any) -> list[float]:
        amount = segment_credit(rate_difference(*pre, *post).delta, **options)
        return token_advantages(float(bases[0]), turns, mask, [credit(*case["segment"], amount)]).tolist()

    pre, post = case["pre"], case["post"]
    assert with_credit(pre, post) == case["advantages"]
    assert with_credit(pre, post, weight=4.0) == case["advantages_lambda4"]
    negative = case["advantages_if_delta_negative"]
    assert with_credit(negative["pre"], negative["post"]) == negative["positive_only"]
    assert with_credit(negative["pre"], negative["post"], sign="signed") == negative["signed"]


def test_gigpo_vectors(vectors: dict[str, Any]) -> None:
    """Returns, step advantages and totals agree with the vectors, with and without standard deviation."""
    case = vectors["gigpo"]
    for rewards, returns in zip(case["step_rewards"], case["returns"], strict=True):
        np.testing.assert_allclose(discounted_returns(rewards, case["gamma"]), returns, atol=1e-9)
    for name, std in (("mean_norm", "none"), ("mean_std_norm", "ddof1")):
        options: dict[str, Any] = {"gamma": case["gamma"], "std": std, "eps": case["eps"]}
        steps = gigpo_step_advantages(case["states"], case["step_rewards"], **options)
        np.testing.assert_allclose(steps, case[name]["step_adv"], atol=1e-9)
        total = gigpo_advantages(case["states"], case["step_rewards"], omega=case["omega"], **options)
        np.testing.assert_allclose(total, case[name]["total_adv"], atol=1e-9)


def test_vineppo_vectors(vectors: dict[str, Any]) -> None:
    """Step advantages agree with the vectors and telescope to the outcome less the first value."""
    case = vectors["vineppo_steps"]
    steps = vineppo_advantages(case["values_at_turn_starts"], case["terminal_reward"], gamma=case["gamma"])
    np.testing.assert_allclose(steps, case["step_adv"], atol=1e-12)
    assert steps.sum() == pytest.approx(case["sum_equals_R_minus_V0"])


def test_group_by_hand() -> None:
    """One success of four: 3/4 and -1/4, over its std 1/2, or against the mean of the others."""
    assert group_advantages([1, 0, 0, 0]).tolist() == [0.75, -0.25, -0.25, -0.25]
    assert group_advantages([1, 0, 0, 0], std="ddof1", eps=0).tolist() == [1.5, -0.5, -0.5, -0.5]
    np.testing.assert_allclose(group_advantages([1, 0, 0, 0], baseline="rloo"), [1, -1 / 3, -1 / 3, -1 / 3])


@pytest.mark.parametrize("rewards", [[1] * 4, [0] * 4, [0.35] * 7, np.full(7, 0.35, np.float32), [0.35, 0.35 + 9e-7]])
@pytest.mark.parametrize("std", ["none", "ddof0", "ddof1"])
def test_no_contrast_is_zero(rewards: Any, std: Any) -> None:
    """Equal rewards give exactly 0, even where rounding leaves a standard deviation and eps is 0."""
    assert not group_advantages(rewards, std=std, eps=0).any()
    assert not group_advantages(rewards, std=std, eps=0, baseline="rloo").any()
    assert group_scale(rewards, std=std, eps=0) == 1.0
    assert not has_contrast(rewards)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_odd_reward(dtype: Any) -> None:
    """Seven equal rewards and one 0 keep sane sizes in single precision as well."""
    rewards = np.array([0.35] * 7 + [0.0], dtype=dtype)
    expected = [0.3533] * 7 + [-2.4729]
    np.testing.assert_allclose(group_advantages(rewards, std="ddof1", eps=1e-4), expected, atol=5e-5)
    assert group_advantages(rewards, baseline="rloo")[-1] == pytest.approx(-0.35, abs=1e-6)


def test_small_groups() -> None:
    """A group of one, or none, has advantage 0; one that lost a member is centred on those that are left."""
    assert group_advantages([1.0]).tolist() == [0.0]
    assert group_advantages([1.0], baseline="rloo", std="ddof1").tolist() == [0.0]
    assert group_advantages([]).tolist() == []
    left = group_advantages([1, 0, 0], std="ddof1", eps=1e-4)
    np.testing.assert_allclose(left, [1.1545, -0.5773, -0.5773], atol=5e-5)


def test_trajectories_not_rows() -> None:
    """Statistics are over the four trajectories: +-0.866, however many turns each had."""
    np.testing.assert_allclose(group_advantages([1, 0, 0, 1], std="ddof1"), [0.866, -0.866, -0.866, 0.866], atol=5e-4)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=16), st.randoms(use_true_random=False))
def test_group_invariants(rewards: list[float], random: Any) -> None:
    """Advantages sum to 0, are finite and follow their member under any order."""
    order = list(range(len(rewards)))
    random.shuffle(order)
    for baseline in ("mean", "rloo"):
        for std in ("none", "ddof1"):
            values = group_advantages(rewards, std=std, baseline=baseline)  # type: ignore[arg-type]  # loop over literals
            assert np.isfinite(values).all()
            assert abs(values.sum()) < 1e-6 * max(1.0, np.abs(values).sum())
            moved = group_advantages([rewards[i] for i in order], std=std, baseline=baseline)  # type: ignore[arg-type]  # same
            np.testing.assert_allclose(moved, values[order], rtol=1e-6, atol=1e-8)


def test_group_refuses() -> None:
    """Rank, finiteness and options are checked, and the message names what is wrong."""
    with pytest.raises(ConfigError, match="rewards_G of rank 1, got shape \\(1, 2\\)"):
        group_advantages([[1.0, 0.0]])
    with pytest.raises(NumericsError, match="finite rewards_G"):
        group_advantages([1.0, float("nan")])
    with pytest.raises(ConfigError, match="baseline"):
        group_advantages([1.0, 0.0], baseline="median")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ConfigError, match="std"):
        group_advantages([1.0, 0.0], std="ddof2")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ConfigError, match="baseline"):
        batch_advantages([[1.0, 0.0]], baseline="mean")  # type: ignore[arg-type]  # on purpose


def test_batch_without_contrast() -> None:
    """A batch in which nothing differs gives zeros, and an empty one nothing."""
    assert [values.tolist() for values in batch_advantages([[1, 1], [1, 1]], baseline="batch", eps=0)] == [[0, 0]] * 2
    assert batch_advantages([]) == []


def test_credit_options() -> None:
    """Thresholds keep or drop the whole amount, the lower bound shrinks it, and the scale divides it."""
    assert segment_credit(0.25) == 0.25
    assert segment_credit(0.25, weight=8.0) == 2.0
    assert segment_credit(0.25, weight=0.0) == 0.0
    assert segment_credit(0.25, scale=0.5) == 0.5
    assert segment_credit(0.25, min_delta=0.25) == 0.25
    assert segment_credit(0.25, min_delta=0.26) == 0.0
    assert segment_credit(0.25, se=0.25, min_z=1) == 0.0
    assert segment_credit(0.25, se=0.2, lcb=1.0) == pytest.approx(0.05)
    assert segment_credit(0.25, se=1.0, lcb=1.0) == 0.0
    assert segment_credit(0.25, probability=0.8, tau=0.9) == 0.0
    assert segment_credit(0.25, probability=0.95, tau=0.9) == 0.25
    assert segment_credit(float("nan"), sign="signed") == 0.0


def test_credit_signed_options() -> None:
    """Reliability rules treat harm as they treat help: by its size and by the probability of its own sign."""
    assert segment_credit(-0.25, sign="signed", se=0.3, min_z=1) == 0.0
    assert segment_credit(-0.25, sign="signed", se=0.2, lcb=1.0) == pytest.approx(-0.05)
    assert segment_credit(-0.25, sign="signed", probability=0.05, tau=0.9) == -0.25
    assert segment_credit(-0.25, sign="signed", probability=0.3, tau=0.9) == 0.0


@given(st.floats(-1, 1), st.floats(0, 64), st.floats(0, 1), st.floats(0, 2))
def test_credit_is_bounded(delta: float, weight: float, se: float, lcb: float) -> None:
    """No rule pays more than lambda, or with another sign than the difference has."""
    amount = segment_credit(delta, weight=weight, sign="signed", se=se, lcb=lcb)
    assert abs(amount) <= weight
    assert amount * delta >= 0


def test_credit_refuses() -> None:
    """An unknown sign and a scale of 0 are refused."""
    with pytest.raises(ConfigError, match="positive"):
        segment_credit(0.5, sign="negative")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ConfigError, match="scale"):
        segment_credit(0.5, scale=0.0)


def test_tokens_by_hand() -> None:
    """Observation tokens stay 0 inside a segment, overlapping credits add up, untrained replies stay 0."""
    mask = TURNS >= 0
    mask[5] = False
    values = token_advantages(-0.5, TURNS, mask, [credit(0, 1, 1.0), credit(1, 1, 0.25)])
    assert values.tolist() == [0, 0.5, 0.5, 0, 0.75, 0, 0, -0.5]


def test_tokens_without_credit_are_grpo() -> None:
    """Without credits, and with a credit of 0, the advantages are the base bit for bit."""
    base = float(group_advantages([1, 0, 0])[0])
    plain = token_advantages(base, TURNS, TURNS >= 0)
    assert plain.tolist() == [base if turn >= 0 else 0.0 for turn in TURNS]
    assert token_advantages(base, TURNS, TURNS >= 0, [credit(0, 2, 0.0)]).tobytes() == plain.tobytes()


def test_tokens_per_turn() -> None:
    """A base per turn is spread over the turn's tokens."""
    values = token_advantages(np.array([1.0, 2.0, 3.0]), TURNS, TURNS >= 0, [credit(2, 2, 0.5)])
    assert values.tolist() == [0, 1, 1, 0, 2, 2, 0, 3.5]


def test_tokens_refuse() -> None:
    """Unequal shapes, trained tokens of no turn, and turns that the base does not cover are refused."""
    with pytest.raises(TokenError, match="one shape"):
        token_advantages(1.0, TURNS, np.ones(3, bool))
    with pytest.raises(TokenError, match="trained tokens of turns"):
        token_advantages(1.0, TURNS, np.ones(8, bool))
    with pytest.raises(TokenError, match="shape \\(2,\\)"):
        token_advantages(np.array([1.0, 2.0]), TURNS, TURNS >= 0)
    with pytest.raises(TokenError, match="shape \\(1, 3\\)"):
        token_advantages(np.ones((1, 3)), TURNS, TURNS >= 0)


def test_returns_count_policy_tokens_only() -> None:
    """A masked place does not count as time and does not end the signal: 0.5 and 1, with gamma 0.5."""
    assert discounted_returns([0, 0, 1], 0.5, [1, 0, 1]).tolist() == [0.5, 0.0, 1.0]
    assert discounted_returns([0, 1, 0], 0.5, [1, 0, 1]).tolist() == [0.5, 0.0, 0.0]
    with pytest.raises(ConfigError, match="mask of shape"):
        discounted_returns([0, 1], 0.5, [1])


def test_gigpo_by_hand() -> None:
    """A state that both visit is centred; states visited once stay 0; lengths may differ."""
    steps = gigpo_step_advantages([["a", "b"], ["a"]], [[0, 1.0], [0.0]], gamma=0.5)
    assert [step.tolist() for step in steps] == [[0.25, 0.0], [-0.25]]
    with pytest.raises(ConfigError, match="one state per reward"):
        gigpo_step_advantages([["a"]], [[0.0, 1.0]])


def test_vineppo_by_hand() -> None:
    """A step earns the change of value, the last one what is still missing to the outcome."""
    assert vineppo_advantages([0.25, 0.75], 0.0).tolist() == [0.5, -0.75]
    assert vineppo_advantages([0.5, 0.5], 1.0, gamma=0.5).tolist() == [-0.25, 0.5]
    assert vineppo_advantages([], 1.0).tolist() == []
