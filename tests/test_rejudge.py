"""Stored groups of a real run, judged again."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prover.config import load_config
from prover.errors import ConfigError, DataError
from prover.judgements import Judgement, Summary
from prover.judges.contrast import ContrastJudge
from prover.judges.random_segment import RandomJudge
from prover.records import Group, NoProposal, Proposal, Segment
from prover.rejudge import Plan, rejudge
from prover.segments import choose_success
from prover.testing import ScriptedJudge
from prover.verify import MonteCarloVerifier


@pytest.fixture
def copy(stored_run: Path, tmp_path: Path) -> Path:
    """The same run, to be changed."""
    shutil.copytree(stored_run, tmp_path / "copy")
    return tmp_path / "copy"


def plan(run: Path, out: Path, judges: Mapping[str, Any] | None = None, **more: Any) -> Plan:
    """What is compared: random segments and these judges."""
    made = {"random_segment": RandomJudge(), **(judges or {})}
    settings = {name: {"kind": name} for name in made}
    return Plan(config=load_config(run / "config.yaml"), run=run, out=out, judges=made, settings=settings, **more)


def lines(out: Path) -> list[Judgement]:
    """Judgements on disk, in the order in which they were written."""
    return [Judgement.of_record(json.loads(line)) for line in (out / "verdicts.jsonl").read_text().splitlines()]


def outcomes(summary: Summary, judge: str) -> dict[str, int]:
    """What became of a judge's groups."""
    (found,) = [one.outcomes for one in summary.judges if one.judge == judge]
    return found


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, Any]]:
    """How often each segment is measured."""
    counts: Counter[tuple[int, Any]] = Counter()
    verify = MonteCarloVerifier.verify

    async def spy(self: MonteCarloVerifier, proposal: Proposal, group: Group, *, seed: int) -> Any:
        counts[group.env_seed, proposal.segment] += 1
        return await verify(self, proposal, group, seed=seed)

    monkeypatch.setattr(MonteCarloVerifier, "verify", spy)
    return counts


def test_groups_of_a_run_are_judged(stored_run: Path, tmp_path: Path) -> None:
    """Each eligible group of both updates is judged by each judge, with the checkpoint that sampled it."""
    told: list[tuple[int, int]] = []
    out = tmp_path / "judged"
    summary = rejudge(plan(stored_run, out, {"contrast": ContrastJudge()}), watch=lambda *done: told.append(done))
    assert (summary.stored, summary.left_out, summary.approximate, summary.continuations) == (16, (), {}, 2)
    assert summary.eligible > 4
    assert told[-1] == (summary.eligible, summary.eligible)
    found = lines(out)
    assert len({(one.judge, one.place) for one in found}) == len(found) == 2 * summary.eligible
    assert {(one.update, one.policy, one.exact) for one in found} == {(0, "start", True), (2, "update-000002", True)}
    null = next(one for one in summary.judges if one.judge == "random_segment")
    assert null.judged == summary.eligible
    assert null.measured > 0
    for one in found:
        if one.estimate is not None:
            assert (one.estimate.before.n, one.estimate.after.n) == (2, 2)
    assert json.loads((out / "summary.json").read_text())["eligible"] == summary.eligible


def test_the_same_call_gives_the_same_judgements(stored_run: Path, tmp_path: Path) -> None:
    """Two comparisons differ in nothing but seconds; another seed measures otherwise."""

    def told(name: str, seed: int) -> list[Any]:
        rejudge(plan(stored_run, tmp_path / name, seed=seed))
        return sorted((one.place, one.outcome, str(one.proposal), str(one.estimate)) for one in lines(tmp_path / name))

    assert told("first", 0) == told("second", 0)
    assert told("third", 1) != told("first", 0)


def test_what_is_there_is_not_done_again(stored_run: Path, tmp_path: Path, measured: Counter[Any]) -> None:
    """A further judge in the same folder is the only one that is asked, and names of known segments cost nothing."""
    out = tmp_path / "judged"
    first = rejudge(plan(stored_run, out))
    count = measured.total()
    assert count > 0

    class Twin(RandomJudge):
        asked = 0

        async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
            Twin.asked += 1
            return await super().propose(group, seed=seed)

    again = rejudge(plan(stored_run, out, {"twin": Twin()}))
    assert Twin.asked == first.eligible
    assert measured.total() == count
    assert [(one.measured, one.delta) for one in again.judges] == [
        (one.measured, one.delta) for one in first.judges
    ] * 2
    assert len(lines(out)) == 2 * first.eligible
    assert again.agreement[0].identical == 1.0


