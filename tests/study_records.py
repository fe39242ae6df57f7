"""Hand-made records of a study."""

from prover.study.record import Record


def run(
    method: str,
    seed: int,
    after: float,
    *,
    start: str = "one",
    success: tuple[float, ...] = (0.2, 0.4),
    turns: tuple[int, ...] = (10, 10),
) -> Record:
    """A run of two updates."""
    return Record(
        start=start,
        method=method,
        seed=seed,
        success_U=success,
        turns_U=turns,
        tokens_U=(30, 50),
        cpu_U=(1.0, 2.0),
        measured=0,
        credited=0,
        mean_delta=None,
        before={},
        after={"1": after},
        episodes=600,
    )
