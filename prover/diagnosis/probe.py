"""One batch: sample it, let every selector point, survey the successes, take the gradient of every part."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prover.attribution import INELIGIBLE, Attribution, Verdict
from prover.branch import Branch
from prover.config import RunConfig
from prover.credit import CreditRule
from prover.diagnosis.book import Batch, Named
from prover.diagnosis.gradients import gradient
from prover.diagnosis.rules import BEST, CONFIGURED, CONTINUED, EVERY, Rules, best_turns, every_turn, judged, parts
from prover.diagnosis.survey import FIRST, SECOND, Course, Surveyor, turns_of
from prover.errors import EnvError, SnapshotError
from prover.journal import rollout_metrics
from prover.protocols import Judge, TrainablePolicy
from prover.records import Group
from prover.rollout import Rollout, check_failure_share
from prover.seeds import derive
from prover.segments import choose_success
from prover.tasks import TaskStream
from prover.update import PolicyUpdate

_ROLLOUT, _SURVEY, _JUDGES = range(3)
"""Index in a batch's seed path of each consumer of randomness."""
_PATH = 1 << 16
"""First index of the seed path of a diagnosis; those of a training run are smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Makes batch after batch at the weights that the policy has; it takes no step."""

    config: RunConfig
    policy: TrainablePolicy
    rollout: Rollout
    selectors: Mapping[str, Judge]
    rules: Rules
    """What is compared."""
    stream: TaskStream
    update: PolicyUpdate

    async def batch(self, number: int) -> tuple[Batch, NDArray[np.float32]]:
        """What the batch tells, and its gradients by part, shape (I, P).

        Raises:
            FailureShareError: too many episodes failed.
        """
        config, start = self.config, time.process_time()
        seed = derive(config.seed, _PATH, number)
        tasks = self.stream.draw(number, config.rollout.groups)
        groups = await self.rollout.groups(tasks, config.rollout.group_size, seed=derive(seed, _ROLLOUT))
        check_failure_share(groups, config.rollout.max_failure_share)
        surveyor = Surveyor(
            branch=Branch(rollout=self.rollout, restore_rng=config.verify.restore_rng, keep_rows=True),
            continuations=config.verify.continuations,
            seed=derive(seed, _SURVEY),
        )
        eligible = [group for group in groups if self._eligible(group)]
        chosen, verdicts = await asyncio.gather(
            asyncio.gather(*(_surveyed(surveyor, group) for group in eligible)),
            self._verdicts(surveyor, groups, derive(seed, _JUDGES)),
        )
        courses = [course for course in chosen if isinstance(course, Course)]
        every = [*courses, *(course for course in await surveyor.surveyed() if course not in courses)]
        made = parts(config, self.rules, groups, every, len(courses), verdicts)
        gradients = np.stack([gradient(self.update, made[name]) for name in self.rules.parts()])
        # Kept prefixes would change the rounding of the next batch, depending on where the last call stopped.
        self.policy.forget()
        metrics = rollout_metrics(groups)
        batch = Batch(
            batch=number,
            tasks=tuple(group.task.id for group in groups),
            successes=tuple(group.n_success for group in groups),
            sizes=tuple(len(group.trajectories) for group in groups),
            eligible=tuple(group.index for group in eligible),
            turns=metrics["turns"],
            invalid=metrics["invalid_turns"],
            courses=tuple(every),
            chosen=len(courses),
            named=tuple(_named(name, verdict) for name, found in verdicts.items() for verdict in found),
            costs=self._costs(groups, every, len(courses), verdicts),
            unmeasured=tuple(reason for reason in chosen if isinstance(reason, str)),
            cpu_seconds=time.process_time() - start,
        )
        return batch, gradients

    def _eligible(self, group: Group) -> bool:
        verify = self.config.verify
        return max(1, verify.eligible_min) <= group.n_success <= min(verify.eligible_max, len(group.trajectories) - 1)

    async def _verdicts(self, surveyor: Surveyor, groups: Sequence[Group], seed: int) -> dict[str, list[Verdict]]:
        """What each selector named in eligible groups, measured."""
        verify, found = self.config.verify, {}
        for index, (name, judge) in enumerate(self.selectors.items()):
            attribution = Attribution(
                judge=judge,
                verifier=surveyor,
                rule=CreditRule(),
                judge_deadline_s=verify.judge_deadline_s,
                eligible_min=max(1, verify.eligible_min),
                eligible_max=verify.eligible_max,
            )
            verdicts = await attribution.judge_groups(groups, seed=derive(seed, index))
            found[name] = [verdict for verdict in verdicts if verdict.outcome not in INELIGIBLE]
        return found

    def _costs(
        self,
        groups: Sequence[Group],
        courses: Sequence[Course],
        chosen: int,
        verdicts: Mapping[str, Sequence[Verdict]],
    ) -> dict[str, int]:
        """Turns of continuations by part."""

        def cost(found: Sequence[Verdict], which: int = FIRST, first: int | None = None) -> int:
            places = [(v.group, v.proposal.segment) for v in found if v.estimate is not None and v.proposal is not None]
            return turns_of(courses, places, which, first)

        costs = dict.fromkeys(self.rules.parts(), 0)
        costs |= {name: cost(found) for name, found in verdicts.items()}
        for variant in self.rules.variants():
            if not variant.credits_alike:
                found = judged(verdicts, self.rules, variant, groups, courses)
                costs[self.rules.named(variant)] = cost(found, first=variant.first)
        if (judge := self.rules.judge) is not None:
            costs[CONTINUED] = costs[judge]
            costs[CONFIGURED] = costs[judge] if self.config.judged else 0
        costs[BEST] = cost(best_turns(courses[:chosen]), SECOND)
        costs[EVERY] = cost(every_turn(courses[:chosen]))
        return costs


async def _surveyed(surveyor: Surveyor, group: Group) -> Course | str:
    """The survey of the chosen success, or why there is none."""
    try:
        return await surveyor.course(group, choose_success(group))
    except (EnvError, SnapshotError) as error:
        return str(error)


def _named(selector: str, verdict: Verdict) -> Named:
    measured = verdict.estimate is not None and verdict.proposal is not None
    segment = verdict.proposal.segment if measured and verdict.proposal is not None else None
    return Named(selector=selector, group=verdict.group, outcome=verdict.outcome, segment=segment)


def recording(rollout: Rollout) -> Rollout:
    """A rollout that stores the states that a survey continues from, whatever the method needs."""
    return replace(rollout, rules=replace(rollout.rules, record_states=True))
