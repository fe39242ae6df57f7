"""What judges said of stored groups and what it was worth: records as lines of a file, and a table made of them.

Being further along a success raises the success rate whoever chose the segment, and the more so the longer it is. So
every segment is compared with a random one of its length in the same success. Groups of one task are one piece of
evidence.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from prover.errors import ConfigError, DataError
from prover.estimates import MeanInterval, clustered_mean, wilson
from prover.json_lines import read_records
from prover.records import Arm, Estimate, Proposal, Segment

NULL = "random_segment"
"""The judge that is always there: its segments are those that others of the same length are compared with."""
Place = tuple[int, int]
"""Update and index of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one judge made of one group."""

    judge: str
    update: int
    group: int
    """Index in the update."""
    task: str
    policy: str
    """What played the continuations: ``start``, or the name of a checkpoint."""
    exact: bool
    """Whether that is the policy that sampled the group."""
    outcome: str
    """As of a ``Verdict``."""
    detail: str = ""
    proposal: Proposal | None = None
    estimate: Estimate | None = None
    null: Estimate | None = None
    """Of a random segment of the same length in the same success."""
    seconds: float = 0.0
    """Wall time of the judge, per group of those that it was asked at once."""
    tokens: float = 0.0
    """Tokens that the judge's model read and wrote, per group of those that it was asked at once."""
    repairs: float = 0.0
    """Replies that the judge asked its model to put right, counted likewise."""

    @property
    def place(self) -> Place:
        """Which group it is about."""
        return self.update, self.group

    @property
    def judge_failed(self) -> bool:
        """Whether the judge raised or the service that it asks gave no answer."""
        return self.outcome == "judge_failed" or self.outcome.startswith("no_proposal:judge_")

    @property
    def final(self) -> bool:
        """Whether the outcome tells of the judge; where something failed, the next call tries again."""
        return not self.judge_failed and self.outcome != "verifier_failed"

    @property
    def segment(self) -> Segment | None:
        """The proposed segment, if it is a valid one."""
        return None if self.proposal is None or self.outcome.startswith("invalid_proposal") else self.proposal.segment

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "Judgement":
        """Back from what ``asdict`` made of it."""
        proposal = record["proposal"]
        if proposal is not None:
            proposal = Proposal(**proposal | {"segment": Segment(**proposal["segment"])})
        estimates = {name: _estimate(record[name]) for name in ("estimate", "null")}
        return cls(**{**record, "proposal": proposal, **estimates})


@dataclass(frozen=True, slots=True)
class Book:
    """The folder of a comparison: ``settings.json``, ``verdicts.jsonl`` as it grows, ``summary.json`` at the end."""

    path: Path

    def begin(self, settings: Mapping[str, Any], judges: Mapping[str, Mapping[str, Any]]) -> None:
        """Start, or go on with what is there.

        Args:
            settings: what must be the same in every call.
            judges: settings of each judge; a call may bring new judges.

        Raises:
            ConfigError: the folder holds a comparison with other settings, or cannot be made.
            DataError: the settings there are damaged.
        """
        file = self.path / "settings.json"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            held = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"judges": {}}
        except OSError as error:
            raise ConfigError(f"expected a folder for the results, got {error}; choose another with --out") from error
        except ValueError as error:
            raise DataError(f"expected settings in {file}, got {error}; choose another folder with --out") from error
        wanted = {**settings, "judges": {**held["judges"], **judges}}
        for key, value in (*settings.items(), *judges.items()):
            before = held["judges"].get(key) if key in judges else held.get(key, value)
            if before is not None and before != value:
                raise ConfigError(
                    f"expected {key} as in the comparison in {self.path}, {before!r}, got {value!r}; leave it out, or "
                    "choose another folder with --out"
                )
        file.write_text(json.dumps(wanted, indent=1), encoding="utf-8")

    def append(self, judgement: Judgement) -> None:
        """Add a line."""
        with (self.path / "verdicts.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(judgement), allow_nan=False) + "\n")

    def read(self) -> dict[tuple[str, Place], Judgement]:
        """All judgements by judge and group; of several the last one. A line that was being written is left out.

        Raises:
            DataError: a line is no judgement.
        """
        read = read_records(self.path / "verdicts.jsonl", Judgement.of_record, "a judgement")
        return {(judgement.judge, judgement.place): judgement for judgement in read}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one judge did."""

    judge: str
    judged: int
    """Groups that it was asked about."""
    outcomes: dict[str, int]
    valid_share: float | None
    """Valid proposals per group that it answered about: an outage is no verdict. None without an answer."""
    failed: int
    """Groups in which the judge raised or got no answer."""
    failure: str
    """The reason of one of these; empty where there are none."""
    measured: int
    positive: int
    """Measured segments with a positive difference."""
    positive_share95: tuple[float, float] | None
    """Wilson's interval of ``positive`` of ``measured``."""
    delta: MeanInterval | None
    """Mean difference of the measured segments, clustered by task."""
    delta_over_null: MeanInterval | None
    """The same minus that of random segments of the same length."""
    positive_over_null: MeanInterval | None
    """Share of positive differences minus that of random segments of the same length."""
    mean_length: float | None
    """Turns of a valid segment."""
    repairs: float
    """Per group, as are the next two."""
    tokens: float
    seconds: float
    continuation_tokens: int
    """Tokens of all continuations; a segment that several judges named counts for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Whether two judges name the same turns, over the groups in which both name a valid segment."""

    judges: tuple[str, str]
    groups: int
    identical: float
    """Share of groups with the same segment."""
    overlapping: float
    """Share of groups with a turn in common, identical segments included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The comparison of judges on the stored groups of a run."""

    stored: int
    """Stored groups."""
    eligible: int
    """Those of them that have as many successes as a judged group has, cut to the number that was asked for."""
    left_out: tuple[str, ...]
    """Why eligible groups could not be brought back, one reason each."""
    continuations: int
    """K."""
    approximate: dict[int, str]
    """Updates whose continuations were played by another policy than the one that sampled their groups: which."""
    judges: tuple[Standing, ...]
    agreement: tuple[Agreement, ...]

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, allow_nan=False), encoding="utf-8")


