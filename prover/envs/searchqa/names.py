"""Names in a text, and the actions that can be proposed of them.

Nobody can list all searches. Where replies are drawn among admissible actions, a search for, and an answer with, each
name and number that question and passages have shown is proposed: nothing that the policy has not seen, so that gold
answers cannot leak.
"""

import re
from collections.abc import Iterable, Sequence

from prover.envs.searchqa.action import LONGEST, Answer, Search, Syntax, write
from prover.envs.searchqa.episode import Episode
from prover.envs.searchqa.passages import escape
from prover.envs.searchqa.question import Question

MOST = 48
"""Most names that are kept."""
_ROOM = 2000
"""Most bytes of all names together."""
_LONGEST = 60

_WORD = re.compile(r"\w+(?:['\u2019.-]\w+)*")
_JOINTS = frozenset(re.findall(r"\S+", "of the de del della di da du la le von van der den and & al el bin ibn"))
"""May stand inside a name."""
_OPENERS = frozenset(
    re.findall(
        r"\w+",
        "a an the in on at by to of for from as and but or if it its he his she her they their this that these those "
        "when where who whom whose what which why how was were is are did does do has have had can could after before "
        "during both although while since until with between name",
    )
)
"""Have a capital at the start of a sentence without being part of a name."""
_CLOSED = re.compile(r"\s*(is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.IGNORECASE)


def names(text: str) -> list[str]:
    """Runs of words with capitals and of numbers, each once, in the order of the text.

    >>> names('In which year did Ada of Lovelace meet "Mary Somerville"? On 5 June 1833.')
    ['Ada of Lovelace', 'Mary Somerville', '5 June 1833']
    >>> names("The answer came from J. Smith. Ada agreed.")
    ['J Smith', 'Ada']
    """
    found: dict[str, None] = {}
    run: list[str] = []
    end = 0
    for word in [*_WORD.finditer(text), None]:
        if run and (word is None or not _goes_on(run, text[end : word.start()], word[0])):
            _keep(run, found)
            run = []
        if word is not None:
            run = [*run, word[0]] if run or _stands_out(word[0]) else []
            end = word.end()
    return list(found)


def merged(*lists: Iterable[str]) -> tuple[str, ...]:
    """Names of several lists, each once (whatever its case), as many from the front as fit into a state."""
    kept: dict[str, str] = {}
    room = _ROOM
    for name in (name for names in lists for name in names):
        if name.casefold() not in kept and len(kept) < MOST and (room := room - len(name.encode())) >= 0:
            kept[name.casefold()] = name
    return tuple(kept.values())


def proposals(question: Question, now: Episode, *, may_search: bool, syntax: Syntax) -> list[str]:
    """Actions to choose from: searches that were not made yet and answers, of the names seen so far; sorted.

    Without any name the words of the question are searched for. Where it asks yes or no, these are answers as well.
    """
    made = {move.text.casefold() for move in now.moves}
    searches = [name for name in now.names if name.casefold() not in made] if may_search else []
    answers = [*now.names, *(("yes", "no") if _CLOSED.match(question.text) else ())]
    if may_search and not searches:
        searches = [escape(question.text)[:LONGEST].strip() or "?"]
    actions: list[Search | Answer] = [*map(Search, searches), *map(Answer, answers)]
    return sorted({write(action, syntax) for action in actions})


def _stands_out(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


def _goes_on(run: Sequence[str], gap: str, word: str) -> bool:
    """Whether a word belongs to the run before it; an initial's dot may stand between them."""
    near = gap.isspace() or (gap == ". " and len(run[-1]) == 1)
    return near and (_stands_out(word) or word in _JOINTS)


def _keep(run: Sequence[str], found: dict[str, None]) -> None:
    """Put a run among the names, without joints at its end and openers at its start."""
    words = list(run)
    while words and words[-1] in _JOINTS:
        words.pop()
    while words and (words[0].lower() in _OPENERS or words[0] in _JOINTS):
        words.pop(0)
    name = " ".join(words)
    if name and len(name) <= _LONGEST:
        found[name] = None
