"""How fast and how well the retrievers search on this machine, on one core.

    python benchmarks/searchqa_speed.py FOLDER [--grow N]

Seconds are those of the processor, so that other work on the machine counts little; a second start is timed by the
clock too. FOLDER has the layout of SearchQA: corpus.jsonl and files of questions with supporting_titles, plain or in
gzip. Every figure stands beside that of a reference that is measured in the same run: bm25s's own ``retrieve`` on the
same index, SQLite's FTS5, tantivy where it is installed, and making the index for opening it. With ``--grow`` it then
measures N passages recombined from the sentences of the corpus.
"""

import argparse
import gzip
import json
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s

from prover.retrieval import Passage, Retriever
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.corpus import read_corpus
from prover.retrieval.terms import terms
from prover.seeds import generator

START = """
import sys, time
start = time.perf_counter()  # the interpreter itself has started: 0.01 s
from pathlib import Path
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.corpus import read_corpus
Bm25Retriever(read_corpus(Path(sys.argv[1])), cache=Path(sys.argv[2])).search([sys.argv[3]], 3)
print(time.process_time(), time.perf_counter() - start)
"""
Search = Callable[[Sequence[str], int], object]


def seconds(action: Callable[[], object]) -> float:
    """How much of the processor an action takes."""
    start = time.process_time()
    action()
    return time.process_time() - start


def singles(search: Search, queries: Sequence[str]) -> tuple[float, float]:
    """Median and 95th percentile of single searches, in milliseconds."""
    search(queries[:20], 3)
    taken = [1e3 * seconds(lambda query=query: search([query], 3)) for query in queries]
    return statistics.median(taken), statistics.quantiles(taken, n=20)[-1]


def questions(folder: Path) -> list[dict[str, Any]]:
    """All questions of a folder, each with its split."""
    rows = []
    for file in sorted(folder.glob("*.jsonl*")):
        split = file.name.partition(".")[0]
        if split != "corpus":
            with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
                rows += [{**json.loads(line), "split": split} for line in lines]
    return [row for row in rows if row.get("supporting_titles")]


def recall(retriever: Retriever, rows: Sequence[dict[str, Any]], k: int) -> float:
    """Mean share of the supporting titles among the first k passages."""
    shares = []
    for row, hits in zip(rows, retriever.search([row["question"] for row in rows], k), strict=True):
        titles = set(row["supporting_titles"])
        shares.append(len(titles & {hit.passage.title for hit in hits}) / len(titles))
    return statistics.fmean(shares)


def bm25s_alone(retriever: Bm25Retriever) -> Search:
    """The search that bm25s offers, on the same index and with the same terms."""
    index = retriever._index  # the public way would search by itself

    def search(queries: Sequence[str], k: int) -> object:
        tokens = [[term for term in terms(query) if term in index.vocab_dict] for query in queries]
        return index.retrieve(tokens, k=k, show_progress=False, n_threads=0)

    return search


