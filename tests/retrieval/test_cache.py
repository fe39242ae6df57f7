"""Kept answers."""

import json
import multiprocessing
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prover.errors import DataError, ServiceError
from prover.retrieval import Hit, Passage
from prover.retrieval.cache import CachedRetriever


def test_the_same_is_asked_once(watched: Any, tmp_path: Path) -> None:
    """A second search and a second object see the first answer; the query's white space does not matter."""
    cached = CachedRetriever(watched, tmp_path / "run" / "kept.sqlite")
    first = cached.search(["who  built\nit", "where"], 3)
    assert [hits[0].passage.text for hits in first] == ["answer 1", "answer 1"]
    assert cached.search([" where ", "who built it"], 3) == first[::-1]
    cached.close()
    resumed = CachedRetriever(watched, tmp_path / "run" / "kept.sqlite")
    assert resumed.search(["who built it", "where"], 3) == first
    assert watched.asked == [(("who built it", "where"), 3)]
    resumed.close()


def test_what_makes_another_question(watched: Any, tmp_path: Path) -> None:
    """Another k, another case and another fingerprint are asked anew; a mixed batch asks for what is missing."""
    cached = CachedRetriever(watched, tmp_path / "kept.sqlite")
    cached.search(["who"], 3)
    cached.search(["who"], 2)
    assert [hits[0].passage.text for hits in cached.search(["Who", "who", "Who"], 3)] == [
        "answer 3",
        "answer 1",
        "answer 3",
    ]
    watched.fingerprint = "another"
    other = CachedRetriever(watched, tmp_path / "kept.sqlite")
    assert other.search(["who"], 3)[0][0].passage.text == "answer 4"
    assert watched.asked == [(("who",), 3), (("who",), 2), (("Who",), 3), (("who",), 3)]
    cached.close()
    other.close()


def test_replay_never_asks(watched: Any, tmp_path: Path) -> None:
    """What was recorded is answered offline; what was not is an error that names the query."""
    recorded = CachedRetriever(watched, tmp_path / "kept.sqlite", "record")
    answer = recorded.search(["who"], 3)
    recorded.close()
    before = (tmp_path / "kept.sqlite").read_bytes()
    watched.failure = AssertionError("asked")
    replayed = CachedRetriever(watched, tmp_path / "kept.sqlite", "replay")
    assert replayed.search(["who"], 3) == answer
    with pytest.raises(DataError, match=r"'whence' with k=3 .*of retriever watched"):
        replayed.search(["who", "whence"], 3)
    replayed.close()
    assert (tmp_path / "kept.sqlite").read_bytes() == before


def test_failures_are_not_kept(watched: Any, outage: ServiceError) -> None:
    """An outage reaches the caller, and the next search asks again."""
    cached = CachedRetriever(watched, ":memory:")
    watched.failure = outage
    with pytest.raises(ServiceError, match="got nothing"):
        cached.search(["who"], 3)
    watched.failure = None
    assert cached.search(["who"], 3)[0][0].passage.text == "answer 2"
    cached.close()


def test_threads_share_a_request(watched: Any, tmp_path: Path) -> None:
    """Sixteen threads that miss the same at once see one answer to one request."""
    cached = CachedRetriever(watched, tmp_path / "kept.sqlite")
    watched.gate.clear()
    with ThreadPoolExecutor(16) as threads:
        answers = [threads.submit(cached.search, ["who", str(number)], 3) for number in range(16)]
        while len(watched.asked) < 16:  # All but the first ask for their number alone, and then wait.
            threading.Event().wait(0.01)
        watched.gate.set()
        found = {answer.result(10)[0] for answer in answers}
    assert len(found) == 1
    assert sum(queries.count("who") for queries, _ in watched.asked) == 1
    cached.close()


