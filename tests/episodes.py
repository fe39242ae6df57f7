"""Episodes made by hand, of which only turns and outcome matter."""

from collections.abc import Iterable
from typing import Any

from prover.records import EndReason, Task, Trajectory, Turn

TASK = Task(id="a", split="train")


def played(turns: Iterable[Turn], success: bool, **more: Any) -> Trajectory:
    """A trajectory with these turns and this outcome; ``more`` replaces what is said of the rest."""
    rest = {"task": TASK, "member": 0, "seed": 0, "policy_version": 0, "opening": "", "rows": (), "end": EndReason.DONE}
    return Trajectory(**{"turns": tuple(turns), "success": success, "reward": float(success), **rest, **more})
