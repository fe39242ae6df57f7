"""Judges the stored groups of a run again: load, bring the states back, ask every judge, measure, write down.

All judges see the same groups. Each distinct segment is measured once, with the seeds of its group, and beside a random
one of its length in the same success (that of ``random_segment``, where it has that length). What is judged and
measured is not done again when the same folder is given once more, with the same judges or further ones.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prover import build, group_store, stage
from prover.attribution import Attribution, in_time
from prover.branch import Branch
from prover.config import RunConfig
from prover.credit import CreditRule
from prover.errors import DataError, EnvError
from prover.folder import RunFolder
from prover.host import HostPool
from prover.judgements import NULL, Book, Judgement, Place, Summary, agreements, standings
from prover.origin import origin
from prover.protocols import Judge, Verifier
from prover.records import Estimate, Group, NoProposal, Proposal, Segment
from prover.retrace import retrace
from prover.seeds import derive, generator
from prover.segments import validate_segment
from prover.verify import MonteCarloVerifier

_AT_ONCE = 16
"""Groups that are judged, and then measured, at the same time; what an interruption costs at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be compared."""

    config: RunConfig
    """Config of the run: environment, rules, policy, which groups are judged."""
    run: Path
    """Folder of the run."""
    out: Path
    """Folder of the comparison."""
    judges: Mapping[str, Judge]
    """By the name that they are shown under; the others are compared with ``random_segment``."""
    settings: Mapping[str, Mapping[str, Any]]
    """Config of each judge, to notice that a name stands for another judge than before."""
    groups: int | None = None
    """Judge the first so many eligible groups only."""
    seed: int = 0
    continuations: int | None = None
    """K; that of the run when left out."""
    any_policy: bool = False
    """Let the nearest checkpoint play where the policy that sampled a group is gone."""

    @property
    def k(self) -> int:
        """Continuations per arm."""
        return self.continuations or self.config.verify.continuations


Watcher = Callable[[int, int], None]
"""Told how many of how many groups are done."""


def rejudge(plan: Plan, watch: Watcher = lambda done, groups: None) -> Summary:
    """Compare judges on the stored groups of a run; the summary is also in ``summary.json``.

    Raises:
        ConfigError: the folder holds a comparison with other settings, or a needed policy is gone.
        DataError: there are no stored groups or none that can be judged, or a file is damaged.
    """
    # Continuations see what the episodes of the run saw.
    plan = replace(plan, config=plan.config.model_copy(update={"env": plan.config.env.kept_in(plan.run)}))
    book = Book(plan.out)
    stored, chosen = _chosen(plan)
    settings = {"run": str(plan.run.resolve()), "seed": plan.seed, "continuations": plan.k}
    book.begin(settings, plan.settings)
    comparison = _Comparison(plan=plan, book=book, found=book.read(), watch=watch)
    asyncio.run(comparison.run(chosen))
    places = {(update, group.index) for update, groups in chosen.items() for group in groups}
    return comparison.summary(stored, places)


def _chosen(plan: Plan) -> tuple[int, dict[int, list[Group]]]:
    """Number of stored groups looked at, and by update those that can be judged."""
    rules, left = plan.config.verify, plan.groups
    least = max(1, rules.eligible_min)  # Some methods measure every group; there is nothing to judge without a success.
    stored, chosen = 0, dict[int, list[Group]]()
    folder = RunFolder(plan.run).groups
    for update in group_store.stored(folder):
        groups = update.load()
        stored += len(groups)
        most = [min(rules.eligible_max, len(group.trajectories) - 1) for group in groups]
        fit = [group for group, high in zip(groups, most, strict=True) if least <= group.n_success <= high]
        chosen[update.update] = fit if left is None else fit[:left]
        left = None if left is None else left - len(chosen[update.update])
    if not any(chosen.values()):
        raise DataError(
            f"expected stored groups with {least} to {rules.eligible_max} successes in {folder}, got "
            f"{stored} stored groups, none of them such; train with checkpoint.groups of 1 or more, and with more "
            "rollout.groups"
        )
    return stored, chosen


@dataclass(slots=True, kw_only=True)
class _Comparison:
    plan: Plan
    book: Book
    found: dict[tuple[str, Place], Judgement]
    watch: Watcher
    left_out: list[str] = field(default_factory=list)

    async def run(self, chosen: Mapping[int, Sequence[Group]]) -> None:
        """Judge and measure what is missing, update after update."""
        total, done = sum(map(len, chosen.values())), 0
        async with AsyncExitStack() as stack:
            for judge in self.plan.judges.values():
                if hasattr(judge, "aclose"):
                    stack.push_async_callback(judge.aclose)
            hosts = await stack.enter_async_context(stage.host_pool(self.plan.config))
            for update, groups in chosen.items():
                todo = [group for group in groups if self.missing(update, group)]
                done += len(groups) - len(todo)
                back = await asyncio.gather(*(self._restored(hosts, group) for group in todo))
                restored = [group for group in back if group is not None]
                done += len(todo) - len(restored)
                if not restored:
                    continue
                round_ = self._round(hosts, update, restored)
                for start in range(0, len(restored), _AT_ONCE):
                    part = restored[start : start + _AT_ONCE]
                    await round_.judge([round_.playable(group) for group in part])
                    done += len(part)
                    self.watch(done, total)

    def missing(self, update: int, group: Group) -> list[str]:
        """Judges whose judgement of a group is not there yet, or failed."""
        held = {name: self.found.get((name, (update, group.index))) for name in self.plan.judges}
        return [name for name, judgement in held.items() if judgement is None or not judgement.final]

    async def _restored(self, hosts: HostPool, group: Group) -> Group | None:
        try:
            return await retrace(hosts, group)
        except EnvError as error:
            self.left_out.append(str(error))
            return None

    def _round(self, hosts: HostPool, update: int, groups: Sequence[Group]) -> "_Round":
        """The judges with the policy that sampled these groups."""
        found = origin(self.plan.config, self.plan.run, update, groups[0], any_policy=self.plan.any_policy)
        branch = Branch(
            rollout=stage.rollout(self.plan.config, found.policy, hosts),
            restore_rng=self.plan.config.verify.restore_rng,
        )
        verifier = MonteCarloVerifier(
            branch=branch,
            continuations=self.plan.k,
            # What one policy had no alternative to, another one may.
            chance=not found.exact or build.env_chance(self.plan.config.env),
        )
        known = {
            (group, judgement.segment): judgement.estimate
            for (_, (of_update, group)), judgement in self.found.items()
            if of_update == update and judgement.segment is not None and judgement.estimate is not None
        }
        return _Round(
            comparison=self,
            update=update,
            policy=found.name,
            exact=found.exact,
            version=found.policy.version,
            verifier=_Once(verifier=verifier, seed=derive(self.plan.seed, update), known=known),
        )

    def note(self, judgement: Judgement) -> None:
        """Keep a judgement, here and on disk."""
        self.found[judgement.judge, judgement.place] = judgement
        self.book.append(judgement)

    def summary(self, stored: int, places: set[Place]) -> Summary:
        """The figures of the judges on these groups, saved."""
        judges = tuple(self.plan.judges)
        judgements = [found for found in self.found.values() if found.place in places and found.judge in judges]
        summary = Summary(
            stored=stored,
            eligible=len(places),
            left_out=tuple(self.left_out),
            continuations=self.plan.k,
            approximate={found.update: found.policy for found in judgements if not found.exact},
            judges=standings(judgements, judges),
            agreement=agreements(judgements, judges),
        )
        summary.save(self.plan.out / "summary.json")
        return summary


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """All judges on groups of one update."""

    comparison: _Comparison
    update: int
    policy: str
    exact: bool
    version: int
    verifier: "_Once"

    def playable(self, group: Group) -> Group:
        """The group as one of the loaded policy: versions count weight changes within a process."""
        runs = (replace(run, policy_version=self.version) for run in group.trajectories)
        return replace(group, trajectories=tuple(runs))

    async def judge(self, groups: Sequence[Group]) -> None:
        """First all judgements, one judge after the other, so that none waits for another; then all measurements."""
        plan, asked = self.comparison.plan, list[tuple[Group, Judgement, _Recalled]]()
        for name, judge in plan.judges.items():
            mine = [group for group in groups if name in self.comparison.missing(self.update, group)]
            if not mine:
                continue
            before, start = _spent(judge), time.perf_counter()
            replies = await asyncio.gather(*(self._ask(judge, group) for group in mine))
            seconds = time.perf_counter() - start
            tokens, repairs = (now - earlier for now, earlier in zip(_spent(judge), before, strict=True))
            for group, reply in zip(mine, replies, strict=True):
                blank = Judgement(
                    judge=name,
                    update=self.update,
                    group=group.index,
                    task=group.task.id,
                    policy=self.policy,
                    exact=self.exact,
                    outcome="",
                    seconds=seconds / len(mine),
                    tokens=tokens / len(mine),
                    repairs=repairs / len(mine),
                )
                asked.append((group, blank, reply))
        drawn = {place: found.segment for (name, place), found in self.comparison.found.items() if name == NULL}
        for _, blank, reply in asked:
            if blank.judge == NULL and isinstance(reply.reply, Proposal):
                drawn[blank.place] = reply.reply.segment
        await asyncio.gather(*(self._measure(*judged, drawn.get(judged[1].place)) for judged in asked))

    async def _ask(self, judge: Judge, group: Group) -> "_Recalled":
        try:
            seed = derive(self.comparison.plan.seed, self.update, group.index)
            deadline = self.comparison.plan.config.verify.judge_deadline_s
            reply = await in_time(judge.propose(group, seed=seed), deadline)
            return _Recalled(name=judge.name, reply=reply)
        except Exception as error:  # raised again where it is counted
            return _Recalled(name=judge.name, reply=error)

    async def _measure(self, group: Group, blank: Judgement, reply: "_Recalled", drawn: Segment | None) -> None:
        rules = self.comparison.plan.config.verify
        attribution = Attribution(
            judge=reply,
            verifier=self.verifier,
            rule=CreditRule(),
            probe=None if blank.judge == NULL else _Matched(reply=reply.reply, drawn=drawn),
            probe_share=1.0,
            eligible_min=rules.eligible_min,
            eligible_max=rules.eligible_max,
        )
        (verdict,) = await attribution.judge_groups([group], seed=derive(self.comparison.plan.seed, self.update))
        self.comparison.note(
            replace(
                blank,
                outcome=verdict.outcome,
                detail=verdict.detail,
                proposal=verdict.proposal,
                estimate=verdict.estimate,
                null=verdict.probe,
            )
        )


@dataclass(slots=True, kw_only=True)
class _Recalled:
    """A judge that has answered already."""

    name: str
    reply: Proposal | NoProposal | Exception

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """Its answer, or its error."""
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


@dataclass(slots=True, kw_only=True)
class _Matched:
    """Draws a random segment of the length of a proposal in the same trajectory."""

    reply: Proposal | NoProposal | Exception
    drawn: Segment | None
    """What ``random_segment`` drew in this group; taken where it fits."""
    name: str = NULL

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The segment to compare with; one at least fits, the proposed one."""
        assert isinstance(self.reply, Proposal), "asked for where a valid proposal is measured"
        mine, found = self.reply.segment, self.drawn
        if found is None or (found.trajectory, found.length) != (mine.trajectory, mine.length):
            run = group.trajectories[mine.trajectory]
            starts = range(run.n_turns - mine.length)
            segments = [Segment(trajectory=mine.trajectory, start=t, end=t + mine.length - 1) for t in starts]
            fit = [segment for segment in segments if validate_segment(segment, run, mine.length) is None]
            found = fit[int(generator(seed, mine.length).integers(len(fit)))]
        return Proposal(segment=found, reason="", judge=self.name)


@dataclass(slots=True, kw_only=True)
class _Once:
    """Measures each segment of an update's groups once, whoever names it and why."""

    verifier: Verifier
    seed: int
    known: dict[tuple[int, Segment], Estimate]
    running: dict[tuple[int, Segment], asyncio.Task[Estimate]] = field(default_factory=dict)

    async def verify(self, proposal: Proposal, group: Group, *, seed: int) -> Estimate:
        """The estimate of the proposed segment, from seeds of the group and not of what it is measured for."""
        key = (group.index, proposal.segment)
        if key in self.known:
            return self.known[key]
        if key not in self.running:
            seed = derive(self.seed, group.index)
            self.running[key] = asyncio.ensure_future(self.verifier.verify(proposal, group, seed=seed))
        return await self.running[key]

    async def verify_all(self, proposals: Sequence[Proposal], group: Group, *, seed: int) -> list[Estimate]:
        """The estimates of several segments."""
        return list(await asyncio.gather(*(self.verify(proposal, group, seed=seed) for proposal in proposals)))


def _spent(judge: Judge) -> tuple[int, int]:
    """Tokens and repairs of a judge so far; judges that ask a model count them."""
    return getattr(judge, "tokens", 0), getattr(judge, "repairs", 0)
