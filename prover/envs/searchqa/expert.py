"""Expert: a scripted searcher, for demonstrations.

It searches for the things that lead to the answer, one after the other, and answers when it has seen all of their
passages. Which things these are it reads in the question's supporting titles, which no agent is told; where they are
not known it searches for the question, and answers when a gold answer stands in what it has found. It never answers
with what it has not seen: "unknown" is what it says then.

Other hands may act in between: it looks at where it stands, and carries on from there.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prover.envs.searchqa.action import LONGEST, Answer, Search, Syntax, write
from prover.envs.searchqa.episode import Episode
from prover.envs.searchqa.question import Question
from prover.envs.searchqa.scoring import standard

_IN_BRACKETS = re.compile(r"\s*\([^()]*\)")


class Expert:
    """Plays one episode.

    Args:
        question: What is asked.
        current: Tells where the episode stands now.
        max_searches: Searches that it may make.
        syntax: How actions are written.
    """

    def __init__(
        self, question: Question, current: Callable[[], Episode], *, max_searches: int, syntax: Syntax = "tags"
    ) -> None:
        self._question, self._current, self._max_searches, self._syntax = question, current, max_searches, syntax

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next action.

        Args:
            observation: The answer to the last action, whoever gave it.
            info: Not needed.
        """
        now = self._current()
        action: Search | Answer = Answer(self._question.answers[0])
        if not self._has_seen(observation, now):
            made = {move.text.casefold() for move in now.moves}
            fresh = (query for query in self._queries(now) if query and query.casefold() not in made)
            query = next(fresh, None) if now.searches < self._max_searches else None
            action = Answer("unknown") if query is None else Search(query)
        return write(action, self._syntax)

    def _has_seen(self, observation: str, now: Episode) -> bool:
        if self._question.supports:
            return set(self._question.supports) <= set(now.found)
        read = standard(observation)
        return now.searches > 0 and any(standard(gold) in read for gold in self._question.answers if standard(gold))

    def _queries(self, now: Episode) -> Iterator[str]:
        """What to search for, the best first: a missing thing by its name, by its whole title; then the question."""
        for title in self._question.supports:
            if title not in now.found:
                yield _IN_BRACKETS.sub("", title)[:LONGEST].strip()
                yield " ".join(title.replace("(", " ").replace(")", " ").split())[:LONGEST].strip()
        yield self._question.text[:LONGEST].strip()
