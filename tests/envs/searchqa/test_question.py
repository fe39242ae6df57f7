"""How questions are compared."""

from prover.envs.searchqa.question import Question


def test_plain() -> None:
    """Capitals, signs and blanks make no difference; words do."""

    def plain(text: str) -> str:
        return Question(id="q", text=text, answers=("a",), dataset="d").plain

    assert plain('Who  wrote "Émile"?') == plain("who wrote émile") == "who wrote émile"
    assert plain("Who wrote it?") != plain("Who wrote them?")
