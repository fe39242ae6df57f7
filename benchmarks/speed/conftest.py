"""How ratios are taken and shown: two ways of doing the same work take turns, in CPU time of this process."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

_ROUNDS = 3
_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times faster something is than its reference."""

    what: str
    than: str
    seconds: float
    reference: float
    floor: float

    @property
    def times(self) -> float:
        """Reference over ours."""
        return self.reference / self.seconds


_RATIOS = pytest.StashKey[list[Ratio]]()

Faster = Callable[..., None]


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.fixture
def faster(pytestconfig: pytest.Config) -> Faster:
    """Compares a piece of work with its reference and fails below ``floor``, which leaves room for a busy machine.

    The least time of several rounds counts; a ratio below the floor is measured again before it is believed.
    """

    def check(
        what: str,
        ours: Callable[[], object],
        reference: Callable[[], object],
        *,
        than: str,
        floor: float,
        scale: float = 1.0,
    ) -> None:
        best = [float("inf"), float("inf")]
        for _ in range(_ATTEMPTS):
            for _ in range(_ROUNDS):
                best = [min(known, cpu_seconds(work)) for known, work in zip(best, (ours, reference), strict=True)]
            found = Ratio(what, than, best[0], best[1] * scale, floor)
            if found.times >= floor:
                break
        pytestconfig.stash.setdefault(_RATIOS, []).append(found)
        assert found.times >= floor, (
            f"{what}: expected at least {floor:g} times the speed of {than}, got {found.times:.2g} "
            f"({found.seconds:.4f} against {found.reference:.4f} CPU seconds); something has become slower"
        )

    return check


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The ratios, and what they must not fall below."""
    ratios = config.stash.get(_RATIOS, [])
    if ratios:
        terminalreporter.section("speed against references of the same run")
    for one in ratios:
        terminalreporter.write_line(f"{one.what:<44} {one.times:8.2f} x  {one.than:<52} at least {one.floor:g}")
