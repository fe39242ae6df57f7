"""The sentences of the game: names, lists and descriptions, as the grammar of alfworld 0.4.2 derives them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from prover.errors import DataError

NOTHING = "Nothing happens."
"""The answer to every command that is not admissible."""

_COMMANDS = (
    ("look", "look around your current location"),
    ("inventory", "check your current inventory"),
    ("go to (receptacle)", "move to a receptacle"),
    ("open (receptacle)", "open a receptacle"),
    ("close (receptacle)", "close a receptacle"),
    ("take (object) from (receptacle)", "take an object from a receptacle"),
    ("move (object) to (receptacle)", "place an object in or on a receptacle"),
    ("examine (something)", "examine a receptacle or an object"),
    ("use (object)", "use an object"),
    ("heat (object) with (receptacle)", "heat an object using a receptacle"),
    ("clean (object) with (receptacle)", "clean an object using a receptacle"),
    ("cool (object) with (receptacle)", "cool an object using a receptacle"),
    ("slice (object) with (object)", "slice an object using a sharp object"),
)


def _help() -> str:
    width = max(len(command) for command, _ in _COMMANDS) + 2
    lines = ["Available commands:"]
    for command, meaning in _COMMANDS:
        # The grammar's own line for "move" is not aligned with the others.
        gap = 2 if command.startswith("move") else width - len(command) - 1
        lines.append(f"  {command}:{' ' * gap}{meaning}")
    return "\n".join(lines) + "\n"


HELP = _help()
"""The answer to ``help``."""


def numbered(ids: Iterable[str]) -> dict[str, str]:
    """Names of entities: their word and a number that counts down over the sorted ids of that word.

    >>> numbered(["mug_bar_1", "mug_bar_2", "sink_bar_3_bar_sinkbasin"])
    {'mug_bar_1': 'mug 2', 'mug_bar_2': 'mug 1', 'sink_bar_3_bar_sinkbasin': 'sinkbasin 1'}

    Raises:
        DataError: an id has no ``_bar_``.
    """
    words = {}
    for identity in sorted(ids):
        word, mark, _ = identity.partition("_bar_")
        if not mark:
            raise DataError(f"expected ids such as mug_bar_1, got {identity!r}; regenerate the game")
        words[identity] = word + "basin" if "basin" in identity else word
    left = Counter(words.values())
    names = {}
    for identity, word in words.items():
        names[identity] = f"{word} {left[word]}"
        left[word] -= 1
    return names


def joined(parts: Sequence[str]) -> str:
    """A list in words; the comma before "and" stands even between two.

    >>> joined([]), joined(["a mug 1", "a pan 1"])
    ('nothing', 'a mug 1, and a pan 1')
    """
    if len(parts) < 2:
        return parts[0] if parts else "nothing"
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


def listed(names: Iterable[str]) -> str:
    """A list in words with articles; the article is always "a"."""
    return joined([f"a {name}" for name in names])


def overview(place: str, names: Iterable[str]) -> str:
    """What is seen from the middle of a place.

    >>> overview("room", ["desk 1"])
    'You are in the middle of a room. Looking quickly around you, you see a desk 1.'
    """
    return f"You are in the middle of a {place}. Looking quickly around you, you see {listed(names)}."


def opening(view: str, goal: str) -> str:
    """The first observation: what is seen, and the task in words."""
    return f"-= Welcome to TextWorld, ALFRED! =-\n\n{view}\n\nYour task is to: {goal}."


def described(name: str, *, clean: bool, hot: bool, cool: bool, sliced: bool, used: bool) -> str:
    """What ``examine`` says of an object that holds no other.

    >>> described("apple 1", clean=True, hot=False, cool=True, sliced=True, used=False)
    'This is a cool and clean sliced apple 1.'
    """
    warmth = "hot" if hot else "cool" if cool else ""
    qualities = " and ".join(filter(None, (warmth, "clean" if clean else "")))
    if qualities:
        if qualities == "cool" and not sliced:
            qualities = "cold"
        return f"This is a {qualities}{' sliced' if sliced else ''} {name}."
    if used:
        return f"This {name} is on."
    if sliced:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."
