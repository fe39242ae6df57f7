"""Kept answers: who asks the same again sees the same passages, later in a run, after a resume, or offline.

One SQLite file for all threads and processes. An answer belongs to the retriever's fingerprint, the query (its white
space normalised) and k; it holds the passages themselves, each stored once, so that it outlives a change of the index.
Where two processes ask the same at once, both get the answer that was stored first.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

from prover.errors import DataError
from prover.retrieval.flights import Flights
from prover.retrieval.retriever import Hit, Passage, Retriever

_SCHEMA = """
CREATE TABLE IF NOT EXISTS passages (hash TEXT PRIMARY KEY, id TEXT, title TEXT, text TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    retriever TEXT, query TEXT, k INTEGER, hits TEXT, PRIMARY KEY (retriever, query, k)
) WITHOUT ROWID;
"""
_BUSY_S = 60.0
"""How long to wait for another process that is writing."""


class CachedRetriever:
    """Answers what has been asked before from a file, and keeps what has not.

    Args:
        inner: whom to ask; it is closed with this retriever.
        path: the SQLite file, made where there is none; ``:memory:`` keeps answers as long as this object.
        mode: ``run`` and ``record`` ask for what is missing and keep it; ``replay`` never asks and never writes.

    Raises:
        DataError: the file cannot be opened, is no SQLite file, or is missing in ``replay``.
    """

    def __init__(self, inner: Retriever, path: Path | str, mode: Literal["run", "record", "replay"] = "run") -> None:
        self.inner = inner
        self.fingerprint = inner.fingerprint
        self.path = path
        self.mode = mode
        self._flights: Flights[tuple[str, int], tuple[Hit, ...]] = Flights()
        self._lock = threading.Lock()  # One connection, used by one thread at a time.
        self._file = self._open()

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """The kept answers, or those of the inner retriever, to the queries with their white space normalised.

        Raises:
            DataError: an answer is missing in ``replay``; the message names the query.
            ServiceError: as the inner retriever.
        """
        keys = [(" ".join(query.split()), k) for query in queries]
        asked, mine = self._flights.join(keys)
        if mine:
            try:
                answers = self._answers([query for query, _ in mine], k)
            except BaseException as error:
                for key in mine:
                    self._flights.fail(key, error)
                raise
            for key in mine:
                self._flights.land(key, answers[key[0]])
        return [asked[key].result() for key in keys]

    def close(self) -> None:
        """Close the file and the inner retriever."""
        with self._lock:
            self._file.close()
        self.inner.close()

    def _open(self) -> sqlite3.Connection:
        try:
            if self.mode == "replay":
                if not Path(self.path).is_file():
                    raise sqlite3.OperationalError("there is no such file")
                # In a folder that nobody can write to, SQLite must be told that nobody does.
                writable = os.access(Path(self.path).absolute().parent, os.W_OK)
                where = f"{Path(self.path).absolute().as_uri()}?{'mode=ro' if writable else 'immutable=1'}"
            else:
                where = ":memory:"
                if self.path != where:
                    Path(self.path).parent.mkdir(parents=True, exist_ok=True)
                    where = Path(self.path).absolute().as_uri()
            file = sqlite3.connect(where, uri=True, timeout=_BUSY_S, check_same_thread=False)
            try:
                if self.mode != "replay":
                    file.execute("PRAGMA journal_mode=WAL")
                    file.execute("PRAGMA synchronous=NORMAL")
                    file.executescript(_SCHEMA)
                file.execute("SELECT count(*) FROM answers LEFT JOIN passages ON 0 LIMIT 1").fetchone()
            except sqlite3.Error:
                file.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise DataError(
                f"Expected a file of kept answers (SQLite) at cache_path {self.path}, got: {error}. Name another file, "
                "or make one with cache=record."
            ) from error
        return file

    def _answers(self, queries: list[str], k: int) -> dict[str, tuple[Hit, ...]]:
        """The answers to distinct queries, kept from now on."""
        found = self._kept(queries, k)
        missing = [query for query in queries if query not in found]
        if not missing:
            return found
        if self.mode == "replay":
            raise DataError(
                f"Expected a kept answer to the query {missing[0]!r} with k={k} in {self.path}, got none of retriever "
                f"{self.fingerprint}. Record it with cache=record, with the same retriever and the same k."
            )
        self._keep(dict(zip(missing, self.inner.search(missing, k), strict=True)), k)
        # Read back: another process may have been first.
        return found | self._kept(missing, k)

    def _kept(self, queries: list[str], k: int) -> dict[str, tuple[Hit, ...]]:
        found = {}
        with self._lock:
            for query in queries:
                row = self._file.execute(
                    "SELECT hits FROM answers WHERE retriever = ? AND query = ? AND k = ?",
                    (self.fingerprint, _text(query), k),
                ).fetchone()
                if row is not None:
                    found[query] = tuple(self._hit(name, score) for name, score in json.loads(row[0]))
        return found

    def _hit(self, name: str, score: float) -> Hit:
        row = self._file.execute("SELECT id, title, text FROM passages WHERE hash = ?", (name,)).fetchone()
        return Hit(passage=Passage(id=_str(row[0]), title=_str(row[1]), text=_str(row[2])), score=score)

    def _keep(self, answers: dict[str, tuple[Hit, ...]], k: int) -> None:
        passages = {}
        rows = []
        for query, hits in answers.items():
            named = [(_name(hit.passage), hit) for hit in hits]
            passages.update({name: hit.passage for name, hit in named})
            listed = json.dumps([[name, hit.score] for name, hit in named])
            rows.append((self.fingerprint, _text(query), k, listed))
        with self._lock, self._file:  # One transaction: an answer is never there without its passages.
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany(
                "INSERT OR IGNORE INTO passages VALUES (?, ?, ?, ?)",
                [(name, _text(p.id), _text(p.title), _text(p.text)) for name, p in passages.items()],
            )
            self._file.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)


def _name(passage: Passage) -> str:
    return sha256(json.dumps((passage.id, passage.title, passage.text)).encode()).hexdigest()


def _text(text: str) -> str | bytes:
    """Text as SQLite takes it: halves of surrogate pairs, which a model may write, only as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _str(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")
