"""Judgements as lines, and the figures made of them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from prover.errors import ConfigError, DataError
from prover.judgements import Book, Judgement, Summary, agreements, standings
from prover.records import Arm, Estimate, Proposal, Segment


def judgement(
    judge: str,
    group: int,
    turns: tuple[int, int] | None = None,
    counts: tuple[int, int] | None = None,
    null: tuple[int, int] | None = None,
    *,
    outcome: str | None = None,
    task: str | None = None,
    **more: Any,
) -> Judgement:
    """What a judge said of a group; ``counts`` and ``null`` are the successes of 4 before and after."""
    proposal = None
    if turns is not None:
        segment = Segment(trajectory=0, start=turns[0], end=turns[1])
        proposal = Proposal(segment=segment, reason="so", judge=judge)
    estimate, null_estimate = (
        both
        and Estimate(
            before=Arm(successes=both[0], n=4, mean_reward=both[0] / 4),
            after=Arm(successes=both[1], n=4, failures=1),
            turns=20,
            tokens=50,
        )
        for both in (counts, null)
    )
    return Judgement(
        judge=judge,
        update=0,
        group=group,
        task=task or f"t{group}",
        policy="start",
        exact=True,
        outcome=outcome or ("measured" if counts else "no_proposal:nothing_distinctive"),
        proposal=proposal,
        estimate=estimate,
        null=null_estimate,
        **more,
    )


FOUND = [
    judgement("random_segment", 0, (1, 1), (1, 1)),
    judgement("random_segment", 1, (2, 2), (2, 1)),
    judgement("random_segment", 2, (0, 0), (0, 2)),
    judgement("random_segment", 3, (3, 3), (1, 1)),
    judgement("sharp", 0, (1, 1), (1, 1), (1, 1), seconds=0.5, tokens=100.0, repairs=1.0),
    judgement("sharp", 1, (1, 2), (0, 3), (2, 1), seconds=1.5, tokens=300.0),
    judgement("sharp", 2, (3, 6), (1, 3), (0, 2)),
    judgement("sharp", 3, (9, 9), outcome="invalid_proposal:out_of_bounds"),
    judgement("mute", 0),
    judgement("mute", 1, outcome="judge_failed"),
    judgement("mute", 2, outcome="no_proposal:judge_unreachable"),
]


def test_a_judgement_comes_back_from_its_line() -> None:
    """Equal to what was written, in the types of its fields, also those that equality leaves out."""
    back = Judgement.of_record(json.loads(json.dumps(asdict(FOUND[4]))))
    assert back == FOUND[4]
    assert back.estimate is not None
    assert (back.estimate.played, back.estimate.before.n) == ((), 4)


def test_figures_of_judges() -> None:
    """Shares, means and differences are those worked out by hand."""
    null, sharp, mute = standings(FOUND, ["random_segment", "sharp", "mute", "absent"])
    assert [one.judge for one in (null, sharp, mute)] == ["random_segment", "sharp", "mute"]
    # Deltas at random: 0, -1/4, 1/2, 0.
    assert (null.measured, null.positive, null.valid_share) == (4, 1, 1.0)
    assert null.delta is not None
    assert null.delta.mean == pytest.approx(0.0625)
    assert null.delta_over_null is null.positive_over_null is None
    # Deltas of the sharp judge: 0, 3/4, 1/2; of 4 groups 3 have a valid segment, of 1, 2 and 4 turns.
    assert (sharp.judged, sharp.measured, sharp.positive, sharp.valid_share) == (4, 3, 2, 0.75)
    assert sharp.outcomes == {"measured": 3, "invalid_proposal:out_of_bounds": 1}
    assert sharp.mean_length == pytest.approx(7 / 3)
    assert (sharp.seconds, sharp.tokens, sharp.repairs) == (0.5, 100.0, 0.25)
    assert sharp.continuation_tokens == 150
    assert sharp.delta is not None
    assert sharp.delta.mean == pytest.approx(1.25 / 3)
    # Minus random segments of the same lengths, 0, -1/4 and 1/2: 0, 1, 0.
    # Their standard error is 1/3, and t(0.975, 2) is 4.3027.
    over = sharp.delta_over_null
    assert over is not None
    assert (over.mean, over.n) == (pytest.approx(1 / 3), 3)
    assert (over.low, over.high) == (
        pytest.approx(1 / 3 - 4.3027 / 3, abs=1e-4),
        pytest.approx((1 + 4.3027) / 3, abs=1e-4),
    )
    # Positive or not, minus random: 0, 1, 0.
    assert sharp.positive_over_null is not None
    assert sharp.positive_over_null.mean == pytest.approx(1 / 3)
    # Who says nothing has nothing measured; that the service was away is a failure, having nothing to say is none.
    assert (mute.judged, mute.failed, mute.measured, mute.valid_share) == (3, 2, 0, 0.0)
    assert null.failure == ""
    assert mute.delta is mute.delta_over_null is mute.mean_length is mute.positive_share95 is None


def test_an_outage_is_no_verdict() -> None:
    """Shares are of the groups that were answered about, there are none without an answer, and a cause is kept."""
    away = judgement("sharp", 4, outcome="no_proposal:judge_payment", detail="the account is empty")
    raised = judgement("sharp", 5, outcome="judge_failed", detail="Traceback\n  line\nRuntimeError: boom\n")
    # Of the four groups with an answer three have a valid segment.
    (half,) = standings([*FOUND, away], ["sharp"])
    assert (half.judged, half.failed, half.valid_share, half.failure) == (5, 1, 0.75, "the account is empty")
    (gone,) = standings([away, raised], ["sharp"])
    assert (gone.judged, gone.failed, gone.valid_share, gone.failure) == (2, 2, None, "RuntimeError: boom")


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    """A file in the place of the folder, and settings that were cut, are said with what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="choose another with --out"):
        Book(tmp_path / "file").begin({}, {})
    (tmp_path / "settings.json").write_text('{"judges": {')
    with pytest.raises(DataError, match="choose another folder with --out"):
        Book(tmp_path).begin({}, {})


