"""Generated households: the same everywhere, solvable, and like ALFWorld's own games."""

import json
import lzma
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from prover.envs.alfworld import households
from prover.envs.alfworld.expert import Expert
from prover.envs.alfworld.game import Game
from prover.errors import UnknownNameError
from prover.seeds import generator


@pytest.fixture(scope="module")
def games() -> dict[str, Game]:
    """Forty games of each split."""
    tasks = [task for split in households.SPLITS for task in households.tasks(split)[:40]]
    return {task: households.load(task) for task in tasks}


@pytest.mark.parametrize(
    ("task", "digest"),
    [
        ("train/living-light-000000", "bc0de48a9542468d"),
        ("train/bedroom-light-019999", "bb07f182eb9fecae"),
        ("dev/kitchen-clean-000007", "6c1a692e32a4eec5"),
        ("test/kitchen-clean-000999", "3d604df20bb0e36b"),
    ],
)
def test_an_id_means_the_same_household_everywhere(task: str, digest: str) -> None:
    """Problem and goal sentence are those that were made when this test was written."""
    household = households.generate(households.seed_of(task))
    assert household.task_id == task
    assert sha256((household.problem + household.goal).encode()).hexdigest()[:16] == digest


def test_splits_are_disjoint_and_ids_stand_for_seeds() -> None:
    """Every id leads back to one seed, and no seed is in two splits."""
    ids = {split: households.tasks(split) for split in ("train", "dev", "test")}
    assert {split: len(tasks) for split, tasks in ids.items()} == {"train": 20_000, "dev": 500, "test": 1_000}
    seeds = [households.seed_of(task) for tasks in ids.values() for task in tasks]
    assert len(set(seeds)) == 21_500


@pytest.mark.parametrize(
    "task",
    [
        "train/living-heat-000000",  # there is a household of that number, of another kind
        "dev/living-light-000500",
        "valid_seen/living-light-000000",
        "living-light-000000",
        "",
    ],
)
def test_unknown_ids_are_refused(task: str) -> None:
    """The message names an id that exists."""
    with pytest.raises(UnknownNameError, match="train/living-light-000000"):
        households.load(task)


def test_unknown_splits_and_seeds_are_refused() -> None:
    """The message names the splits."""
    with pytest.raises(UnknownNameError, match="train, dev, test, holdout"):
        households.tasks("valid_seen")
    for seed in (-1, 20_000, 1_000_500, 3_001_000, 4_000_000):
        with pytest.raises(UnknownNameError, match=str(seed)):
            households.generate(seed)


def test_task_types_have_the_shares_of_the_training_games() -> None:
    """In each split every type is within one point of its share of ALFWorld's 3,553 solvable training games."""
    shares = {
        "pick_and_place_simple": 790 / 3553,
        "look_at_obj_in_light": 308 / 3553,
        "pick_clean_then_place_in_recep": 650 / 3553,
        "pick_heat_then_place_in_recep": 459 / 3553,
        "pick_cool_then_place_in_recep": 533 / 3553,
        "pick_two_obj_and_place": 813 / 3553,
    }
    for split in households.SPLITS:
        tasks = households.tasks(split)
        found = Counter(map(households.task_type, tasks))
        assert {kind: found[kind] / len(tasks) for kind in shares} == pytest.approx(shares, abs=0.01)


def test_games_are_what_their_ids_say(games: dict[str, Game]) -> None:
    """Task type, number of receptacles and sentence agree; no game starts won, all start in the middle of the room."""
    for task, game in games.items():
        household = households.generate(households.seed_of(task))
        assert game.task_type == households.task_type(task) == household.task_type
        assert len(game.receptacles) == households.n_receptacles(task)
        assert game.intro.endswith(f"Your task is to: {household.goal}.")
        assert "You are in the middle of a room." in game.intro
        assert not game.won(game.initial)


def test_goal_objects_can_be_taken_and_brought(games: dict[str, Game]) -> None:
    """Enough objects of the goal's type lie within reach, and a receptacle of the target's type takes them."""
    for game in games.values():
        goal = game.goal
        things = [index for index, item in enumerate(game.objects) if item.kind == goal.object]
        within_reach = [thing for thing in things if game.where(game.initial, thing)]
        assert len(within_reach) == len(things) >= (2 if game.task_type == "pick_two_obj_and_place" else 1)
        assert goal.lamp or any(goal.object in r.accepts for r in game.receptacles if r.kind == goal.receptacle)


def test_objects_to_place_do_not_lie_in_the_target_yet(games: dict[str, Game]) -> None:
    """Simple and double placing always begins elsewhere, as in ALFWorld."""
    for game in games.values():
        if game.task_type in ("pick_and_place_simple", "pick_two_obj_and_place"):
            for thing, item in enumerate(game.objects):
                homes = {game.receptacles[index].kind for index in game.where(game.initial, thing)}
                assert item.kind != game.goal.object or game.goal.receptacle not in homes


def test_every_household_can_be_solved(games: dict[str, Game]) -> None:
    """The expert gets there, however long it has to search."""
    for number, (task, game) in enumerate(games.items()):
        expert, state, observation = Expert(game, generator(number)), game.initial, game.intro
        for _ in range(200):
            state, observation = game.step(
                state, expert.act(observation, {"admissible_actions": game.admissible(state)})
            )
            if game.won(state):
                break
        assert game.won(state), task


def test_sizes_reach_from_a_small_bathroom_to_a_large_kitchen() -> None:
    """ALFWorld's training games have 6 to 54 receptacles, half of the kitchens 33 or more."""
    tasks = households.tasks("train")[:2000]
    sizes = [households.n_receptacles(task) for task in tasks]
    kitchens = sorted(size for task, size in zip(tasks, sizes, strict=True) if "/kitchen" in task)
    assert min(sizes) <= 8
    assert max(sizes) >= 50
    assert 30 <= kitchens[len(kitchens) // 2] <= 36


def test_the_words_of_the_games_are_all_met(alfworld_data: Path) -> None:
    """Names with numbers and goal sentences of real games occur in generated ones, by occurrence more than 99 %."""
    met: set[str] = set()
    for task in households.tasks("train")[:400]:
        household = households.generate(households.seed_of(task))
        met.update(_names(household.problem), household.goal.split())
    with lzma.open(alfworld_data / "games.jsonl.xz", "rt") as lines:
        rows = [json.loads(line) for number, line in enumerate(lines) if number % 40 == 0]
    needed = Counter(word for row in rows for word in [*_names(row["problem"]), *row["goal"].split()])
    assert sum(count for word, count in needed.items() if word in met) > 0.99 * needed.total()


def _names(problem: str) -> list[str]:
    """``type number`` of every object and receptacle of a problem."""
    kinds = Counter(re.findall(r"\((?:objectType|receptacleType) [^?\s]+ (\w+)Type\)", problem))
    return [f"{kind.lower()} {number + 1}" for kind, total in kinds.items() for number in range(total)]
