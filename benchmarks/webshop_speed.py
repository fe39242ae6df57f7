"""How fast the WebShop engine is on this machine, on one core.

    python benchmarks/webshop_speed.py [FOLDER] [--index tantivy]

Walks through a shop at random and prints what a step, a search, loading and ten thousand live sessions cost, beside
what a step of WebShop's own text environment costs. Without a folder with WebShop's data the shop is the generated one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import tracemalloc

from prover.envs.webshop import Session, WebShopEnv
from prover.envs.webshop.analysis import terms
from prover.envs.webshop.catalogue import open_shop
from prover.envs.webshop.index_cache import KINDS
from prover.envs.webshop.query import proposals
from prover.seeds import generator

LOAD = """
import sys, time
from prover.envs.webshop import WebShopEnv
start = time.perf_counter()
WebShopEnv(data=sys.argv[1], index=sys.argv[2])
print(time.perf_counter() - start)
"""

ORIGINAL = (57, 72)
"""Milliseconds of a mean step of WebShop's own text environment: its templates, parser of HTML and spaCy, on its 1000
products, its searches answered at once; 82 random episodes on a busy machine of two cores. It can not run here."""


def walk(env: WebShopEnv, n: int, seed: int = 0) -> tuple[list[float], list[float], list[Session]]:
    """Random admissible actions: seconds of each click and of each search step, and the sessions they lead to."""
    rng = generator(seed)
    tasks = env.tasks("train")
    clicks, searches, sessions = [], [], []
    info, done = {}, True
    for _ in range(n):
        if done:
            _, info = env.reset(options={"task": tasks[int(rng.integers(len(tasks)))]})
        choices = info["admissible_actions"]
        action = choices[int(rng.integers(len(choices)))]
        start = time.perf_counter()
        _, _, done, _, info = env.step(action)
        taken = time.perf_counter() - start
        (searches if action.startswith("search[") else clicks).append(taken)
        sessions.append(env.snapshot())
    return clicks, searches, sessions


def search_seconds(env: WebShopEnv, n: int) -> list[float]:
    """Seconds of single searches with the words of goals, analysis included and nothing remembered."""
    shop = env._shop  # the public way would remember its answers
    queries = [proposals(goal.text)[0] for goal in list(shop.goals.values())[:: max(1, len(shop.goals) // n)]]
    taken = []
    for query in queries:
        start = time.perf_counter()
        shop._index.search(terms(query))
        taken.append(time.perf_counter() - start)
    return taken


def live_megabytes(env: WebShopEnv, n: int) -> float:
    """Memory of ``n`` distinct sessions that are kept at once."""
    tracemalloc.start()
    sessions = walk(env, n, seed=1)[2]
    # Through JSON, so that none shares its parts with another.
    kept = [Session.from_json(json.loads(json.dumps(session.to_json()))) for session in sessions]
    before = tracemalloc.get_traced_memory()[0]
    kept.clear()
    used = before - tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / 1e6


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="generated", help="folder with WebShop's data")
    parser.add_argument("--index", choices=KINDS, default="exact", help="how searches rank")
    given = parser.parse_args()
    env = WebShopEnv(data=given.folder, index=given.index)
    shop, _ = open_shop(given.folder, index=given.index)
    clicks, searches, sessions = walk(env, 20_000)
    step = statistics.mean([*clicks, *searches]) * 1e3
    sizes = [len(json.dumps(session.to_json())) for session in sessions]
    load = [sys.executable, "-c", LOAD]
    loads = [
        float(subprocess.run([*load, given.folder, given.index], capture_output=True, check=True, text=True).stdout)
        for _ in range(5)
    ]
    print(f"products, goals                {len(shop.products):,}, {len(shop.goals):,}")
    print(f"searches                       {shop.ranking}")
    print(f"step, mean                     {step:.2f} ms")
    low, high = ORIGINAL
    print(f"step of the original, mean     {low}-{high} ms: {low / step:,.0f} to {high / step:,.0f} times as long")
    print(f"load from the cache            {statistics.median(loads):.2f} s")
    print(f"click step, median             {statistics.median(clicks) * 1e6:.0f} us")
    print(f"click step, mean               {statistics.mean(clicks) * 1e6:.0f} us")
    print(f"search, median                 {statistics.median(search_seconds(env, 1000)) * 1e6:.0f} us")
    print(f"search step, remembered        {statistics.median(searches) * 1e6:.0f} us")
    print(f"snapshot as JSON, most         {max(sizes)} bytes")
    print(f"ten thousand live sessions     {live_megabytes(env, 10_000):.1f} MB")


if __name__ == "__main__":
    main()
