"""The made-up encyclopedia."""

import subprocess
import sys
from collections import Counter
from itertools import combinations

from prover.envs.searchqa.generated import encyclopedia
from prover.envs.searchqa.library import open_library
from prover.envs.searchqa.names import names
from prover.envs.searchqa.scoring import standard
from prover.policies.words import WORDS


def test_sizes() -> None:
    """Two thousand passages and more; one and two hops in equal numbers."""
    made = encyclopedia()
    assert len(made.passages) == len({passage.id for passage in made.passages}) == 2255
    sizes = {split: len(asked) for split, asked in made.splits.items()}
    assert sizes == {"demos": 1600, "train": 1200, "dev": 800, "test": 800}
    for asked in made.splits.values():
        assert Counter(question.dataset for question in asked) == {"one_hop": len(asked) / 2, "two_hop": len(asked) / 2}


def test_answers_cannot_be_guessed() -> None:
    """No answer is right for 2% of a split's questions, and none stands in its question."""
    for asked in encyclopedia().splits.values():
        answers = Counter(question.answers[0] for question in asked)
        assert answers.most_common(1)[0][1] < 0.02 * len(asked)
        assert [q.id for q in asked if standard(q.answers[0]) in standard(q.text)] == []


def test_answers_are_learnt_in_one_split_only() -> None:
    """No answer and no thing that is asked about occurs in two splits."""
    things = [
        {name for question in asked for name in (*question.answers, *question.supports)}
        for asked in encyclopedia().splits.values()
    ]
    assert all(not one & two for one, two in combinations(things, 2))


def test_answers_stand_in_the_last_passage_and_bridges_in_the_one_before() -> None:
    """The supports are passages; each names the next, and the last one the answer."""
    by_title = {passage.title: passage for passage in encyclopedia().passages}
    for asked in encyclopedia().splits.values():
        for question in asked:
            texts = [by_title[title].text for title in question.supports]
            assert question.answers[0] in texts[-1]
            named = question.supports[-1].partition(" (")[0]
            assert question.dataset == "one_hop" or named in texts[0]
            assert question.supports[0].partition(" (")[0] in question.text


def test_there_are_namesakes() -> None:
    """Some names belong to two people of different professions, and the question says which one is meant."""
    people = [passage.title for passage in encyclopedia().passages if passage.id.startswith("person-")]
    shared = Counter(title.partition(" (")[0] for title in people if " (" in title)
    assert 50 <= len(shared) <= 90
    assert set(shared.values()) == {2}
    asked = [q for questions in encyclopedia().splits.values() for q in questions if " (" in q.supports[0]]
    assert len(asked) > 50
    for question in asked:
        name, _, profession = question.supports[0].rstrip(")").partition(" (")
        assert f"the {profession} {name}" in question.text


def test_small_policies_can_say_every_name() -> None:
    """Names are runs of capitals without function words."""
    for passage in encyclopedia().passages:
        for name in names(passage.text):
            assert len(name.split()) == 2
            assert not {word.lower() for word in name.split()} & set(WORDS)


def test_it_is_the_same_everywhere() -> None:
    """Another process, with other hashes, makes the same."""
    code = (
        "from prover.envs.searchqa.library import open_library\n"
        "library = open_library('generated'); print(library.manifest(), library.corpus())"
    )
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
    library = open_library("generated")
    assert done.stdout.strip() == f"{library.manifest()} {library.corpus()}"
    assert library.digest("test") == "ec2a97fc4af8cbb8"
