"""Records of conversations."""

from prover.chat import Usage


def test_usages_add_up() -> None:
    """Tokens, calls, seconds and cost of two answers are summed."""
    one = Usage(prompt_tokens=10, completion_tokens=2, calls=1, seconds=0.5, cost=0.25)
    assert one + one == Usage(prompt_tokens=20, completion_tokens=4, calls=2, seconds=1.0, cost=0.5)
    assert (one + one).tokens == 24
