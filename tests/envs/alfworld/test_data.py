"""The loader of ALFWorld's own games."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from prover.envs.alfworld.data import SPLITS, VARIABLE, GameFolder
from prover.errors import DataError, UnknownNameError

GRAMMAR = (
    '"move {o} to {r}" "You arrive at {r.name}. #examineReceptacle.feedback#" "Your task is to: put a mug in desk."'
)
MUG = "pick_and_place_simple-Mug-None-Desk-1"
APPLE = "pick_heat_then_place_in_recep-Apple-None-Shelf-2"


@pytest.fixture
def write(tmp_path: Path, kitchen_text: str) -> Callable[..., Path]:
    """Writes one game below ``tmp_path``."""

    def write_game(task: str, text: str | None = None, **changes: object) -> Path:
        file = tmp_path / "json_2.1.1" / task / "game.tw-pddl"
        file.parent.mkdir(parents=True)
        game = {"pddl_domain": "", "grammar": GRAMMAR, "pddl_problem": kitchen_text, "solvable": True} | changes
        file.write_text(json.dumps(game) if text is None else text, encoding="utf-8")
        return file

    return write_game


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GameFolder:
    """The games below ``tmp_path``, where two make a complete split."""
    monkeypatch.setitem(SPLITS, "valid_unseen", 2)
    return GameFolder(tmp_path)


def test_tasks_are_sorted_and_playable_ones(write: Callable[..., Path], folder: GameFolder) -> None:
    """Unsolvable games, games about moved or sliced things and folders without a game are left out."""
    write(f"valid_unseen/{MUG}/trial_T2")
    write(f"valid_unseen/{APPLE}/trial_T1", walkthrough=["look"] * 9000)
    write("valid_unseen/pick_and_place_simple-Pen-None-Desk-1/trial_T1", solvable=False)
    write("valid_unseen/pick_and_place_simple-AppleSliced-None-Desk-1/trial_T1")
    write("valid_unseen/pick_and_place_with_movable_recep-Pen-Mug-Desk-1/trial_T1")
    (folder.path / "json_2.1.1/valid_unseen/pick_and_place_simple-CD-None-Desk-1/trial_T1").mkdir(parents=True)
    assert folder.tasks("valid_unseen") == (f"valid_unseen/{MUG}/trial_T2", f"valid_unseen/{APPLE}/trial_T1")


def test_load_type_and_size(write: Callable[..., Path], folder: GameFolder) -> None:
    """A task's game, type and number of receptacles are those of its file; a game is read once."""
    # A real domain is part of the file and speaks of receptacleAtLocation too.
    write(f"valid_unseen/{MUG}/trial_T2", pddl_domain="(receptacleAtLocation ?r ?l)")
    task = f"valid_unseen/{MUG}/trial_T2"
    game = folder.load(task)
    assert game.goal_sentence == "put a mug in desk"
    assert len(game.receptacles) == 9
    assert folder.n_receptacles(task) == 9
    assert folder.task_type(task) == "pick_and_place_simple"
    assert folder.load(task) is game


def test_damaged_games_are_named(write: Callable[..., Path], folder: GameFolder) -> None:
    """A split that is not complete warns with both numbers and the names of the games that cannot be read."""
    write(f"valid_unseen/{MUG}/trial_T1")
    write(f"valid_unseen/{MUG}/trial_T2", text='{"pddl_domain": "')
    (folder.path / f"json_2.1.1/valid_unseen/{MUG}/trial_T3/game.tw-pddl").mkdir(parents=True)
    expected = f"expected 2 games .*got 1; skipped as damaged: valid_unseen/{MUG}/trial_T2, valid_unseen/{MUG}/trial_T3"
    with pytest.warns(UserWarning, match=expected):
        assert folder.tasks("valid_unseen") == (f"valid_unseen/{MUG}/trial_T1",)


def test_no_task_is_an_error(write: Callable[..., Path], folder: GameFolder) -> None:
    """An empty split says what was found in every split and how to get the games."""
    write(f"valid_seen/{MUG}/trial_T1")
    with pytest.raises(DataError, match=r"'valid_seen': 1, 'valid_unseen': 0.*alfworld-download --data-dir"):
        folder.tasks("valid_unseen")


def test_unknown_names(write: Callable[..., Path], folder: GameFolder) -> None:
    """An unknown split lists the splits, an unknown task the nearest one; no id leads out of the folder."""
    write(f"valid_unseen/{MUG}/trial_T1")
    with pytest.raises(UnknownNameError, match="train, valid_seen, valid_unseen, valid_train"):
        folder.tasks("test")
    with pytest.raises(UnknownNameError, match=f"did you mean 'valid_unseen/{MUG}/trial_T1'"):
        folder.load(f"valid_unseen/{MUG}/trial_T7")
    for task in ("", "valid_unseen", "valid_unseen/../../secret", f"valid_unseen//{MUG}"):
        with pytest.raises(UnknownNameError, match="expected a task"):
            folder.load(task)


def test_missing_folder_and_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without games the error names the variable, the folder and the way to get them."""
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(DataError, match=r"\$ALFWORLD_DATA is not set; run 'pip install alfworld && alfworld-download"):
        GameFolder.find()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(DataError, match=rf"{tmp_path}.*\(\$ALFWORLD_DATA = .*got no such folder"):
        GameFolder.find("")
    with pytest.raises(DataError, match=r"\(data = "):
        GameFolder.find(str(tmp_path))
    (tmp_path / "json_2.1.1").mkdir()
    assert GameFolder.find() == GameFolder(tmp_path)


def test_official_layout(some_games: Path) -> None:
    """Real games are found, fewer than there should be are warned of, and type and size agree with the game."""
    folder = GameFolder.find(str(some_games))
    for split in ("train", "valid_seen", "valid_unseen"):
        with pytest.warns(UserWarning, match=f"expected {SPLITS[split]} games of split '{split}'.* got 3"):
            tasks = folder.tasks(split)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for task in tasks:
                game = folder.load(task)
                assert game.task_type == folder.task_type(task)
                assert len(game.receptacles) == folder.n_receptacles(task)


def test_copied_games_have_equal_contents(write: Callable[..., Path], folder: GameFolder, kitchen_text: str) -> None:
    """The name of the problem is no part of it, what lies where is."""
    write("train/a/trial_T1")
    write("train/a/trial_T2", pddl_problem=kitchen_text.replace("(problem ", "(problem other_"))
    write("train/a/trial_T3", pddl_problem=kitchen_text.replace("ShelfType", "DeskType"))
    first, copied, other = (folder.content(f"train/a/trial_T{number}") for number in (1, 2, 3))
    assert first == copied
    assert first != other


def test_contents_of_a_damaged_game(write: Callable[..., Path], folder: GameFolder) -> None:
    """The message names the file."""
    write("train/a/trial_T1", text="{}")
    with pytest.raises(DataError, match=r"pddl_problem in .*trial_T1"):
        folder.content("train/a/trial_T1")