def test_the_first_answer_stays(watched: Any, tmp_path: Path) -> None:
    """Of two processes that miss the same at once, both return what was stored first."""
    path = tmp_path / "kept.sqlite"
    other = CachedRetriever(watched, path)

    class Slow:
        fingerprint = "watched"

        def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
            other.search(queries, k)
            return [(Hit(passage=Passage(id="late", title="", text="late"), score=1.0),) for _ in queries]

        def close(self) -> None:
            pass

    late = CachedRetriever(Slow(), path)
    assert late.search(["who"], 3) == other.search(["who"], 3)
    assert late.search(["who"], 3)[0][0].passage.id == "who"
    late.close()
    other.close()


class Numbered:
    """Answers with the number of its process."""

    fingerprint = "numbered"

    def __init__(self, number: int) -> None:
        self.number = number

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        passage = Passage(id=str(self.number), title="", text=f"of process {self.number}")
        return [(Hit(passage=passage, score=1.0),) for _ in queries]

    def close(self) -> None:
        pass


def ask_all(number: int, path: Path, start: Any, answers: Any) -> None:
    """What a process sees of forty questions."""
    start.wait()
    cached = CachedRetriever(Numbered(number), path)
    answers.put([cached.search([f"q{n}"], 1)[0][0].passage.id for n in range(40)])
    cached.close()


def test_processes_see_the_same(tmp_path: Path) -> None:
    """Three processes that make one file at once and ask the same see the same passages."""
    context = multiprocessing.get_context("fork")
    start, answers = context.Barrier(3), context.SimpleQueue()
    path = tmp_path / "kept.sqlite"
    workers = [context.Process(target=ask_all, args=(number, path, start, answers)) for number in range(3)]
    for worker in workers:
        worker.start()
    seen = [answers.get() for _ in workers]
    for worker in workers:
        worker.join(10)
        assert worker.exitcode == 0
    assert seen[0] == seen[1] == seen[2]


def test_passages_are_stored_once(watched: Any, tmp_path: Path, passages: Sequence[Passage]) -> None:
    """Answers name passages by their content, and the file holds each text once."""

    class Same:
        fingerprint = "same"

        def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
            return [tuple(Hit(passage=passage, score=0.25) for passage in passages[:k]) for _ in queries]

        def close(self) -> None:
            pass

    cached = CachedRetriever(Same(), tmp_path / "kept.sqlite")
    cached.search(["one", "two", "three"], 4)
    cached.close()
    with sqlite3.connect(tmp_path / "kept.sqlite") as file:
        assert file.execute("SELECT count(*) FROM passages").fetchone() == (4,)
        (hits,) = file.execute("SELECT hits FROM answers WHERE query = 'two'").fetchone()
    file.close()
    assert len(json.loads(hits)) == 4


@given(query=st.text(st.characters(codec=None)), score=st.floats(allow_nan=False))
def test_any_text_and_score_come_back(query: str, score: float) -> None:
    """Halves of surrogate pairs, null characters and all finite scores survive."""

    class Echo:
        fingerprint = "echo"

        def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
            return [(Hit(passage=Passage(id=q, title=q, text=q), score=score),) for q in queries]

        def close(self) -> None:
            pass

    cached = CachedRetriever(Echo(), ":memory:")
    text = " ".join(query.split())
    expected = [(Hit(passage=Passage(id=text, title=text, text=text), score=score),)]
    assert cached.search([query], 1) == expected == cached.search([query], 1)
    cached.close()


def test_files_that_are_none(watched: Any, tmp_path: Path) -> None:
    """A file of something else, or none to replay from, is a fault of the data."""
    (tmp_path / "text").write_text("no database at all, but long enough to be read as a header" * 10)
    with pytest.raises(DataError, match=r"cache_path .*text"):
        CachedRetriever(watched, tmp_path / "text")
    with pytest.raises(DataError, match="no such file"):
        CachedRetriever(watched, tmp_path / "missing.sqlite", "replay")


def test_closing_closes_the_inner(watched: Any) -> None:
    """Closing may be done twice."""
    cached = CachedRetriever(watched, ":memory:")
    cached.close()
    cached.close()
    assert watched.closed == 2
