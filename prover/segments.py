"""Which segments may be proposed, and of which trajectory. Wrong proposals are refused with a code, never repaired."""

from prover.errors import ConfigError
from prover.records import Group, Segment, Trajectory


def choose_success(group: Group) -> int:
    """Index of the success with the fewest turns, the lowest index among equals.

    Raises:
        ConfigError: no member of the group succeeded.
    """
    successes = [i for i, trajectory in enumerate(group.trajectories) if trajectory.success]
    if not successes:
        raise ConfigError(f"expected a group with a success, got none in group {group.index}; judge mixed groups only")
    return min(successes, key=lambda i: (group.trajectories[i].n_turns, i))


def validate_segment(segment: Segment, trajectory: Trajectory, max_length: int, *, strict: bool = True) -> str | None:
    """Why a segment of this trajectory cannot be verified; None when it can.

    The codes, in the order in which they are looked for:

    * ``not_integer``: a bound is no whole number.
    * ``out_of_bounds``: a bound names no turn, or the segment is reversed.
    * ``terminal_endpoint``: it ends with the last turn, after which there is no state to continue from.
    * ``too_long``: it has more than ``max_length`` turns.
    * ``contains_invalid_action``: one of its turns is malformed, truncated or had no effect.

    The last three are for judges. A method that measures every turn (not ``strict``) takes these as well: after the
    last turn the outcome is known, a stretch is as long as the method cuts it, and an idle turn is worth what it costs.
    """
    start, end = segment.start, segment.end
    if type(start) is not int or type(end) is not int:
        return "not_integer"
    if not 0 <= start <= end < trajectory.n_turns:
        return "out_of_bounds"
    if end == trajectory.n_turns - 1 and strict:
        return "terminal_endpoint"
    if segment.length > max_length and strict:
        return "too_long"
    if strict and any(turn.invalid is not None or turn.truncated for turn in trajectory.turns[start : end + 1]):
        return "contains_invalid_action"
    return None
