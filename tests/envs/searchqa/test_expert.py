"""The scripted searcher."""

from collections import Counter
from pathlib import Path

from prover.envs.searchqa import SearchQAEnv
from prover.retrieval.retriever import Retriever


def play(env: SearchQAEnv, task: str, *first: str) -> tuple[list[str], bool]:
    """The expert's actions after some of other hands, and whether they succeeded."""
    observation, info = env.reset(options={"task": task})
    player = env.expert(0)
    over, actions = False, list[str]()
    for action in first:
        observation, _, over, _, info = env.step(action)
    while not over:
        actions.append(player.act(observation, info))
        observation, _, over, _, info = env.step(actions[-1])
    return actions, info["success"]


def test_it_follows_the_supports(folder: Path, retriever: Retriever) -> None:
    """One thing after the other, then the answer; what others have found already is not searched for again."""
    env = SearchQAEnv(data=str(folder), retriever=retriever, syntax="brackets", top_k=2)
    assert play(env, "q2") == (["search[Ada Quist]", "search[Ben Lund]", "answer[Tall Bridge]"], True)
    assert play(env, "q2", "search[Tall Bridge]") == (["search[Ada Quist]", "answer[Tall Bridge]"], True)
    assert play(env, "q2", "moo") == (["search[Ada Quist]", "search[Ben Lund]", "answer[Tall Bridge]"], True)


def test_it_answers_with_what_it_has_seen_only(folder: Path, retriever: Retriever) -> None:
    """Where a support cannot be found within the searches it does not know; a gold answer in the text will do else."""
    short = SearchQAEnv(data=str(folder), retriever=retriever, syntax="brackets", top_k=1, max_searches=1)
    assert play(short, "q2") == (["search[Ada Quist]", "answer[unknown]"], False)
    env = SearchQAEnv(data=str(folder), retriever=retriever, syntax="brackets")
    # The word "no" stands in none of the passages.
    asked = "search[Is the Tall Bridge older than Ada Quist?]"
    assert play(env, "q3") == ([asked, "answer[unknown]"], False)


def test_it_answers_all_generated_questions() -> None:
    """Every question of the made-up encyclopedia takes one or two searches, of names that are proposed."""
    env = SearchQAEnv(syntax="brackets")
    lengths: Counter[tuple[str, int]] = Counter()
    for task in env.tasks("test"):
        observation, info = env.reset(options={"task": task})
        player, over, turns = env.expert(0), False, 0
        while not over:
            action = player.act(observation, info)
            assert action in info["admissible_actions"]
            observation, _, over, _, info = env.step(action)
            turns += 1
        assert info["success"], task
        lengths[info["task_type"], turns] += 1
    assert lengths["one_hop", 2] == 400
    assert lengths["two_hop", 3] >= 390
