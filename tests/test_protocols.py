"""What the parts ask of each other, and that the shipped ones answer to it."""

from typing import Any

import pytest

from prover.branch import Branch
from prover.formats import Bare
from prover.host import HostPool, InlineHost
from prover.judges.random_segment import RandomJudge
from prover.protocols import Codec, Judge, Policy, TextEnv, TrainablePolicy, Verifier
from prover.records import Sampling
from prover.replay import ReplayEnv
from prover.rollout import EpisodeRules, Rollout
from prover.testing import CoinEnv, LineEnv, ScriptedJudge, ScriptedPolicy, ToyCodec, UniformPolicy
from prover.verify import MonteCarloVerifier


def verifier() -> MonteCarloVerifier:
    """One with two continuations per arm."""
    rules = EpisodeRules(max_turns=1, sampling=Sampling(), text_format=Bare())
    hosts = HostPool(lambda: InlineHost(LineEnv), 1)
    return MonteCarloVerifier(
        branch=Branch(rollout=Rollout(policy=ScriptedPolicy([]), hosts=hosts, rules=rules)), continuations=2
    )


@pytest.mark.parametrize(
    ("part", "protocol"),
    [
        (LineEnv(), TextEnv),
        (CoinEnv(), TextEnv),
        (ReplayEnv(LineEnv()), TextEnv),
        (ToyCodec(), Codec),
        (ScriptedPolicy([]), Policy),
        (UniformPolicy(), Policy),
        (ScriptedJudge([]), Judge),
        (RandomJudge(), Judge),
        (verifier(), Verifier),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_shipped_parts_keep_the_protocols(part: Any, protocol: Any) -> None:
    """They have every method and attribute that is asked for, without inheriting from the protocol."""
    assert isinstance(part, protocol)
    assert protocol not in type(part).__mro__


@pytest.mark.parametrize("protocol", [TextEnv, Codec, Policy, TrainablePolicy, Judge, Verifier])
def test_other_objects_do_not_pass(protocol: Any) -> None:
    """An object without the methods is told apart."""
    assert not isinstance(object(), protocol)


def test_policies_without_weights_are_not_trainable() -> None:
    """Training asks for more than sampling does."""
    assert not isinstance(ScriptedPolicy([]), TrainablePolicy)
