"""The scripted shopper."""

from pathlib import Path

import pytest

from prover.envs.webshop import WebShopEnv
from prover.errors import EnvError
from prover.seeds import generator


def play(env: WebShopEnv, task: str, seed: int, noise: float = 0.0, max_turns: int = 15) -> tuple[float, int]:
    """Reward and turns of one episode, with a share of random steps."""
    rng = generator(seed)
    observation, info = env.reset(options={"task": task})
    player = env.expert(seed)
    for turn in range(max_turns):
        action = player.act(observation, info)
        if rng.random() < noise:
            choices = [choice for choice in info["admissible_actions"] if choice != "click[buy now]"]
            action = choices[int(rng.integers(len(choices)))]
        observation, reward, done, _, info = env.step(action)
        assert not info["invalid_action"], action
        if done:
            return reward, turn + 1
    return 0.0, max_turns


def test_buys_what_is_wanted() -> None:
    """It reaches every goal of the made-up shop that can be reached, in a few turns."""
    env = WebShopEnv(reward="value_match")
    played = [play(env, task, seed) for seed, task in enumerate(env.tasks("test"))]
    assert {reward for reward, _ in played} == {1.0}
    assert sum(turns for _, turns in played) / len(played) < 6


def test_other_hands() -> None:
    """It carries on from what random steps leave behind."""
    env = WebShopEnv(reward="value_match")
    played = [play(env, task, seed, noise=0.3, max_turns=40) for seed, task in enumerate(env.tasks("test"))]
    assert {reward for reward, _ in played} == {1.0}


def test_the_most_specific_search_comes_first() -> None:
    """Three times in four it begins with the longest search, and now and then with any other."""
    env = WebShopEnv()
    first, longest = [], []
    for seed, task in enumerate(env.tasks("train")[:80]):
        observation, info = env.reset(options={"task": task})
        longest.append(max(info["admissible_actions"], key=len))
        first.append(env.expert(seed).act(observation, info))
    assert 0.7 < sum(a == b for a, b in zip(first, longest, strict=True)) / 80 < 0.95


def test_same_seed_same_moves() -> None:
    """Its moves follow from the seed."""
    env = WebShopEnv()
    task = env.tasks("train")[0]
    assert [play(env, task, seed) for seed in (5, 5)] == [play(env, task, 5)] * 2


def test_before_an_episode() -> None:
    """There is nobody to play."""
    with pytest.raises(EnvError, match=r"before expert\(\)"):
        WebShopEnv().expert(0)


def test_public_goals(folder: Path) -> None:
    """On WebShop's own products it succeeds in more than nine of ten goals, and always buys something."""
    env = WebShopEnv(data=str(folder), reward="value_match")
    played = [play(env, task, seed) for seed, task in enumerate(env.tasks("test")[:100])]
    assert sum(reward == 1.0 for reward, _ in played) > 90
