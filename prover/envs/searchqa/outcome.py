"""Outcome: what a finished episode was asked and what it answered, read off its trajectory.

For scores that need more than the texts, such as a judge's opinion on whether an answer means the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from prover.envs.searchqa.action import Answer, Syntax, parse
from prover.envs.searchqa.question import Question
from prover.records import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A question and the answer that was given to it."""

    question: str
    answers: tuple[str, ...]
    """The gold ones."""
    answer: str


def outcome(trajectory: Trajectory, questions: Mapping[str, Question], syntax: Syntax) -> Outcome | None:
    """The outcome of an episode; None where no answer was given.

    Args:
        trajectory: Of an episode of ``SearchQAEnv``.
        questions: By id; ``SearchQAEnv.questions``.
        syntax: As the environment had it.
    """
    # Whatever came before the last action was a search or invalid: an answer ends the episode.
    said = parse(trajectory.turns[-1].action, syntax) if trajectory.turns else None
    if not isinstance(said, Answer):
        return None
    question = questions[trajectory.task.id]
    return Outcome(question=question.text, answers=question.answers, answer=said.text)