def test_groups_of_one_task_are_one_piece_of_evidence() -> None:
    """Two groups of a task count as their mean, and leave one value too few for an interval."""
    found = [judgement("sharp", 0, (0, 0), (0, 4), task="t"), judgement("sharp", 1, (0, 0), (0, 2), task="t")]
    (one,) = standings(found, ["sharp"])
    assert one.delta is not None
    assert (one.delta.mean, one.delta.n, one.delta.low) == (0.75, 1, None)


def test_agreement_of_judges() -> None:
    """Of three groups in which both name a segment, one is the same and two have a turn in common."""
    (pair,) = agreements(FOUND, ["random_segment", "sharp", "mute"])
    assert pair.judges == ("random_segment", "sharp")
    assert (pair.groups, pair.identical, pair.overlapping) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_segments_of_different_runs_do_not_overlap() -> None:
    """The same turns of another member are other turns."""
    mine = judgement("a", 0, (1, 1))
    other = Proposal(segment=Segment(trajectory=1, start=1, end=1), reason="", judge="b")
    theirs = Judgement(
        judge="b", update=0, group=0, task="t0", policy="start", exact=True, outcome="measured", proposal=other
    )
    (pair,) = agreements([mine, theirs], ["a", "b"])
    assert (pair.identical, pair.overlapping) == (0.0, 0.0)


def test_lines_are_read_back(tmp_path: Path) -> None:
    """Every judgement comes back as it was; of two on one group the last counts; a line cut short is dropped."""
    book = Book(tmp_path / "judged")
    book.begin({"seed": 0}, {})
    assert book.read() == {}
    for found in FOUND:
        book.append(found)
    again = judgement("mute", 1, (0, 1), (0, 1))
    book.append(again)
    file = tmp_path / "judged" / "verdicts.jsonl"
    whole = file.read_text()
    file.write_text(whole + '{"judge": "sharp", "upd')
    expected = {(found.judge, found.place): found for found in FOUND} | {("mute", (0, 1)): again}
    assert book.read() == expected
    assert file.read_text() == whole


def test_what_failed_is_not_final() -> None:
    """A judge or verifier that failed is tried again; a judge with nothing to say, or something invalid, is not."""
    failed = ["judge_failed", "no_proposal:judge_timeout", "verifier_failed"]
    final = ["measured", "credited", "no_proposal:nothing_distinctive", "invalid_proposal:too_long"]
    assert [judgement("a", 0, outcome=outcome).final for outcome in failed + final] == [False] * 3 + [True] * 4


def test_a_line_that_is_no_judgement_is_named(tmp_path: Path) -> None:
    """The message says which line of which file."""
    (tmp_path / "verdicts.jsonl").write_text('{"judge": "sharp"}\n')
    with pytest.raises(DataError, match=r"expected a judgement in line 1 of .*verdicts\.jsonl"):
        Book(tmp_path).read()


def test_a_comparison_goes_on_under_its_settings(tmp_path: Path) -> None:
    """New judges may come; another seed, or another judge under a known name, is refused."""
    book = Book(tmp_path)
    book.begin({"seed": 0, "continuations": 8}, {"contrast": {"kind": "contrast"}})
    book.begin({"seed": 0, "continuations": 8}, {"llm": {"kind": "llm"}})
    held = json.loads((tmp_path / "settings.json").read_text())
    assert held == {"seed": 0, "continuations": 8, "judges": {"contrast": {"kind": "contrast"}, "llm": {"kind": "llm"}}}
    with pytest.raises(ConfigError, match=r"expected seed as in the comparison in .*, 0, got 1"):
        book.begin({"seed": 1, "continuations": 8}, {})
    with pytest.raises(ConfigError, match=r"expected llm as in the comparison(.|\n)*--out"):
        book.begin({"seed": 0, "continuations": 8}, {"llm": {"kind": "llm", "model": "another"}})


def test_a_summary_is_saved(tmp_path: Path) -> None:
    """All figures are in the file, and what is not known is null."""
    judges = ["random_segment", "sharp"]
    Summary(
        stored=9,
        eligible=4,
        left_out=("changed",),
        continuations=4,
        approximate={2: "update-000003"},
        judges=standings(FOUND, judges),
        agreement=agreements(FOUND, judges),
    ).save(tmp_path / "summary.json")
    saved = json.loads((tmp_path / "summary.json").read_text())
    assert (saved["stored"], saved["eligible"], saved["left_out"], saved["approximate"]) == (
        9,
        4,
        ["changed"],
        {"2": "update-000003"},
    )
    assert [one["judge"] for one in saved["judges"]] == judges
    assert saved["judges"][0]["delta_over_null"] is None
    assert saved["judges"][1]["delta_over_null"]["n"] == 3
    assert saved["agreement"][0]["groups"] == 3
