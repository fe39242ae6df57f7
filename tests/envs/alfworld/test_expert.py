"""The expert wins, reads nothing that it should not, and copes with other hands."""

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import cast

from prover.envs.alfworld import households, layout
from prover.envs.alfworld.expert import Expert
from prover.envs.alfworld.game import Game
from prover.envs.alfworld.layout import Receptacle, Thing
from prover.seeds import generator

TABLE = Receptacle("DiningTable_bar_1", "DiningTable", "loc_bar_1", False)
FRIDGE = Receptacle("Fridge_bar_1", "Fridge", "loc_bar_2", True)
MICROWAVE = Receptacle("Microwave_bar_1", "Microwave", "loc_bar_3", True)
SHELF = Receptacle("Shelf_bar_1", "Shelf", "loc_bar_4", False)
MUG = Thing("Mug_bar_1", "Mug", "loc_bar_1", (TABLE,))
VASE = Thing("Vase_bar_1", "Vase", "loc_bar_1", (TABLE,))
HOT_MUG_TO_SHELF = [
    "go to diningtable 1",
    "take mug 1 from diningtable 1",
    "go to microwave 1",
    "heat mug 1 with microwave 1",
    "go to shelf 1",
    "move mug 1 to shelf 1",
]


def kitchen() -> Game:
    """A mug on the table has to be heated and put on the shelf."""
    goal = layout.goal("heat", "Mug", "Shelf")
    problem = layout.problem("loc_bar_0", [TABLE, FRIDGE, MICROWAVE, SHELF], [MUG, VASE], (), goal)
    return Game.parse(problem, "heat some mug and put it in shelf")


def play(
    game: Game, foreign: Mapping[int, str] = MappingProxyType({}), *, seed: int = 0, noise: float = 0.0, turns: int = 50
) -> list[str]:
    """The executed commands of an episode in which others act at some turns, or at random ones."""
    rng = generator(seed, 1)
    expert, state, observation = Expert(game, generator(seed)), game.initial, game.intro
    commands: list[str] = []
    while len(commands) < turns and not game.won(state):
        admissible = game.admissible(state)
        own = expert.act(observation, {"admissible_actions": admissible})
        command = str(rng.choice(admissible)) if rng.random() < noise else foreign.get(len(commands), own)
        commands.append(command)
        state, observation = game.step(state, command)
        assert observation != "Nothing happens."
    return commands


def won(game: Game, commands: list[str]) -> bool:
    """Whether the commands win."""
    state = game.initial
    for command in commands:
        state, _ = game.step(state, command)
    return game.won(state)


def deeds(commands: list[str]) -> list[str]:
    """What was done to objects, without looking around."""
    return [command for command in commands if command.split()[0] in ("take", "move", "heat", "cool")]


def test_once_the_object_is_seen_no_turn_is_wasted() -> None:
    """From the table on the shortest way is taken: the microwave heats without being opened."""
    commands = play(kitchen(), {0: HOT_MUG_TO_SHELF[0]})
    assert commands == HOT_MUG_TO_SHELF


def test_what_cools_down_is_heated_again() -> None:
    """After another hand has cooled the mug, it is heated once more before it is put away."""
    game = kitchen()
    foreign = {**dict(enumerate(HOT_MUG_TO_SHELF[:4])), 4: "go to fridge 1", 5: "cool mug 1 with fridge 1"}
    assert play(game, foreign)[6:] == HOT_MUG_TO_SHELF[2:]


def test_a_wrong_object_is_put_down_at_once() -> None:
    """The vase that another hand took goes back to where it can stand, then the mug is taken."""
    foreign = {0: "go to diningtable 1", 1: "take vase 1 from diningtable 1"}
    assert play(kitchen(), foreign)[2:] == ["move vase 1 to diningtable 1", *HOT_MUG_TO_SHELF[1:]]


def test_what_was_carried_off_is_fetched_again() -> None:
    """A mug that another hand shut into the fridge is remembered to be there."""
    foreign = dict(enumerate([*HOT_MUG_TO_SHELF[:2], "go to fridge 1", "open fridge 1", "move mug 1 to fridge 1"]))
    foreign |= {5: "close fridge 1", 6: "go to shelf 1"}
    rest = play(kitchen(), foreign)[7:]
    assert rest == ["go to fridge 1", "open fridge 1", "take mug 1 from fridge 1", *HOT_MUG_TO_SHELF[2:]]


def test_hands_that_nothing_can_empty_lose_without_an_error() -> None:
    """A paper towel roll fits nowhere; whoever took it has lost, and the expert goes on as well as it can."""
    roll = Thing("PaperTowelRoll_bar_1", "PaperTowelRoll", "loc_bar_1", (TABLE,))
    goal = layout.goal("place", "Mug", "Shelf")
    game = Game.parse(layout.problem("loc_bar_0", [TABLE, SHELF], [MUG, roll], (), goal), "put a mug in shelf")
    foreign = {0: "go to diningtable 1", 1: "take papertowelroll 1 from diningtable 1"}
    assert len(play(game, foreign, turns=12)) == 12


def test_both_of_two_go_to_the_same_shelf() -> None:
    """The second mug follows the first, which is left alone."""
    shelves = [SHELF, Receptacle("Shelf_bar_2", "Shelf", "loc_bar_5", False)]
    mugs = [MUG, Thing("Mug_bar_2", "Mug", "loc_bar_1", (TABLE,))]
    problem = layout.problem("loc_bar_0", [TABLE, *shelves], mugs, (), layout.goal("two", "Mug", "Shelf"))
    done = deeds(play(Game.parse(problem, "put two mug in shelf"), {}))
    assert len(done) == 4
    assert done[1].split()[-2:] == done[3].split()[-2:]


def test_only_the_goal_of_the_game_is_read() -> None:
    """With nothing but goal and task type in its hands it plays the same episode."""
    for number, task in enumerate(households.tasks("dev")[:20]):
        game = households.load(task)
        blind = Expert(cast(Game, SimpleNamespace(goal=game.goal, task_type=game.task_type)), generator(number))
        state, observation = game.initial, game.intro
        for command in play(game, seed=number):
            assert blind.act(observation, {"admissible_actions": game.admissible(state)}) == command
            state, observation = game.step(state, command)
        assert game.won(state)


def test_generated_games_are_won() -> None:
    """At least 98 % of them in 50 turns, half of them in 10."""
    games = [households.load(task) for task in households.tasks("train")[:200]]
    played = [(game, play(game, seed=number)) for number, game in enumerate(games)]
    turns = sorted(len(commands) if won(game, commands) else 51 for game, commands in played)
    assert turns[195] <= 50
    assert turns[100] <= 10


def test_real_games_are_won(alfworld_data: Path) -> None:
    """At least 95 % of ALFWorld's own games, of all splits, in 50 turns."""
    with lzma.open(alfworld_data / "games.jsonl.xz", "rt") as lines:
        rows = [json.loads(line) for number, line in enumerate(lines) if number % 40 == 0]
    games = [Game.parse(row["problem"], row["goal"]) for row in rows]
    assert len(games) == 101
    assert sum(won(game, play(game, seed=number)) for number, game in enumerate(games)) >= 96


def test_other_hands_do_not_stop_it() -> None:
    """With a third of its moves replaced by random ones it still wins nine games in ten."""
    games = [households.load(task) for task in households.tasks("train")[:50]]
    assert sum(won(game, play(game, seed=number, noise=0.3)) for number, game in enumerate(games)) >= 45
