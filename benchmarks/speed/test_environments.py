"""Environments and search: steps against a toy's, states against replaying, rankings against reading everything."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from prover.envs.alfworld import ALFWorldEnv
from prover.envs.searchqa.env import SearchQAEnv
from prover.envs.webshop import WebShopEnv
from prover.protocols import TextEnv
from prover.retrieval.bm25 import Bm25Retriever
from prover.retrieval.retriever import Passage
from prover.retrieval.terms import terms
from prover.seeds import generator
from prover.testing import LineEnv

STEPS = 300


def walk(env: TextEnv, n: int, seed: int = 0) -> list[tuple[str, list[str]]]:
    """Tasks with the actions of random play, ``n`` in all; episodes end after 20 at the latest."""
    rng, tasks = generator(seed), env.tasks("train")
    found: list[tuple[str, list[str]]] = []
    over = True
    for step in range(n):
        if step % 20 == 0 or over:
            task = tasks[int(rng.integers(min(20, len(tasks))))]
            _, info = env.reset(seed=0, options={"task": task})
            found.append((task, []))
        choices = info["admissible_actions"]
        found[-1][1].append(choices[int(rng.integers(len(choices)))])
        _, _, over, _, info = env.step(found[-1][1][-1])
    return found


def replay(env: TextEnv, episodes: list[tuple[str, list[str]]]) -> Callable[[], None]:
    """Plays recorded actions."""

    def play() -> None:
        for task, actions in episodes:
            env.reset(seed=0, options={"task": task})
            for action in actions:
                env.step(action)

    return play


@pytest.mark.parametrize(
    ("name", "make", "floor"),
    [("ALFWorld", ALFWorldEnv, 0.02), ("WebShop", WebShopEnv, 0.012), ("SearchQA", SearchQAEnv, 0.002)],
)
def test_steps(name: str, make: type[Any], floor: float, faster: Any) -> None:
    """A step with its admissible actions, resets included, costs so many steps of the toy walk at most."""
    env, toy = make(), LineEnv()
    faster(
        f"{name}: step",
        replay(env, walk(env, STEPS)),
        replay(toy, walk(toy, STEPS)),
        than="a step of the toy walk",
        floor=floor,
    )


@pytest.mark.parametrize(
    ("name", "make"),
    [("ALFWorld", ALFWorldEnv), ("WebShop", WebShopEnv), ("SearchQA", SearchQAEnv)],
)
def test_states(name: str, make: type[Any], faster: Any) -> None:
    """Going back to a state by its snapshot is faster than by playing the episode again."""
    env = make()
    task, actions = max(walk(env, 200), key=lambda episode: len(episode[1]))
    # A state in the middle of an episode: what has ended needs no way back.
    again = replay(env, [(task, actions[:-1])])
    again()
    snapshot = env.snapshot()

    def restore() -> None:
        for _ in range(20):
            env.restore(snapshot)

    def play() -> None:
        for _ in range(20):
            again()

    faster(f"{name}: restore after {len(actions) - 1} turns", restore, play, than="playing them again", floor=8)


def test_search(faster: Any) -> None:
    """BM25 over an index is faster than counting the words of every passage."""
    rng = generator(0)
    words = [f"word{number}" for number in range(3000)]
    texts = [" ".join(words[int(place)] for place in rng.zipf(1.3, 60) % 3000) for _ in range(3000)]
    passages = [Passage(id=f"p{place:05d}", title="", text=text) for place, text in enumerate(texts)]
    retriever = Bm25Retriever(passages)
    counts = [Counter(terms(text)) for text in texts]
    queries = [" ".join(text.split()[:5]) for text in texts[:20]]

    def search() -> None:
        for query in queries:
            retriever.search([query], 3)

    def read() -> None:
        for query in queries:
            wanted = terms(query)
            scores = [sum(count[term] for term in wanted) for count in counts]
            sorted(range(len(scores)), key=lambda place: -scores[place])[:3]

    faster("search among 3,000 passages", search, read, than="counting their words", floor=8)
