"""Question: what is asked, what answers it, and where that stands."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its gold answers."""

    id: str
    text: str
    answers: tuple[str, ...]
    """Any of these is right."""
    dataset: str
    """Where it comes from; its results are reported apart."""
    supports: tuple[str, ...] = ()
    """Titles of the passages that hold the answer, in the order in which they are needed; empty where unknown."""
    covered: bool = True
    """Whether the corpus beside it is known to hold passages for it; if not, it needs a retriever of its own."""

    @property
    def plain(self) -> str:
        """The text as it is compared: without capitals, signs and runs of blanks."""
        return " ".join("".join(letter if letter.isalnum() else " " for letter in self.text.casefold()).split())
