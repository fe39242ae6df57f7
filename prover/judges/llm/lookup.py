"""What the judge may look up while it thinks: four functions over the runs of its view."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rapidfuzz import fuzz, process, utils

from prover.chat import Tool, ToolCall
from prover.judges.llm.view import View, harmless
from prover.records import Trajectory

ToolName = Literal["search_trajectory", "get_segment", "diff_trajectories", "list_actions"]

_CUT = 400
"""Longest text of one turn in a result, in characters."""
_MOST_TURNS = 12
"""Most turns in one result."""
_WEAKEST = 40.0
"""Least likeness of a turn that is found, of 100."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Search(_Arguments):
    query: Annotated[str, Field(min_length=1, max_length=300)]
    k: Annotated[int, Field(ge=1, le=_MOST_TURNS)] = 5


class _Segment(_Arguments):
    trajectory: str
    start: int
    end: int


class _Pair(_Arguments):
    a: str
    b: str


class _One(_Arguments):
    trajectory: str


_ARGUMENTS: dict[str, type[_Arguments]] = {
    "search_trajectory": _Search,
    "get_segment": _Segment,
    "diff_trajectories": _Pair,
    "list_actions": _One,
}
_DESCRIPTIONS: dict[str, str] = {
    "search_trajectory": "Find the turns of failed runs that are most like the query, best first (at most k).",
    "get_segment": f"Show turns start..end of a run (inclusive, at most {_MOST_TURNS}).",
    "diff_trajectories": "Show where the actions of two runs differ.",
    "list_actions": "List all actions of a run.",
}


def offered(names: tuple[ToolName, ...]) -> tuple[Tool, ...]:
    """These tools as a backend is told of them."""
    return tuple(
        Tool(name=name, description=_DESCRIPTIONS[name], parameters=_ARGUMENTS[name].model_json_schema())
        for name in names
    )


class WrongCallError(Exception):
    """A call that cannot be answered; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Answers the calls of one judgement."""

    view: View
    names: tuple[ToolName, ...]
    """Tools that are offered."""

    def answer(self, call: ToolCall) -> str:
        """What the call asks for, as a block of records.

        Raises:
            WrongCallError: there is no such tool, run or turn, or the arguments are none.
        """
        if call.name not in self.names:
            raise WrongCallError(f"There is no tool {call.name[:40]!r}. There are: {', '.join(self.names)}.")
        try:
            # Parsed apart, since a number in quotes is no number here either.
            arguments = _ARGUMENTS[call.name].model_validate(json.loads(call.arguments or "{}"))
        except (ValidationError, ValueError, RecursionError) as error:
            detail = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
            said = f"{'.'.join(map(str, detail['loc']))[:60]}: {detail['msg']}" if detail else "they are no JSON object"
            raise WrongCallError(f"The arguments of {call.name} are wrong. {said}.") from None
        match arguments:
            case _Search(query=query, k=k):
                return self.view.block("turns found", list(self._search(query, k)) or ["nothing like it"])
            case _Segment(trajectory=label, start=start, end=end):
                run = self._run(label)
                if not 0 <= start <= end < run.n_turns:
                    raise WrongCallError(f"Run {label} has turns 0..{run.n_turns - 1}, got {start}..{end}.")
                turns = range(start, min(end + 1, start + _MOST_TURNS))
                return self.view.block(f"run {label}", [self.view.turn(run, turn, _CUT) for turn in turns])
            case _Pair(a=a, b=b):
                return self.view.block(f"runs {a} and {b}", list(self._differences(a, b)) or ["the same actions"])
            case _One(trajectory=label):
                return self.view.block(f"run {label}", list(self._actions(label)))
        raise AssertionError("unreachable: every tool has its arguments")

    def _run(self, label: str) -> Trajectory:
        labels = self.view.labels
        if label not in labels:
            raise WrongCallError(f"There is no run {label[:20]!r}. There are: {', '.join(labels)}.")
        return self.view.group.trajectories[labels[label]]

    def _search(self, query: str, k: int) -> Iterator[str]:
        places = [(label, run, turn) for label, run in self.view.failures.items() for turn in range(run.n_turns)]
        texts = [f"{run.turns[turn].action} {run.turns[turn].result}"[:4000] for _, run, turn in places]
        best = process.extract(
            query,
            texts,
            scorer=fuzz.token_set_ratio,
            processor=utils.default_process,
            limit=k,
            score_cutoff=_WEAKEST,
        )
        for _, _, place in best:
            label, run, turn = places[place]
            yield f"run {label}, {self.view.turn(run, turn, _CUT)}"

    def _differences(self, a: str, b: str) -> Iterator[str]:
        first, second = ([turn.action for turn in self._run(label).turns] for label in (a, b))
        matcher = SequenceMatcher(a=first, b=second, autojunk=False)
        for kind, *bounds in matcher.get_opcodes():
            if kind != "equal":
                yield f"{a} {_listed(first, *bounds[:2])} | {b} {_listed(second, *bounds[2:])}"

    def _actions(self, label: str) -> Iterator[str]:
        for turn, said in enumerate(self._run(label).turns):
            note = " (no valid action)" if said.invalid is not None or said.truncated else ""
            yield f"turn {turn}{note}: {harmless(said.action, 100)}"


def _listed(actions: list[str], start: int, end: int) -> str:
    """Actions ``start`` to ``end - 1`` with their numbers."""
    return "; ".join(f"{turn} {harmless(actions[turn], 80)}" for turn in range(start, end)) or "nothing"