def test_an_interrupted_comparison_goes_on(stored_run: Path, tmp_path: Path, measured: Counter[Any]) -> None:
    """Of half the lines and one that was cut, the missing half is done and all is as in one go."""
    whole = rejudge(plan(stored_run, tmp_path / "whole"))
    count = measured.total()
    out = tmp_path / "halves"
    shutil.copytree(tmp_path / "whole", out)
    kept = (out / "verdicts.jsonl").read_text().splitlines(keepends=True)[: whole.eligible // 2]
    (out / "verdicts.jsonl").write_text("".join(kept) + '{"judge": "rand')
    assert rejudge(plan(stored_run, out)).judges[0].delta == whole.judges[0].delta
    assert count < measured.total() < 2 * count
    assert len(lines(out)) == whole.eligible


def test_a_segment_that_two_judges_name_is_measured_once(
    stored_run: Path, tmp_path: Path, measured: Counter[Any]
) -> None:
    """Both get the one estimate, in the very call in which both name it."""
    summary = rejudge(plan(stored_run, tmp_path, {"twin": RandomJudge(), "third": RandomJudge()}))
    assert set(measured.values()) == {1}
    null, twin, third = summary.judges
    assert null.measured == twin.measured == third.measured == measured.total()
    assert third.delta_over_null is not None
    assert (third.delta_over_null.mean, third.delta_over_null.se) == (0.0, 0.0)


def test_a_judge_that_raises_is_counted_and_tried_again(stored_run: Path, tmp_path: Path) -> None:
    """The others go on; the next call asks it once more, and only it."""
    down = {"shaky": ScriptedJudge([RuntimeError("no engine")], repeat=True)}
    summary = rejudge(plan(stored_run, tmp_path, down))
    null, shaky = summary.judges
    assert (shaky.failed, shaky.judged, shaky.measured) == (summary.eligible, summary.eligible, 0)
    assert null.measured > 0
    assert all("no engine" in one.detail for one in lines(tmp_path) if one.judge == "shaky")
    repaired = ScriptedJudge([NoProposal(reason="nothing")], repeat=True)
    assert outcomes(rejudge(plan(stored_run, tmp_path, {"shaky": repaired})), "shaky") == {
        "no_proposal:nothing": summary.eligible
    }
    assert len(repaired.groups) == summary.eligible
    assert len(lines(tmp_path)) == 3 * summary.eligible


def test_invalid_proposals_cost_nothing(stored_run: Path, tmp_path: Path, measured: Counter[Any]) -> None:
    """A segment that ends the episode is refused with its code and not measured."""

    class Last(RandomJudge):
        async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
            chosen = choose_success(group)
            last = group.trajectories[chosen].n_turns - 1
            return Proposal(segment=Segment(trajectory=chosen, start=last, end=last), reason="", judge="last")

    summary = rejudge(plan(stored_run, tmp_path, {"last": Last()}))
    assert outcomes(summary, "last") == {"invalid_proposal:terminal_endpoint": summary.eligible}
    assert summary.judges[1].valid_share == 0.0
    assert measured.total() == summary.judges[0].measured


def test_what_a_model_cost_is_shared_among_its_groups(stored_run: Path, tmp_path: Path) -> None:
    """Tokens and repairs are those that the judge's own counters grew by."""

    class Chatty(RandomJudge):
        tokens, repairs, closed = 1000, 7, False

        async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
            self.tokens += 100
            self.repairs += 2
            return await super().propose(group, seed=seed)

        async def aclose(self) -> None:
            self.closed = True

    judge = Chatty()
    chatty = rejudge(plan(stored_run, tmp_path, {"chatty": judge})).judges[1]
    assert (chatty.tokens, chatty.repairs) == (pytest.approx(100), pytest.approx(2))
    assert judge.closed


def test_only_so_many_groups(stored_run: Path, tmp_path: Path) -> None:
    """The first ones are judged; a later call for more goes on from there."""
    assert rejudge(plan(stored_run, tmp_path, groups=2)).eligible == 2
    assert len(lines(tmp_path)) == 2
    assert rejudge(plan(stored_run, tmp_path, groups=3)).eligible == 3
    assert len(lines(tmp_path)) == 3


def test_a_group_that_does_not_come_back_is_left_out(copy: Path, tmp_path: Path) -> None:
    """A changed observation in the files is noticed; the group is counted and the others are judged."""
    whole = rejudge(plan(copy, tmp_path / "whole"))
    place = lines(tmp_path / "whole")[0].place
    file = copy / "groups" / f"update-{place[0]:06d}.json"
    stored = json.loads(file.read_text())
    (group,) = [group for group in stored["groups"] if group["index"] == place[1]]
    group["trajectories"][2]["turns"][0]["result"] = "You are in cell 99."
    file.write_text(json.dumps(stored))
    summary = rejudge(plan(copy, tmp_path / "tampered"))
    assert (summary.eligible, summary.judges[0].judged) == (whole.eligible, whole.eligible - 1)
    assert len(summary.left_out) == 1
    assert "the answer to turn 0" in summary.left_out[0]
    assert "cell 99" in summary.left_out[0]


def test_another_policy_plays_only_when_asked_to(copy: Path, tmp_path: Path) -> None:
    """Without the checkpoint that sampled a group the call ends; asked to, the nearest one plays and it is said."""
    shutil.rmtree(copy / "checkpoints" / "update-000002")
    with pytest.raises(ConfigError, match="--any-policy"):
        rejudge(plan(copy, tmp_path / "strict"))
    summary = rejudge(plan(copy, tmp_path / "loose", any_policy=True))
    assert summary.approximate == {2: "update-000003"}
    assert {(one.policy, one.exact) for one in lines(tmp_path / "loose")} == {("start", True), ("update-000003", False)}


def test_only_the_policy_that_sampled_a_group_had_no_alternative(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment leaves nothing to chance: forced ends are known, but not where the nearest policy plays."""
    shutil.rmtree(copy / "checkpoints" / "update-000002")
    chances: list[bool] = []
    verify = MonteCarloVerifier.verify

    async def spy(self: MonteCarloVerifier, proposal: Proposal, group: Group, *, seed: int) -> Any:
        chances.append(self.chance)
        return await verify(self, proposal, group, seed=seed)

    monkeypatch.setattr(MonteCarloVerifier, "verify", spy)
    rejudge(plan(copy, tmp_path / "out", any_policy=True))
    assert {*chances} == {False, True}
    exact = [one.exact for one in lines(tmp_path / "out") if one.segment is not None]
    assert len(exact) == len(chances)
    assert exact.count(True) == chances.count(False)


def test_without_stored_groups_there_is_nothing_to_judge(copy: Path, tmp_path: Path) -> None:
    """The message says how to get some."""
    shutil.rmtree(copy / "groups")
    with pytest.raises(DataError, match=r"got 0 stored groups(.|\n)*checkpoint\.groups of 1"):
        rejudge(plan(copy, tmp_path / "judged"))
    assert not (tmp_path / "judged").exists()


def test_segments_are_compared_with_random_ones_of_their_length(
    stored_run: Path, tmp_path: Path, measured: Counter[Any]
) -> None:
    """Two turns are compared with two random turns of the same success, single ones with the control."""

    class Pair(RandomJudge):
        async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
            single = await super().propose(group, seed=seed)
            if isinstance(single, NoProposal) or single.segment.start == 0:
                return NoProposal(reason="at_the_start")
            return replace(single, segment=replace(single.segment, start=single.segment.start - 1))

    summary = rejudge(plan(stored_run, tmp_path, {"contrast": ContrastJudge(), "pair": Pair()}))
    found = lines(tmp_path)
    control = {one.place: one.estimate for one in found if one.judge == "random_segment"}
    singles = [one for one in found if one.judge == "contrast" and one.estimate]
    pairs = [one for one in found if one.judge == "pair" and one.estimate]
    assert singles
    assert pairs
    assert all(one.null == control[one.place] for one in singles)
    assert all(one.null is not None for one in pairs)
    lengths = Counter(segment.length for _, segment in measured)
    named = {(one.place, one.segment) for one in pairs}
    # Each pair has a random pair beside it, which may be the very same.
    assert len(named) <= lengths[2] <= 2 * len(named)
    assert summary.judges[0].delta_over_null is None
    over = summary.judges[2].delta_over_null
    assert over is not None
    assert over.n <= len(pairs)


def test_a_judge_that_hangs_is_cut_short(stored_run: Path, tmp_path: Path) -> None:
    """The deadline of the run's judges holds here as well; it is a failure, to be tried again."""

    class Hanging(RandomJudge):
        async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
            await asyncio.Event().wait()
            raise AssertionError("unreachable: nobody sets it")

    wanted = plan(stored_run, tmp_path, {"hanging": Hanging()}, groups=2)
    verify = wanted.config.verify.model_copy(update={"judge_deadline_s": 0.01})
    summary = rejudge(replace(wanted, config=wanted.config.model_copy(update={"verify": verify})))
    assert outcomes(summary, "hanging") == {"no_proposal:judge_deadline": 2}
    assert summary.judges[1].failed == 2


def test_groups_without_contrast_are_not_judged(stored_run: Path, tmp_path: Path) -> None:
    """Where a run takes any number of successes, one at least and one failure at least are needed all the same."""
    wanted = plan(stored_run, tmp_path)
    verify = wanted.config.verify.model_copy(update={"eligible_min": 0, "eligible_max": 99})
    summary = rejudge(replace(wanted, config=wanted.config.model_copy(update={"verify": verify})))
    (one,) = summary.judges
    assert one.judged == summary.eligible
    assert not {"all_failed", "all_succeeded", "not_eligible"} & one.outcomes.keys()
