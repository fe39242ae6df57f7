"""A judge without a model: what did the success do that no failure ever did?

It reads texts only, so it works in any environment. From each turn it derives

* a **fact**, when the action handles something that the task names: its verb, the task's words among its arguments, and
  how many different things the run has handled so (``take mug`` for the first mug, again for the second);
* a **sight**: a word of the task that a result shows for the first time and the opening did not show;
* its **event**: the action and its result, word for word.

Facts that no failure reached come first, then facts that few of them reached (``rare``), then sights and events that no
failure had. Moves that merely reveal (their results differ in more than the action's own words) never make a fact and
come last: a lucky discovery does not generalise. Events count only in a success without facts, where the texts give no
better hold; elsewhere an event of its own was measured to be worth no more than a random turn.

What the policy does anyway cannot have made the difference. Where the environment leaves nothing to chance, the success
rate before a turn is at least pi(a|s) times that after it, so that the turn is worth at most 1 - pi(a|s).
``min_alternative`` leaves out what is worth too little by this bound: a fact that failures lack, and that the policy
establishes whenever it gets so far, was lost earlier.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, takewhile
from typing import NamedTuple

from prover.records import Group, NoProposal, Proposal, Segment, Trajectory, Turn
from prover.segments import choose_success, validate_segment

_WORD = re.compile(r"[^\W\d_]+|\d+")
_TASK = re.compile(r"\b(?:task|goal|instruction|question)\b[^:\n]{0,20}:(.*?)(?:\n\s*\n|\Z)", re.IGNORECASE | re.DOTALL)
_PLACED = frozenset({"to", "in", "into", "on", "onto", "at", "under"})
"""What follows is where the thing goes. Task words must name both the thing and the place, or it is no progress."""
_ASIDE = frozenset({"from", "with", "using"})
"""What follows is where the thing came from or the tool, and says nothing about progress."""
_COMMON = frozenset({"a", "an", "the", "and", "or", "of", "it", "them", "some", "one", "two", "put", "find", "look"})


class _Fact(NamedTuple):
    verb: str
    words: tuple[str, ...]
    nth: int
    """How many different things the run has handled so, with this one."""

    def __str__(self) -> str:
        return " ".join((self.verb, *self.words)) + (f" (number {self.nth})" if self.nth > 1 else "")


class _Claim(NamedTuple):
    """A turn that can be proposed; the least one is."""

    tier: int
    reached: int
    """Failures that had it as well."""
    turn: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Run:
    """What happened in one trajectory, per turn; invalid turns have neither facts nor sights."""

    facts: tuple[_Fact | None, ...]
    sights: tuple[frozenset[str], ...]
    states: frozenset[str]

    @classmethod
    def of(cls, trajectory: Trajectory, reveals: frozenset[str]) -> "_Run":
        task = _task_words(trajectory.opening)
        hidden = task - _stems(_TASK.sub("", trajectory.opening))
        handled: dict[tuple[str, tuple[str, ...]], set[str]] = {}
        facts: list[_Fact | None] = []
        sights: list[frozenset[str]] = []
        for turn in trajectory.turns:
            shown: frozenset[str] = frozenset()
            fact = None
            if turn.invalid is None:
                shown = hidden & _stems(turn.result)
                fact = None if _verb(turn) in reveals else _fact(turn.action, task, handled)
            hidden -= shown
            sights.append(shown)
            facts.append(fact)
        states = frozenset(turn.state_key for turn in trajectory.turns if turn.state_key)
        return cls(facts=tuple(facts), sights=tuple(sights), states=states)


class ContrastJudge:
    """Proposes the turns of the shortest success that set it apart from the group's failures, and says why.

    By default a single turn, since the shortest segment that reaches a fact is the turn that establishes it. Never one
    that changed no state, led to a state that a failure visited, was invalid, or is the last.
    The answer does not depend on the seed or on the order of the failures.

    Args:
        max_length: Longest segment allowed, in turns.
        rare: Largest share of the failures that may have reached a fact; 0 takes facts that none reached.
        facts_only: Propose nothing where there is no such fact.
        segments: Most segments of a group; none overlap.
        context: Turns before the named one that belong to its segment, so far as they are valid and not taken.
        min_alternative: Smallest probability, under the policy that played, of replying otherwise in the named turn;
            of a turn without tokens nothing is known, and it is not left out.
    """

    name = "contrast"

    def __init__(
        self,
        max_length: int = 4,
        rare: float = 0.5,
        facts_only: bool = False,
        segments: int = 1,
        context: int = 0,
        min_alternative: float = 0.2,
    ) -> None:
        self.max_length = max_length
        self.rare = rare
        self.facts_only = facts_only
        self.segments = segments
        self.context = context
        self.min_alternative = min_alternative

    async def propose(self, group: Group, *, seed: int) -> Proposal | NoProposal:
        """The most distinctive turn; ``NoProposal`` when none sets the success apart."""
        found = await self.propose_all(group, seed=seed)
        return found if isinstance(found, NoProposal) else found[0]

    async def propose_all(self, group: Group, *, seed: int) -> Sequence[Proposal] | NoProposal:
        """The most distinctive turns, the best first."""
        failures = [trajectory for trajectory in group.trajectories if not trajectory.success]
        if group.n_success == 0 or not failures:
            return NoProposal(reason="no_contrast", detail=f"{group.n_success} of {len(group.trajectories)} succeeded")
        chosen = choose_success(group)
        found, taken = list[Proposal](), set[int]()
        for claim in sorted(self._claims(group, chosen, failures)):
            if len(found) < self.segments and claim.turn not in taken:
                segment = self._around(claim.turn, chosen, group.trajectories[chosen], taken)
                taken |= set(range(segment.start, segment.end + 1))
                found.append(Proposal(segment=segment, reason=claim.reason, judge=self.name))
        return found or NoProposal(
            reason="nothing_distinctive", detail=f"no turn sets it apart from {len(failures)} failures"
        )

    def _around(self, turn: int, chosen: int, success: Trajectory, taken: Set[int]) -> Segment:
        """A turn with its context; shorter where a turn before it may not be named or belongs to another segment."""
        found = Segment(trajectory=chosen, start=turn, end=turn)
        for start in range(turn - 1, turn - 1 - self.context, -1):
            wider = Segment(trajectory=chosen, start=start, end=turn)
            if start in taken or validate_segment(wider, success, self.max_length) is not None:
                break
            found = wider
        return found

    def _claims(self, group: Group, chosen: int, failures: Sequence[Trajectory]) -> Iterator[_Claim]:
        success, n = group.trajectories[chosen], len(failures)
        reveals = _revealing_verbs(group.trajectories)
        own = _Run.of(success, reveals)
        others = [_Run.of(failure, reveals) for failure in failures]
        visited = frozenset().union(*(run.states for run in others))
        events = {(turn.action, turn.result) for failure in failures for turn in failure.turns}
        seen = frozenset().union(*(shown for run in others for shown in run.sights))
        sure = 1 - success.reply_probabilities() < self.min_alternative
        for t, (turn, following) in enumerate(zip(success.turns, success.turns[1:], strict=False)):
            after = following.state_key
            if sure[t] or (after and (after == turn.state_key or after in visited)):
                continue
            if validate_segment(Segment(trajectory=chosen, start=t, end=t), success, self.max_length) is not None:
                continue
            told = f"turn {t} {turn.action!r}: "
            fact, sights = own.facts[t], own.sights[t] - seen
            reached = n if fact is None else sum(fact in run.facts for run in others)
            if fact is not None and reached / n <= self.rare:
                what = f"{n - reached} of {n} failures never reached '{fact}'"
                yield _Claim(int(reached > 0), reached, t, told + what)
            elif self.facts_only or (turn.action, turn.result) in events:
                continue
            elif sights:
                yield _Claim(2, 0, t, f"{told}none of {n} failures ever saw '{' '.join(sorted(sights))}'")
            elif not any(own.facts):
                tier = 4 if _verb(turn) in reveals else 3
                yield _Claim(tier, 0, t, f"{told}none of {n} failures did this with this result")


def _fact(action: str, task: frozenset[str], handled: dict[tuple[str, tuple[str, ...]], set[str]]) -> _Fact | None:
    """The fact that an action establishes; None when it handles nothing new that the task names. Grows ``handled``."""
    verb, *rest = _stems_in_order(action) or ("",)
    parts: list[list[str]] = [[]]
    for word in takewhile(lambda word: word not in _ASIDE, rest):
        if word in _PLACED:
            parts.append([])
        else:
            parts[-1].append(word)
    parts = [part for part in parts if part]
    named = [[word for word in part if word in task] for part in parts]
    if not named or not all(named):
        return None
    words = tuple(chain.from_iterable(named))
    things = handled.setdefault((verb, words), set())
    known = len(things)
    things.add(" ".join(parts[0]))
    return _Fact(verb, words, len(things)) if len(things) > known else None


def _revealing_verbs(trajectories: Sequence[Trajectory]) -> frozenset[str]:
    """Verbs most of whose results say more than a fixed phrase and the action's own words."""
    results: dict[str, list[tuple[frozenset[str], frozenset[str]]]] = {}
    for turn in {(t.action, t.result): t for run in trajectories for t in run.turns if t.invalid is None}.values():
        results.setdefault(_verb(turn), []).append((_stems(turn.action), _stems(turn.result)))
    verbs = set()
    for verb, pairs in results.items():
        phrase = frozenset.intersection(*(result for _, result in pairs))
        if 2 * sum(bool(result - phrase - action) for action, result in pairs) > len(pairs):
            verbs.add(verb)
    return frozenset(verbs)


def _task_words(opening: str) -> frozenset[str]:
    """Stems of the words of the task: what follows "task:", "goal:" or the like, else the last paragraph."""
    found = _TASK.search(opening)
    text = found.group(1) if found else re.split(r"\n\s*\n", opening.strip())[-1]
    return frozenset(w for w in _stems(text) if w not in _COMMON | _PLACED | _ASIDE and not w.isdigit())


def _verb(turn: Turn) -> str:
    return next(iter(_stems_in_order(turn.action)), "")


@lru_cache(maxsize=8192)  # The same texts come again and again within a group.
def _stems(text: str) -> frozenset[str]:
    return frozenset(_stems_in_order(text))


@lru_cache(maxsize=8192)
def _stems_in_order(text: str) -> tuple[str, ...]:
    return tuple(map(_stem, _WORD.findall(text.lower())))


def _stem(word: str) -> str:
    """The word without a plural s, so that "mugs" in a task are "mug" in an action."""
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word
