"""GameFolder: ALFWorld's own games, in the layout that ``alfworld-download`` writes.

``FOLDER/json_2.1.1/<split>/<task>/<trial>/game.tw-pddl``; the path below ``json_2.1.1`` is the id of the task.
"""

import difflib
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Protocol

from prover.envs.alfworld.game import Game
from prover.errors import DataError, UnknownNameError

VARIABLE = "ALFWORLD_DATA"
"""The environment variable that names the folder, as for ALFWorld itself."""

SPLITS = {"train": 3553, "valid_seen": 140, "valid_unseen": 134, "valid_train": 199}
"""Split -> number of its solvable games."""

_GAMES = "json_2.1.1"
_FILE = "game.tw-pddl"
_TAIL = 16_384  # bytes; "solvable" stands behind the long texts, with at most a walkthrough after it


class Games(Protocol):
    """Where games come from."""

    def tasks(self, split: str) -> tuple[str, ...]:
        """Ids of the tasks of a split."""

    def load(self, task_id: str) -> Game:
        """The game of a task."""

    def task_type(self, task_id: str) -> str:
        """The type of a task."""

    def n_receptacles(self, task_id: str) -> int:
        """The number of receptacles in a task's game."""

    def content(self, task_id: str) -> str:
        """What a task's game is, whatever its id."""


@dataclass(frozen=True, slots=True)
class GameFolder:
    """The games below one folder. They are read when they are asked for, and recent ones are kept."""

    path: Path

    @classmethod
    def find(cls, path: str | None = None) -> "GameFolder":
        """The games in ``path``, or in ``$ALFWORLD_DATA`` when it is empty.

        Raises:
            DataError: neither is given, or there are no games in it.
        """
        named = path or os.environ.get(VARIABLE, "")
        if not named:
            raise DataError(
                f"expected a folder with ALFWorld's games, got none: ${VARIABLE} is not set; {_how_to_get()}"
            )
        folder = cls(Path(named).expanduser())
        if not (folder.path / _GAMES).is_dir():
            source = "data" if path else f"${VARIABLE}"
            raise DataError(
                f"expected ALFWorld's games in {folder.path / _GAMES} ({source} = {named!r}), got no such folder; "
                f"{_how_to_get(folder.path)}"
            )
        return folder

    def tasks(self, split: str) -> tuple[str, ...]:
        """Sorted ids of a split's solvable games, e.g. ``valid_unseen/<task>/<trial>``.

        Games are only listed, not read. Like ALFWorld it leaves out games that are unsolvable or about moved or sliced
        things. Warns once when the number differs from that of the complete split, naming the damaged games.

        Raises:
            UnknownNameError: ALFWorld has no such split.
            DataError: the split holds no game.
        """
        if split not in SPLITS:
            raise UnknownNameError(f"expected a split of ALFWorld ({', '.join(SPLITS)}), got {split!r}")
        found, damaged = _listed(self.path, split)
        names = f"; skipped as damaged: {', '.join(damaged)}" if damaged else ""
        if not found:
            counts = {name: len(_listed(self.path, name)[0]) for name in SPLITS}
            raise DataError(
                f"expected {SPLITS[split]} games of split {split!r} in {self.path / _GAMES}, got {counts}{names}; "
                f"{_how_to_get(self.path)}"
            )
        if len(found) != SPLITS[split]:
            warnings.warn(
                f"expected {SPLITS[split]} games of split {split!r} in {self.path / _GAMES}, got {len(found)}{names}; "
                f"results are not comparable with those on the whole split",
                stacklevel=2,
            )
        return found

    def load(self, task_id: str) -> Game:
        """Read the game of a task.

        Raises:
            UnknownNameError: there is no such task.
            DataError: the game is damaged, unsolvable or of an older version.
        """
        return _loaded(self._file(task_id))

    def task_type(self, task_id: str) -> str:
        """ALFWorld's name of a task's type, from its id.

        >>> GameFolder(Path()).task_type("valid_seen/pick_and_place_simple-Book-None-SideTable-329/trial_T2019")
        'pick_and_place_simple'
        """
        return task_id.split("/")[1].partition("-")[0]

    def n_receptacles(self, task_id: str) -> int:
        """Number of receptacles of a task's game, counted in its text without building the game.

        Raises:
            UnknownNameError: there is no such task.
        """
        return _counted(self._file(task_id))

    def content(self, task_id: str) -> str:
        """What a task's game is, but for its name: layout, objects and goal in ALFWorld's own words.

        Raises:
            UnknownNameError: there is no such task.
            DataError: the game is damaged.
        """
        return _content(self._file(task_id))

    def _file(self, task_id: str) -> Path:
        parts = task_id.split("/")
        if len(parts) == 3 and parts[0] in SPLITS and not {"", ".", ".."} & set(parts):
            file = self.path.joinpath(_GAMES, *parts, _FILE)
            if file.exists():
                return file
        found = _listed(self.path, parts[0])[0] if parts[0] in SPLITS else ()
        near = difflib.get_close_matches(task_id, found[:500], 1)
        hint = f"did you mean {near[0]!r}?" if near else "tasks(split) lists them"
        raise UnknownNameError(
            f"expected a task <split>/<task>/<trial> in {self.path / _GAMES}, got {task_id!r}; {hint}"
        )


def _how_to_get(folder: Path | None = None) -> str:
    where = f" --data-dir {folder}" if folder else ""
    return (
        f"run 'pip install alfworld && alfworld-download{where}' and set {VARIABLE} to that folder, "
        f"or use data='generated', which needs no files"
    )


@cache
def _listed(folder: Path, split: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Solvable games of a split, and damaged ones, as sorted ids."""
    states: dict[str, list[str]] = {"solvable": [], "damaged": [], "unsolvable": []}
    for task, trial, file in _files(folder / _GAMES / split):
        states[_state(file)].append(f"{split}/{task}/{trial}")
    return tuple(sorted(states["solvable"])), tuple(sorted(states["damaged"]))


def _files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Task, trial and file of every game below a split's folder that ALFWorld would play."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as tasks:
        for task in tasks:
            if not task.is_dir() or "movable" in task.name or "Sliced" in task.name:
                continue
            with os.scandir(task.path) as trials:
                for trial in trials:
                    file = os.path.join(trial.path, _FILE)
                    if os.path.exists(file):
                        yield task.name, trial.name, file


def _state(file: str) -> str:
    """Whether a game is solvable, unsolvable or damaged, from the end of its file where that is enough."""
    try:
        with open(file, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL))
            tail = stream.read()
            if not tail.rstrip().endswith(b"}"):
                return "damaged"
            if b'"solvable"' not in tail:
                stream.seek(0)
                tail = stream.read()
    except OSError:
        return "damaged"
    return "solvable" if re.search(rb'"solvable":\s*true', tail) else "unsolvable"


@lru_cache(maxsize=128)
def _loaded(file: Path) -> Game:
    return Game.load(file)


def _content(file: Path) -> str:
    try:
        problem = str(json.loads(file.read_text(encoding="utf-8"))["pddl_problem"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"expected a game with a pddl_problem in {file}, got {type(error).__name__}: {error}; {_how_to_get()}"
        ) from error
    return problem.partition("(:domain")[2]


@cache
def _counted(file: Path) -> int:
    # In the domain, which is part of the same file, variables follow the predicate instead of ids.
    return Counter(re.findall(r"\(receptacleAtLocation ([^?\s])", file.read_text(encoding="utf-8"))).total()
