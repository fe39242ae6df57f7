"""From what a model wrote to a reply that can be acted on, or to the reason why not.

``read_reply`` is total: every text gives a ``Reply`` whose segment can be measured, or a ``Refusal``. Written rules:

* Prose and fences around the object do not matter; no text inside the object is touched. What stands before the first
  ``</think>`` is thought and no part of the answer.
* Numbers are numbers: ``"3"``, ``true``, ``3.0`` and ``NaN`` are refused.
* A key that is not known, or that stands there twice, is refused.
* Bounds are refused, never clamped.
* The reply must be the only thing in the text that could be one. Two different objects are ambiguous, and so is one
  object beside remains of another: the model may have quoted what an episode says.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prover.records import Segment, Trajectory
from prover.segments import validate_segment

_LONGEST = 20_000
"""Longest text that is read, in characters."""
_Words = Annotated[str, Field(min_length=1, max_length=1000)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Evidence(_Strict):
    """A turn of a failed run that shows the failure mode."""

    trajectory: str
    """Label of the run."""
    turn: int


class Reply(_Strict):
    """What a judge answers."""

    failure_mode: _Words
    evidence: Annotated[list[Evidence], Field(min_length=1, max_length=16)]
    reason: _Words
    start_turn: int
    end_turn: int
    confidence: Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a text is no usable reply.

    The codes: ``too_much_text``, ``no_object``, ``not_json``, ``ambiguous``, ``duplicate_keys``, ``schema``, those of
    ``prover.segments.validate_segment``, ``unknown_evidence``, and from the loop ``cut``, ``tool_call`` and
    ``token_limit``.
    """

    code: str
    detail: str


_KEYS = frozenset(Reply.model_fields)
_REMAINS = re.compile(
    rf"""(?:["']\s*(?:{"|".join(sorted(_KEYS))})\s*["']|\b(?:start_turn|end_turn|failure_mode))\s*:"""
)
"""A key of a reply outside every object: part of an object that cannot be read."""


def read_reply(
    text: str, *, success: Trajectory, failures: Mapping[str, Trajectory], max_length: int
) -> Reply | Refusal:
    """The one reply in a text.

    Args:
        text: What the model wrote.
        success: The run that the segment is of.
        failures: The failed runs by label.
        max_length: Longest segment, in turns.
    """
    thought, closed, answer = text.partition("</think>")
    try:
        found = _only_object(answer if closed else thought)
    except RecursionError:
        return Refusal("not_json", "nested too deep")
    if isinstance(found, Refusal):
        return found
    try:
        reply = Reply.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "the object"
        return Refusal("schema", f"{where[:100]}: {first['msg']}")
    return _refusal(reply, success, failures, max_length) or reply


def reply_schema(*, success: Trajectory, failures: Mapping[str, Trajectory]) -> dict[str, Any]:
    """JSON schema of a reply about these runs, for backends that can hold a model to one."""
    words = {"type": "string", "minLength": 1, "maxLength": 300}
    turn = {"type": "integer", "minimum": 0, "maximum": max(success.n_turns - 2, 0)}
    evidence = {
        "trajectory": {"type": "string", "enum": list(failures)},
        "turn": {"type": "integer", "minimum": 0, "maximum": max(run.n_turns for run in failures.values()) - 1},
    }
    return _object(
        failure_mode=words,
        evidence={"type": "array", "items": _object(**evidence), "minItems": 1, "maxItems": 4},
        reason=words,
        start_turn=turn,
        end_turn=turn,
        confidence={"type": "number", "minimum": 0, "maximum": 1},
    )


def _object(**properties: Any) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _refusal(reply: Reply, success: Trajectory, failures: Mapping[str, Trajectory], max_length: int) -> Refusal | None:
    """What is wrong with a reply of the right form."""
    start, end = reply.start_turn, reply.end_turn
    code = validate_segment(Segment(trajectory=0, start=start, end=end), success, max_length)
    if code is not None:
        return Refusal(code, f"start_turn {_short(start)}, end_turn {_short(end)}")
    for cited in reply.evidence:
        run = failures.get(cited.trajectory)
        if run is None:
            known = ", ".join(failures)
            return Refusal("unknown_evidence", f"{cited.trajectory[:20]!r} is no failed run; these are: {known}")
        if not 0 <= cited.turn < run.n_turns:
            turns = f"turns 0..{run.n_turns - 1}"
            return Refusal("unknown_evidence", f"run {cited.trajectory} has {turns}, got {_short(cited.turn)}")
    return None


def _only_object(text: str) -> dict[str, Any] | Refusal:
    """The one object in a text that is meant as a reply."""
    if len(text) > _LONGEST:
        return Refusal("too_much_text", f"{len(text)} characters")
    objects, rest = [], []
    end = 0
    for found in _objects(text):
        rest.append(text[end : found.start])
        end = found.end
        if found.value.keys() & _KEYS:
            objects.append(found)
    remains = _REMAINS.search("\n".join([*rest, text[end:]]))
    if not objects:
        return Refusal("not_json", "the object is no valid JSON") if remains else Refusal("no_object", "no object")
    if remains or any(other.value != objects[0].value for other in objects):
        return Refusal("ambiguous", "more than one object could be meant")
    if any(found.duplicates for found in objects):
        return Refusal("duplicate_keys", "a key stands there twice")
    return objects[0].value


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    value: dict[str, Any]
    duplicates: bool


def _objects(text: str) -> Iterator[_Found]:
    """Every JSON object in a text that is not inside another one, strings included."""
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) < len(items):
            twice.append("")
        return value

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_refuse_constant)
    start = text.find("{")
    while start >= 0:
        twice.clear()
        try:
            value, end = decoder.raw_decode(text, start)
        except ValueError:
            end = start + 1
        else:
            yield _Found(start, end, value, bool(twice))
        start = text.find("{", end)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"expected a number, got {name}")


def _short(number: int) -> str:
    return str(number) if abs(number) < 10**9 else "a number of more than nine digits"