def standings(judgements: Sequence[Judgement], judges: Sequence[str]) -> tuple[Standing, ...]:
    """One per judge that has judged something, in the order of ``judges``."""
    of_judge = {name: [found for found in judgements if found.judge == name] for name in judges}
    return tuple(_standing(name, found) for name, found in of_judge.items() if found)


def agreements(judgements: Sequence[Judgement], judges: Sequence[str]) -> tuple[Agreement, ...]:
    """One per pair of judges that both named a valid segment of some group."""
    segments: dict[str, dict[Place, Segment]] = {name: {} for name in judges}
    for judgement in judgements:
        if judgement.judge in segments and judgement.segment is not None:
            segments[judgement.judge][judgement.place] = judgement.segment
    found = []
    for pair in combinations(judges, 2):
        first, second = (segments[name] for name in pair)
        both = [(first[place], second[place]) for place in first if place in second]
        if both:
            identical, overlapping = fmean(a == b for a, b in both), fmean(_overlap(a, b) for a, b in both)
            found.append(Agreement(judges=pair, groups=len(both), identical=identical, overlapping=overlapping))
    return tuple(found)


def _standing(name: str, found: Sequence[Judgement]) -> Standing:
    valid = [judgement.segment for judgement in found if judgement.segment is not None]
    measured = [(judgement.task, judgement.estimate, judgement.null) for judgement in found]
    deltas = [(task, estimate.delta) for task, estimate, _ in measured if estimate is not None]
    positive = sum(delta > 0 for _, delta in deltas)
    failed = [judgement for judgement in found if judgement.judge_failed]
    answered = len(found) - len(failed)
    pairs = [(task, mine.delta, null.delta) for task, mine, null in measured if mine is not None and null is not None]
    return Standing(
        judge=name,
        judged=len(found),
        outcomes=dict(Counter(judgement.outcome for judgement in found)),
        valid_share=len(valid) / answered if answered else None,
        failed=len(failed),
        failure=failed[-1].detail.strip().rpartition("\n")[2] if failed else "",
        measured=len(deltas),
        positive=positive,
        positive_share95=wilson(positive, len(deltas)),
        delta=_mean(deltas),
        delta_over_null=_mean((task, delta - null) for task, delta, null in pairs),
        positive_over_null=_mean((task, (delta > 0) - (null > 0)) for task, delta, null in pairs),
        mean_length=fmean(segment.length for segment in valid) if valid else None,
        repairs=fmean(judgement.repairs for judgement in found),
        tokens=fmean(judgement.tokens for judgement in found),
        seconds=fmean(judgement.seconds for judgement in found),
        continuation_tokens=sum(estimate.tokens for _, estimate, _ in measured if estimate is not None),
    )


def _estimate(record: Mapping[str, Any] | None) -> Estimate | None:
    arms = ("before", "after")
    # Nothing is trained on here, so no continuations are kept.
    return None if record is None else Estimate(**{**record, **{arm: Arm(**record[arm]) for arm in arms}, "played": ()})


def _mean(values: Iterable[tuple[str, float]]) -> MeanInterval | None:
    """Mean of values by task; None without any."""
    by_task: dict[str, list[float]] = {}
    for task, value in values:
        by_task.setdefault(task, []).append(value)
    return clustered_mean(by_task) if by_task else None


def _overlap(a: Segment, b: Segment) -> bool:
    return a.trajectory == b.trajectory and a.start <= b.end and b.start <= a.end
