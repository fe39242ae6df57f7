"""The policy with a table."""

import asyncio
import math
from collections import Counter

import pytest

from prover.errors import ConfigError
from prover.records import Completion, Request, Sampling
from prover.testing import TabularPolicy

POLICY = TabularPolicy(["left", "right"], {"Where to?": [0.25, 0.75], "And now?": [1.0, 0.0]})


def drawn(ids: list[int], seed: int = 0) -> Completion:
    """What the policy says after these ids."""
    request = Request(ids=tuple(ids), sampling=Sampling(), seed=seed)
    return asyncio.run(POLICY.generate([request]))[0]


def test_it_draws_with_the_probabilities_of_the_row() -> None:
    """Of 400 seeds about a quarter go left, within 4 standard errors; the log-probability is that of the draw."""
    opening = POLICY.codec.opening("", "Where to?")
    said = [drawn(opening, seed) for seed in range(400)]
    counts = Counter(POLICY.codec.decode(completion.ids) for completion in said)
    assert abs(counts["left"] - 100) < 4 * math.sqrt(400 * 0.25 * 0.75)
    for completion in said[:10]:
        expected = 0.25 if POLICY.codec.decode(completion.ids) == "left" else 0.75
        assert sum(completion.logprobs) == pytest.approx(math.log(expected))


def test_the_last_observation_chooses_the_row() -> None:
    """What was said before does not matter."""
    ids = [*POLICY.codec.opening("", "Where to?"), *POLICY.codec.action("right")]
    ids += POLICY.codec.reply("And now?", closed=True)
    assert {POLICY.codec.decode(drawn(ids, seed).ids) for seed in range(20)} == {"left"}


def test_an_observation_without_a_row_is_refused() -> None:
    """The error names it."""
    with pytest.raises(ConfigError, match="'Hello'"):
        drawn(POLICY.codec.opening("", "Hello"))