def fts5(passages: Sequence[Passage]) -> Search:
    """SQLite's full-text search, any of the words, in memory."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE p USING fts5(title, text, tokenize='porter')")
    base.executemany("INSERT INTO p VALUES (?, ?)", [(passage.title, passage.text) for passage in passages])

    def search(queries: Sequence[str], k: int) -> object:
        wanted = [" OR ".join(f'"{word}"' for word in re.findall(r"\w\w+", query)) for query in queries]
        return [base.execute("SELECT rowid FROM p(?) ORDER BY rank LIMIT ?", (q, k)).fetchall() for q in wanted]

    return search


def tantivy(passages: Sequence[Passage]) -> Retriever | None:
    """The other engine, if it is installed."""
    try:
        from prover.retrieval.tantivy import TantivyRetriever
    except ImportError:
        return None
    return TantivyRetriever(passages)


def recombined(passages: Sequence[Passage], n: int) -> list[Passage]:
    """Passages of three to five sentences from anywhere, under the titles there are."""
    rng = generator(0)
    sentences = [s for passage in passages for s in re.split(r"(?<=[.!?]) ", passage.text) if len(s) > 20]
    picks = rng.integers(len(sentences), size=(n, 5))
    sizes = rng.integers(3, 6, size=n)
    return [
        Passage(
            id=f"{number:08}",
            title=passages[number % len(passages)].title,
            text=" ".join(sentences[pick] for pick in picks[number, : sizes[number]]),
        )
        for number in range(n)
    ]


def grown(passages: Sequence[Passage], n: int, queries: Sequence[str], cache: Path) -> None:
    """Print what an index of n passages costs."""
    corpus = recombined(passages, n)
    folder = cache / "grown"
    folder.mkdir()
    with (folder / "corpus.jsonl").open("w") as file:
        for passage in corpus:
            file.write(json.dumps({"id": passage.id, "title": passage.title, "text": passage.text}) + "\n")
    made = seconds(lambda: Bm25Retriever(corpus, cache=cache))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    retriever = Bm25Retriever(corpus, cache=cache)
    median, high = singles(retriever.search, queries[:300])
    batch = seconds(lambda: retriever.search(queries[:512], 3))
    size = sum(f.stat().st_size for f in (cache / "retrieval" / f"bm25-{retriever.fingerprint}").iterdir()) / 1e6
    print(f"\n{n:,} recombined passages, {(folder / 'corpus.jsonl').stat().st_size / 1e6:.0f} MB of JSONL")
    print(f"  making the index {made:.0f} s, peak of the process {peak:.1f} GB, on disk {size:.0f} MB")
    again, passed = start(folder, cache, queries[0])
    print(f"  second start {again:.1f} s ({passed:.1f} s by the clock)")
    print(f"  one query {median:.1f} ms (95% below {high:.1f}), 512 queries {batch:.1f} s")


def start(folder: Path, cache: Path, query: str) -> tuple[float, float]:
    """Seconds from a fresh interpreter to the first answer, index on disk: of the processor, and by the clock."""
    command = [sys.executable, "-c", START, str(folder), str(cache), query]
    used, passed = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    return float(used), float(passed)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with corpus and questions")
    parser.add_argument("--grow", type=int, metavar="N", help="measure N recombined passages too")
    options = parser.parse_args()
    passages, rows = read_corpus(options.folder), questions(options.folder)
    queries = [row["question"] for row in rows[:: max(1, len(rows) // 1000)]]
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        made = seconds(lambda: Bm25Retriever(passages, cache=cache))
        retriever = Bm25Retriever(passages, cache=cache)
        again, passed = sorted(start(options.folder, cache, queries[0]) for _ in range(3))[1]
        print(f"{len(passages):,} passages, {len(rows):,} questions, bm25s {bm25s.__version__}\n")
        print(f"making the index       {made:6.2f} s")
        print(
            f"second start           {again:6.2f} s   x {again / made:.2f} of making it ({passed:.2f} s by the clock)"
        )
        median, high = singles(retriever.search, queries)
        print(f"one query, median      {median:6.2f} ms   95% below {high:.2f} ms")
        batch = seconds(lambda: retriever.search(queries[:512], 3))
        print(f"512 queries            {batch:6.2f} s")
        references = {"bm25s.retrieve": bm25s_alone(retriever), "SQLite FTS5": fts5(passages)}
        other = tantivy(passages)
        if other is not None:
            references["tantivy"] = other.search
        for reference, search in references.items():
            of_one = singles(search, queries[:100])[0]
            of_many = seconds(lambda search=search: search(queries[:64], 3)) * len(queries[:512]) / len(queries[:64])
            print(
                f"  against {reference:<15} one query x {median / of_one:.3f} of {of_one:.2f} ms, "
                f"512 queries x {batch / of_many:.3f} of {of_many:.1f} s"
            )
        print("\nrecall of supporting titles   @3    @5")
        for split in [*sorted({row["split"] for row in rows}), ""]:
            part = [row for row in rows if split in row["split"]]
            for title, engine in [("bm25", retriever), *([("tantivy", other)] if other else [])]:
                label = f"{title}, {split or 'all'} ({len(part):,})"
                print(f"  {label:<26} {recall(engine, part, 3):.3f} {recall(engine, part, 5):.3f}")
        if options.grow:
            grown(passages, options.grow, queries, cache)


if __name__ == "__main__":
    main()
