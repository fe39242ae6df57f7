"""A small encyclopedia of our own making, with questions: it needs no files, and is the same everywhere.

Its people, towns, books and years (which have names) are invented, so that no answer can be known beforehand. They live
in four worlds, one a split, which share words but no name; all passages lie in one corpus. Some people share their
whole name with another of another profession, and reports on fairs mention people, towns and books without telling
anything that is asked for. The split ``demos`` is for demonstrations: what a policy learns from them by heart is of no
use in the others.

``one_hop`` questions ask for a fact of the thing they name, ``two_hop`` ones for a fact of a thing that another passage
names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from prover.envs.searchqa.question import Question
from prover.retrieval.retriever import Passage
from prover.seeds import generator

_SEED = 20_250_301
_WORLDS = {"demos": 4, "train": 3, "dev": 2, "test": 2}
"""Split -> its size, in shares of ``_SHARE``."""
_PEOPLE, _TOWNS, _BOOKS, _YEARS, _FAIRS = 90, 36, 54, 50, 25
"""Things of a share."""
_QUESTIONS = 400
"""Questions of a share, half of them two-hop."""
_NAMESAKES = 0.08
"""Share of the people whose name another one has."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _words("""
    orla tobin maren cedric ilsa bram nadia oswin petra lucan vera alden freya hugo tilda emmet rosalind kasper
    linnea jory dagny felix imelda soren wanda quill beatrix anselm greta roderick sabine marlo ingrid thaddeus
    yvette conrad
""")
_FAMILY = _words("""
    venn marsh hollis tarrant quince ashdown pell garrick lorne bexley thorne wickham sable harrow dunmore fennick
    ost carrow blythe stroud ravel kestrel munk halloran pike drummond vale orchard finch lockhart teague brandt
    wren caldor mercer holm sutter birch nightingale croft
""")
_TOWN = (
    _words("""
        amber cold iron silver north hazel red upper raven salt grey honey linden foggy oak lower white barley rook
        elder clover stone
    """),
    _words("""
        ferry hollow haven bridge moor crossing fields gate ford harbor mill cross well reach hill point dale quay
        market landing
    """),
)
_BOOK = (
    _words("""
        silent glass borrowed midnight paper seventh hidden wandering hollowed burning quiet painted patient broken
        velvet distant scarlet forgotten winter careful gilded lonely endless stolen eastern
    """),
    _words("""
        orchestra lantern compass sparrow staircase mirror island clockmaker letter garden window ledger bell
        cartographer violin kingdom key shadow ladder promise carousel riddle voyage harvest teacup
    """),
)
_YEAR = (
    _words("""
        copper jade onyx pearl bronze coral cobalt ivory tin quartz marble opal saffron indigo ochre ruby granite
        slate topaz garnet brass chalk flint
    """),
    _words("""
        heron badger falcon otter lynx salmon beetle stag owl tortoise hare pelican viper crane mole antelope jackal
        swan bison lark weasel gull trout marten
    """),
)
_PROFESSIONS = _words("painter composer botanist architect navigator physician sculptor printer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Encyclopedia:
    """Passages and questions."""

    passages: tuple[Passage, ...]
    splits: Mapping[str, tuple[Question, ...]]


@dataclass(slots=True, eq=False)
class _Thing:
    """An entry: its facts lead to other things, or to the name of a year."""

    kind: str
    name: str
    profession: str = ""
    title: str = ""
    facts: dict[str, "_Thing"] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """How texts speak of it."""
        return f"the {self.profession} {self.name}" if self.profession else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A kind of question: ``{}`` stands for the thing that it names, ``path`` leads from there to the answer."""

    kind: str
    path: tuple[str, ...]
    text: str


