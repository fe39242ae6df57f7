"""The engine against stock TextWorld's traces, against hand-made oddities, and on random walks."""

import json
import lzma
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prover.envs.alfworld.game import Game
from prover.envs.alfworld.state import State
from prover.errors import DataError

Kitchen = Callable[..., Game]
NOTHING = "Nothing happens."


def play(game: Game, *commands: str, state: State | None = None) -> tuple[State, str]:
    """The state after some commands, and the last observation; no command may be inadmissible."""
    state = game.initial if state is None else state
    observation = ""
    for command in commands:
        state, observation = game.step(state, command)
        assert observation != NOTHING, command
    return state, observation


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a packed file."""
    with lzma.open(file, "rt") as lines:
        yield from map(json.loads, lines)


def mismatches(game: Game, state: State, steps: list[dict[str, Any]]) -> tuple[State, list[str]]:
    """The state after recorded steps, and where the engine differed from the record."""
    found = []
    for number, step in enumerate(steps):
        state, observation = game.step(state, step["command"])
        got = (observation, game.admissible(state), game.won(state))
        if got != (step["observation"], step["admissible_commands"], step["won"]):
            found.append(f"step {number}: {step['command']!r}")
    return state, found


def test_stock_traces_are_reproduced(alfworld_data: Path) -> None:
    """Every recorded step of stock TextWorld has the same text, the same commands and the same verdict."""
    games = {(row["split"], row["task"], row["trial"]): row for row in rows(alfworld_data / "games.jsonl.xz")}
    wrong, n_steps = [], 0
    for trace in rows(alfworld_data / "alfworld_traces_a.jsonl.xz"):
        row = games[trace["split"], trace["task"], trace["trial"]]
        game = Game.parse(row["problem"], row["goal"])
        reset = trace["reset"]
        start = (game.intro, game.admissible(game.initial), game.won(game.initial))
        assert start == (reset["observation"], reset["admissible_commands"], reset["won"]), trace["id"]
        assert game.task_type == trace["task_type"], trace["id"]
        state, found = mismatches(game, game.initial, trace["steps"] if trace["kind"] == "trace" else trace["prefix"])
        branches = trace.get("branches", [])
        for branch in branches:
            # The state before the branch is used again: this is what restoring a snapshot amounts to.
            last = trace["prefix"][-1]["admissible_commands"] if trace["prefix"] else reset["admissible_commands"]
            assert game.admissible(state) == last, trace["id"]
            found += mismatches(game, state, branch)[1]
        wrong += [f"{trace['id']} {place}" for place in found]
        n_steps += sum(map(len, branches)) + len(trace.get("steps") or trace.get("prefix"))
    assert not wrong
    assert n_steps > 2000


def test_introduction_numbers_count_down(kitchen: Kitchen) -> None:
    """The opening lists all receptacles by their sorted ids; of one type the first has the highest number."""
    assert kitchen().intro == (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a countertop 1, a drawer 2, "
        "a drawer 1, a fridge 1, a microwave 1, a shelf 2, a shelf 1, and a sinkbasin 1.\n\n"
        "Your task is to: heat some apple and put it in shelf."
    )


def test_look_before_moving_sees_nothing(kitchen: Kitchen) -> None:
    """In the middle of the room ``look`` lists nothing, though the opening did."""
    assert play(kitchen(), "look")[1] == (
        "You are in the middle of a room. Looking quickly around you, you see nothing."
    )


def test_start_at_a_receptacle_faces_it(kitchen: Kitchen) -> None:
    """Who starts at receptacles faces them in the opening and is offered no way to them."""
    game = kitchen(start="loc_bar_7")
    assert "You are facing the cabinet 1. Next to it, you see nothing." in game.intro
    assert "go to cabinet 1" not in game.admissible(game.initial)


def test_receptacles_of_one_place(kitchen: Kitchen) -> None:
    """All receptacles of a place can be used there, and ``go to`` none of them."""
    game = kitchen()
    state, observation = play(game, "go to drawer 2")
    # drawer_bar_1 is drawer 2: it can be opened; drawer 1 is one that is never closed.
    assert observation == "You arrive at drawer 2. The drawer 2 is closed."
    assert play(game, "look", state=state)[1] == (
        "You are facing the countertop 1, drawer 2, and drawer 1. Next to it, you see nothing."
    )
    assert game.admissible(state) == [
        "examine countertop 1",
        "examine drawer 1",
        "examine drawer 2",
        "go to cabinet 1",
        "go to fridge 1",
        "go to microwave 1",
        "go to shelf 1",
        "go to shelf 2",
        "go to sinkbasin 1",
        "help",
        "inventory",
        "look",
        "open drawer 2",
        "take apple 2 from countertop 1",
        "take book 1 from drawer 1",
        "take knife 1 from countertop 1",
    ]
    assert play(game, "examine drawer 1", state=state)[1] == "On the drawer 1, you see a book 1."
    assert game.step(state, "go to countertop 1") == (state, NOTHING)


def test_object_in_two_receptacles(kitchen: Kitchen) -> None:
    """An object in two receptacles stays in one when it is taken from the other, even while it is held."""
    game = kitchen()
    state, observation = play(game, "go to drawer 1", "take book 1 from drawer 1", "open drawer 2")
    assert observation == "You open the drawer 2. The drawer 2 is open. In it, you see a book 1."
    assert play(game, "inventory", state=state)[1] == "You are carrying: a book 1."
    assert "take book 1 from drawer 2" not in game.admissible(state)


def test_next_to_it_repeats(kitchen: Kitchen) -> None:
    """``look`` names a thing that lies here once for each receptacle here that it was taken out of."""
    game = kitchen()
    state, observation = play(
        game, "go to drawer 1", "take book 1 from drawer 1", "move book 1 to countertop 1", "look"
    )
    assert observation.endswith("Next to it, you see a book 1.")
    state, _ = play(game, "open drawer 2", "take book 1 from drawer 2", state=state)
    assert play(game, "look", state=state)[1].endswith("Next to it, you see nothing.")
    state, observation = play(game, "move book 1 to countertop 1", "look", state=state)
    assert observation.endswith("Next to it, you see a book 1, and a book 1.")
    # Back in the one drawer, it is missing from the other and from the countertop.
    state, _ = play(game, "take book 1 from countertop 1", "move book 1 to drawer 1", state=state)
    assert play(game, "look", state=state)[1].endswith("Next to it, you see a book 1, and a book 1.")


def test_lamp_behind_a_closed_door(kitchen: Kitchen) -> None:
    """``use`` needs no open door, and turns on however often."""
    game = kitchen()
    state, observation = play(game, "go to cabinet 1", "use desklamp 1")
    assert observation == "You turn on the desklamp 1."
    assert play(game, "use desklamp 1", state=state) == (state, "You turn on the desklamp 1.")
    state, _ = play(game, "open cabinet 1", state=state)
    assert not [c for c in game.admissible(state) if c.startswith(("take desklamp", "examine desklamp"))]


def test_slice_through_a_closed_door(kitchen: Kitchen) -> None:
    """A held knife slices what lies at the place, door or not, and again; the sliced thing stays one thing."""
    game = kitchen()
    state, _ = play(game, "go to countertop 1", "take knife 1 from countertop 1")
    assert "slice apple 2 with knife 1" in game.admissible(state)
    state, observation = play(game, "go to fridge 1", "slice apple 1 with knife 1", state=state)
    assert observation == "You sliced the apple 1 with the knife 1."
    assert "slice apple 1 with knife 1" in game.admissible(state)
    state, _ = play(game, "go to countertop 1", "move knife 1 to countertop 1", "go to fridge 1", state=state)
    state, _ = play(game, "open fridge 1", "take apple 1 from fridge 1", state=state)
    assert play(game, "examine apple 1", state=state)[1] == "This is a sliced apple 1."


def test_place_of_an_object_is_not_that_of_its_receptacle(kitchen: Kitchen) -> None:
    """The tomato is taken where its receptacle stands and sliced where the problem says that it lies."""
    game = kitchen()
    state, _ = play(game, "go to countertop 1", "take knife 1 from countertop 1", "go to shelf 1")
    assert "slice tomato 1 with knife 1" not in game.admissible(state)
    state, _ = play(game, "go to shelf 2", state=state)
    assert "slice tomato 1 with knife 1" in game.admissible(state)
    assert "take tomato 1 from shelf 1" in game.admissible(play(game, "go to shelf 1")[0])


def test_object_without_a_place_can_be_taken(kitchen: Kitchen) -> None:
    """An object that lies in a receptacle but at no place can be taken and put elsewhere."""
    game = kitchen()
    state, observation = play(
        game, "go to shelf 1", "take pen 1 from shelf 1", "go to countertop 1", "move pen 1 to drawer 1"
    )
    assert observation == "You move the pen 1 to the drawer 1."
    assert play(game, "examine drawer 1", state=state)[1] == "On the drawer 1, you see a book 1, and a pen 1."


def test_roll_that_nothing_holds(kitchen: Kitchen) -> None:
    """What no receptacle may contain is never put down again."""
    game = kitchen()
    state, _ = play(game, "go to shelf 2", "take papertowelroll 1 from shelf 2")
    for receptacle in game.receptacles:
        there, _ = game.step(state, f"go to {receptacle.name}")
        assert not [command for command in game.admissible(there) if command.startswith("move")]


def test_heating_and_cooling_undo_each_other(kitchen: Kitchen) -> None:
    """Heat clears cool and the other way round; clean stays; no door has to be open."""
    game = kitchen()
    state, observation = play(game, "go to countertop 1", "take apple 2 from countertop 1", "go to fridge 1")
    state, observation = play(game, "cool apple 2 with fridge 1", state=state)
    assert observation == "You cool the apple 2 using the fridge 1."
    assert play(game, "examine apple 2", state=state)[1] == "This is a cold apple 2."
    state, _ = play(game, "go to sinkbasin 1", "clean apple 2 with sinkbasin 1", state=state)
    assert play(game, "examine apple 2", state=state)[1] == "This is a cool and clean apple 2."
    state, _ = play(game, "go to microwave 1", "heat apple 2 with microwave 1", state=state)
    assert play(game, "examine apple 2", state=state)[1] == "This is a hot and clean apple 2."
    assert "heat apple 2 with microwave 1" in game.admissible(state)
    assert "move apple 2 to microwave 1" not in game.admissible(state)
    state, _ = play(game, "go to fridge 1", "cool apple 2 with fridge 1", "go to shelf 1", state=state)
    assert not game.won(play(game, "move apple 2 to shelf 1", state=state)[0])


def test_mug_tells_what_was_in_it(kitchen: Kitchen) -> None:
    """A receptacle object lists what was in it at the start, taken away or not, and never itself."""
    game = kitchen()
    state, _ = play(game, "go to cabinet 1", "open cabinet 1", "take spoon 1 from cabinet 1", "go to countertop 1")
    state, _ = play(game, "move spoon 1 to countertop 1", "go to cabinet 1", "take mug 1 from cabinet 1", state=state)
    assert play(game, "examine mug 1", state=state)[1] == "This is a normal mug 1. In it, you see a spoon 1."
    state, _ = play(game, "go to sinkbasin 1", "clean mug 1 with sinkbasin 1", state=state)
    assert play(game, "examine mug 1", state=state)[1] == "This is a normal mug 1. In it, you see a spoon 1."


def test_game_goes_on_after_the_goal(kitchen: Kitchen) -> None:
    """A won game takes more commands, and is lost again when the object is taken away."""
    game = kitchen()
    state, _ = play(game, "go to countertop 1", "take apple 2 from countertop 1", "go to microwave 1")
    state, _ = play(game, "heat apple 2 with microwave 1", "go to shelf 1", "move apple 2 to shelf 1", state=state)
    assert game.won(state)
    assert game.won(play(game, "go to shelf 2", state=state)[0])
    state, _ = play(game, "take apple 2 from shelf 1", state=state)
    assert not game.won(state)
    assert game.won(play(game, "move apple 2 to shelf 1", state=state)[0])


def test_initial_qualities_are_told(kitchen: Kitchen) -> None:
    """What is cool, open or sliced at the start is described so."""
    game = kitchen(extra="(isCool Apple_bar_1) (isSliced Apple_bar_1) (opened Cabinet_bar_1)")
    _, observation = play(game, "go to cabinet 1")
    assert observation == (
        "You arrive at cabinet 1. The cabinet 1 is open. In it, you see a desklamp 1, a mug 1, and a spoon 1."
    )
    _, observation = play(game, "go to countertop 1", "take apple 2 from countertop 1", "examine apple 2")
    assert observation == "This is a cool sliced apple 2."


@pytest.mark.parametrize("blank", [" ", "\t", "\r\n", "\u00a0", "\u2003", "\u3000", "\x85", "\x1c"])
def test_blanks_around_a_command_are_stripped(kitchen: Kitchen, blank: str) -> None:
    """A command may have any blanks around it."""
    game = kitchen()
    assert game.step(game.initial, f"{blank}go to shelf 1{blank}")[1].startswith("You arrive at shelf 1.")


@pytest.mark.parametrize(
    "command",
    [
        *("", " ", "\n", "Look", "LOOK", "look\ninventory", "l", "i", "\u200blook", "\ufefflook", "\x00look", "\ud800"),
        *("go to  shelf 1", "go to shelf 1.", "goto shelf 1", "go to shelf", "go to shelf 9", "go to shelf \uff11"),
        *("put apple 1 in/on shelf 1", "take pen 1 from shelf 1", "move  to ", "open shelf 1", "examine apple 1"),
        "x" * 3000,
    ],
)
def test_other_commands_do_nothing(kitchen: Kitchen, command: str) -> None:
    """Anything but an admissible command, letter by letter, leaves the state as it is."""
    game = kitchen()
    assert game.step(game.initial, command) == (game.initial, NOTHING)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 10_000), max_size=25), st.text(max_size=12))
def test_random_walks(kitchen: Kitchen, choices: list[int], noise: str) -> None:
    """Exactly the admissible commands are answered; stepping is pure; states compare, hash and pickle by value."""
    game = kitchen()
    every = {f"take {o.name} from {r.name}" for o in game.objects for r in game.receptacles}
    every |= {f"move {o.name} to {r.name}" for o in game.objects for r in game.receptacles}
    every |= {f"{verb} {r.name}" for verb in ("open", "close", "examine", "go to") for r in game.receptacles}
    every |= {f"{verb} {o.name}" for verb in ("use", "examine") for o in game.objects} | {noise.strip()}
    state = game.initial
    for choice in choices:
        admissible = game.admissible(state)
        assert admissible == sorted(set(admissible))
        copy = pickle.loads(pickle.dumps(state))
        assert (copy, hash(copy), repr(copy.canonical())) == (state, hash(state), repr(state.canonical()))
        for command in every - set(admissible):
            assert game.step(state, command) == (state, NOTHING)
        after = {command: game.step(state, command) for command in admissible}
        assert NOTHING not in {observation for _, observation in after.values()}
        assert state == copy
        state = after[admissible[choice % len(admissible)]][0]


def test_where_and_names(kitchen: Kitchen) -> None:
    """Names and indices belong together, and ``where`` gives every receptacle of an object."""
    game = kitchen()
    book = game.object_named("book 1")
    assert book is not None
    assert [game.receptacles[index].name for index in game.where(game.initial, book)] == ["drawer 2", "drawer 1"]
    assert game.holding(game.initial, "book") == ["drawer 2", "drawer 1"]
    assert game.holding(game.initial, "boo") == []
    fridge = game.receptacle_named("fridge 1")
    assert fridge is not None
    assert game.is_shut(game.initial, fridge)
    assert not game.is_shut(play(game, "go to fridge 1", "open fridge 1")[0], fridge)
    assert game.receptacles_at(game.receptacles[fridge].place) == (fridge,)
    assert game.object_named("dragon 1") is None
    assert game.receptacle_named("lair 1") is None


def write_game(folder: Path, **changes: object) -> Path:
    """Write a game file, valid but for the changes."""
    grammar = (
        '"move {o} to {r}" "You arrive at {r.name}. #examineReceptacle.feedback#" "Your task is to: put a mug in desk."'
    )
    game = {"pddl_domain": "", "grammar": grammar, "pddl_problem": "", "solvable": True} | changes
    (folder / "game.tw-pddl").write_text(json.dumps(game), encoding="utf-8")
    return folder


def test_load_reads_the_goal_from_the_grammar(kitchen: Kitchen, tmp_path: Path, kitchen_text: str) -> None:
    """A game file's own sentence is the task."""
    game = Game.load(write_game(tmp_path, pddl_problem=kitchen_text))
    assert game.goal_sentence == "put a mug in desk"
    assert game.intro.endswith("Your task is to: put a mug in desk.")
    assert game.initial == kitchen().initial


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grammar": '"put {o} in/on {r}" "Your task is to: x."'}, "older grammar"),
        ({"solvable": False}, "expected a solvable game"),
        ({"pddl_problem": "(define (problem x)"}, "unclosed"),
        ({"pddl_problem": "(define (problem x))"}, "expected a PDDL problem with"),
        ({"grammar": '"move {o} to {r}" "You arrive at {r.name}. #examineReceptacle.feedback#"'}, "Your task is to"),
    ],
)
def test_load_says_what_is_wrong(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    """A game of another version, an unsolvable one and a broken one are refused with a reason."""
    with pytest.raises(DataError, match=message):
        Game.load(write_game(tmp_path, **changes))


def test_load_of_no_game(tmp_path: Path) -> None:
    """A missing file and one that is no JSON name the path."""
    with pytest.raises(DataError, match=str(tmp_path)):
        Game.load(tmp_path)
    (tmp_path / "game.tw-pddl").write_text('{"grammar": ', encoding="utf-8")
    with pytest.raises(DataError, match="download it again"):
        Game.load(tmp_path)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("(atLocation agent1 loc_bar_1)", "got 2 places"),
        ("(receptacleAtLocation Shelf_bar_1 loc_bar_1)", "expected one receptacleatlocation of shelf_bar_1, got 2"),
        ("(inReceptacle Ghost_bar_1 Shelf_bar_1)", "undeclared|declared"),
    ],
)
def test_problems_that_the_engine_cannot_play(kitchen: Kitchen, extra: str, message: str) -> None:
    """Facts beyond what the engine models are an error, never a silent difference."""
    with pytest.raises(DataError, match=message):
        kitchen(extra=extra)
