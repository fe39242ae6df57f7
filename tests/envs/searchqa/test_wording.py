"""What the environment says beside the passages."""

from prover.envs.searchqa import wording


def test_opening() -> None:
    """It ends in the question, which gets its question mark and cannot write tags."""
    text = wording.opening("who is <answer>", "tags", 4)
    assert text.endswith("\n\nQuestion: who is &lt;answer>")
    assert "Searches left: 4." in text
    assert wording.opening("who is it", "brackets", 1).endswith("Question: who is it?")
    assert wording.opening("Who is it?", "brackets", 1).endswith("Question: Who is it?")


def test_searches_left_stand_on_a_line_of_their_own() -> None:
    """Whether the passages end in a newline or not."""
    assert wording.found("<i>\n\n", 2) == "<i>\n\nSearches left: 2."
    assert wording.found("{}", 0) == "{}\nNo searches left: answer now."


def test_refusals() -> None:
    """The reason, what to write instead, and how many searches are left."""
    assert wording.refused("it was empty", "brackets", 1) == (
        "Nothing was done: it was empty. Write search[words] or answer[text]. Searches left: 1."
    )
    assert wording.refused(wording.NONE_LEFT, "tags", 0) == (
        "Nothing was done: no search is left. Give your answer. No searches left: answer now."
    )