_FORMS = (
    _Form(kind="person", path=("born in",), text="Where was {} born?"),
    _Form(kind="person", path=("born when",), text="In which year was {} born?"),
    _Form(kind="person", path=("teacher",), text="Who taught {}?"),
    _Form(kind="town", path=("founder",), text="Who founded the town {}?"),
    _Form(kind="town", path=("founded when",), text="In which year was the town {} founded?"),
    _Form(kind="book", path=("author",), text="Who wrote the book {}?"),
    _Form(kind="book", path=("set in",), text="In which town is the book {} set?"),
    _Form(kind="book", path=("appeared when",), text="In which year did the book {} appear?"),
    _Form(kind="person", path=("born in", "founder"), text="Who founded the town where {} was born?"),
    _Form(kind="person", path=("teacher", "born in"), text="Where was the teacher of {} born?"),
    _Form(kind="person", path=("teacher", "teacher"), text="Who taught the teacher of {}?"),
    _Form(kind="town", path=("founder", "born when"), text="In which year was the founder of the town {} born?"),
    _Form(kind="town", path=("founder", "teacher"), text="Who taught the founder of the town {}?"),
    _Form(kind="book", path=("author", "born in"), text="Where was the author of the book {} born?"),
    _Form(kind="book", path=("author", "born when"), text="In which year was the author of the book {} born?"),
    _Form(kind="book", path=("author", "teacher"), text="Who taught the author of the book {}?"),
    _Form(kind="book", path=("set in", "founder"), text="Who founded the town in which the book {} is set?"),
)


@lru_cache(maxsize=1)
def encyclopedia() -> Encyclopedia:
    """The encyclopedia, always the same object."""
    rng = generator(_SEED)
    names = {
        "person": _names(_FIRST, _FAMILY, rng),
        "town": _names(*_TOWN, rng),
        "book": _names(*_BOOK, rng),
        "year": _names(*_YEAR, rng),
    }
    passages: list[Passage] = []
    splits: dict[str, tuple[Question, ...]] = {}
    for split, share in _WORLDS.items():
        world = _world(names, share, rng)
        passages += [_passage(thing) for thing in world if thing.kind != "year"]
        passages += _fairs(world, share, rng)
        splits[split] = _questions(world, split, share, rng)
    return Encyclopedia(passages=tuple(sorted(passages, key=lambda passage: passage.id)), splits=splits)


def _names(first: Sequence[str], second: Sequence[str], rng: np.random.Generator) -> list[str]:
    """All pairs of words in random order; they are used up from the end."""
    pairs = [f"{one.title()} {two.title()}" for one in first for two in second]
    return [pairs[int(place)] for place in rng.permutation(len(pairs))]


def _world(names: Mapping[str, list[str]], share: int, rng: np.random.Generator) -> list[_Thing]:
    """People, towns, books and years with facts that stay among them."""
    years = [_Thing("year", names["year"].pop()) for _ in range(_YEARS * share)]
    towns = [_Thing("town", names["town"].pop()) for _ in range(_TOWNS * share)]
    books = [_Thing("book", names["book"].pop()) for _ in range(_BOOKS * share)]
    people = _people(names["person"], _PEOPLE * share, rng)
    # Facts are dealt out like cards, so that no answer is much more frequent than another.
    for person, town, year in zip(people, _dealt(towns, rng), _dealt(years, rng), strict=False):
        person.facts |= {"born in": town, "born when": year}
    for place, teacher in zip(rng.permutation(len(people)), _dealt(people, rng), strict=False):
        if people[place].name != teacher.name:
            people[place].facts["teacher"] = teacher
    for town, founder, year in zip(towns, _dealt(people, rng), _dealt(years, rng), strict=False):
        town.facts |= {"founder": founder, "founded when": year}
    for book, author, town, year in zip(
        books, _dealt(people, rng), _dealt(towns, rng), _dealt(years, rng), strict=False
    ):
        book.facts |= {"author": author, "set in": town, "appeared when": year}
    return [*people, *towns, *books, *years]


