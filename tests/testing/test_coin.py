"""CoinEnv: success by the environment's own RNG."""

import pytest

from prover.errors import ConfigError, EnvError, SnapshotError, UnknownNameError
from prover.protocols import TextEnv
from prover.testing import CoinEnv


def test_it_keeps_the_protocol() -> None:
    """It is a TextEnv with one task."""
    assert isinstance(CoinEnv(), TextEnv)
    assert list(CoinEnv().tasks("train")) == ["coin"]


def test_half_of_the_boxes_open() -> None:
    """Over 400 seeds, heads come within four standard errors (0.1) of one half."""
    env = CoinEnv()
    heads = 0.0
    for seed in range(400):
        env.reset(seed=seed)
        _, reward, terminated, truncated, info = env.step("open")
        assert (terminated, truncated, info["success"]) == (True, False, reward == 1.0)
        heads += reward
    assert 0.4 < heads / 400 < 0.6


@pytest.mark.parametrize(("p", "reward"), [(0.0, 0.0), (1.0, 1.0)])
def test_certain_coins(p: float, reward: float) -> None:
    """With p = 0 no box opens, with p = 1 every one."""
    env = CoinEnv(p=p)
    for seed in range(20):
        env.reset(seed=seed)
        assert env.step("open")[1] == reward


def test_anything_else_gives_up() -> None:
    """Another action ends the episode with 0."""
    env = CoinEnv(p=1.0)
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step("")
    assert (observation, reward, terminated) == ("The box stays shut for good.", 0.0, True)
    assert (info["success"], info["invalid_action"], info["admissible_actions"]) == (False, True, [])
    with pytest.raises(EnvError, match="after it"):
        env.step("open")


def test_the_coin_decides_at_the_last_turn() -> None:
    """With three turns, two of them change nothing but the count."""
    env = CoinEnv(turns=3, p=1.0)
    env.reset(seed=0)
    assert [env.step("open")[:3] for _ in range(3)] == [
        ("The lid moves. (1 of 3)", 0.0, False),
        ("The lid moves. (2 of 3)", 0.0, False),
        ("The box is open.", 1.0, True),
    ]


def test_restore_brings_the_rng_back_and_reseed_replaces_it() -> None:
    """64 continuations are all equal after restore alone, and mixed with a fresh seed each, repeatably."""
    env = CoinEnv(turns=2)
    env.reset(seed=0)
    env.step("open")
    snapshot = env.snapshot()

    def rewards(*, fresh: bool) -> list[float]:
        found = []
        for seed in range(64):
            env.restore(snapshot)
            if fresh:
                env.reseed(seed)
            found.append(env.step("open")[1])
        return found

    assert len(set(rewards(fresh=False))) == 1
    assert 0.3 < sum(rewards(fresh=True)) / 64 < 0.7
    assert rewards(fresh=True) == rewards(fresh=True)


def test_misuse_is_told() -> None:
    """Unknown names, foreign snapshots, senseless options and calls before reset are errors of their kind."""
    with pytest.raises(UnknownNameError, match="dice"):
        CoinEnv().reset(options={"task": "dice"})
    with pytest.raises(UnknownNameError, match="nowhere"):
        CoinEnv().tasks("nowhere")
    with pytest.raises(SnapshotError, match="got tuple"):
        CoinEnv().restore(())  # type: ignore[arg-type]  # the misuse
    with pytest.raises(EnvError, match="neither"):
        CoinEnv().snapshot()
    with pytest.raises(ConfigError, match="turns=0"):
        CoinEnv(turns=0)