def _people(names: list[str], n: int, rng: np.random.Generator) -> list[_Thing]:
    people: list[_Thing] = []
    for number in range(n):
        shared = number > 0 and rng.random() < _NAMESAKES and not people[-1].title
        profession = _PROFESSIONS[int(rng.integers(len(_PROFESSIONS)))]
        person = _Thing("person", people[-1].name if shared else names.pop(), profession)
        if shared:
            if people[-1].profession == profession:
                person.profession = _PROFESSIONS[(_PROFESSIONS.index(profession) + 1) % len(_PROFESSIONS)]
            for namesake in (people[-1], person):
                namesake.title = f"{namesake.name} ({namesake.profession})"
        people.append(person)
    return people


def _dealt(things: Sequence[_Thing], rng: np.random.Generator) -> "list[_Thing]":
    """Every thing once in random order, then once more, and so on; long enough for all uses."""
    return [things[int(place)] for _ in range(12) for place in rng.permutation(len(things))]


def _passage(thing: _Thing) -> Passage:
    facts = {name: fact.called for name, fact in thing.facts.items()}
    if thing.kind == "person":
        article = "an" if thing.profession[0] in "aeiou" else "a"
        text = f"{thing.name} was {article} {thing.profession}, born in {facts['born in']} "
        text += f"in the year of the {facts['born when']}."
        if "teacher" in facts:
            text += f" {thing.name} was taught by {facts['teacher']}."
    elif thing.kind == "town":
        text = (
            f"{thing.name} is a town. It was founded by {facts['founder']} in the year of the {facts['founded when']}."
        )
    else:
        text = (
            f"{thing.name} is a book written by {facts['author']}. It is set in {facts['set in']} and appeared in the "
            f"year of the {facts['appeared when']}."
        )
    title = thing.title or thing.name
    return Passage(id=f"{thing.kind}-{_slug(title)}", title=title, text=text)


def _fairs(world: Sequence[_Thing], share: int, rng: np.random.Generator) -> list[Passage]:
    """Reports that mention things of the world and tell nothing that is asked for."""
    of = {kind: [thing for thing in world if thing.kind == kind] for kind in ("person", "town", "book", "year")}
    guests, books, years = (_dealt(of[kind], rng) for kind in ("person", "book", "year"))
    return [
        Passage(
            id=f"fair-{_slug(town.name)}",
            title=f"{town.name} fair",
            text=(
                f"The fair of {town.name} was opened by {guest.called} and closed with a reading from {book.name}. "
                f"The largest one took place in the year of the {year.name}."
            ),
        )
        for town, guest, book, year in zip(of["town"][: _FAIRS * share], guests, books, years, strict=False)
    ]


def _questions(world: Sequence[_Thing], split: str, share: int, rng: np.random.Generator) -> tuple[Question, ...]:
    """As many one-hop as two-hop questions, in random order."""
    by_hops: dict[int, list[Question]] = {1: [], 2: []}
    for form in _FORMS:
        for thing in world:
            if thing.kind == form.kind and (question := _question(form, thing, split)) is not None:
                by_hops[len(form.path)].append(question)
    half = _QUESTIONS * share // 2
    chosen = [of[int(place)] for of in by_hops.values() for place in rng.permutation(len(of))[:half]]
    return tuple(chosen[int(place)] for place in rng.permutation(len(chosen)))


def _question(form: _Form, thing: _Thing, split: str) -> Question | None:
    supports, end = list[str](), thing
    for fact in form.path:
        supports.append(end.title or end.name)
        if fact not in end.facts:
            return None
        end = end.facts[fact]
    if end.name == thing.name:
        return None  # Whoever founded the town of their birth would be asked for by name.
    return Question(
        id=f"{split}-{_slug(' '.join(form.path))}-{_slug(thing.title or thing.name)}",
        text=form.text.format(thing.called),
        answers=(end.name,),
        dataset={1: "one_hop", 2: "two_hop"}[len(form.path)],
        supports=tuple(supports),
    )


def _slug(text: str) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())
