"""Indexes on disk: made once for a corpus, then read by every process that searches it.

``CACHE/retrieval/<kind>-<fingerprint>/`` holds the files of an index and, written last, ``complete.json`` with the hash
of each. A folder without it, or with a file of another hash, is made anew.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Index = TypeVar("Index")

_MARK = "complete.json"


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/prover``, or ``~/.cache/prover``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prover"


def cached(
    name: str, cache: Path | None, *, make: Callable[[Path | None], Index], read: Callable[[Path], Index]
) -> Index:
    """An index from the cache, or else made now and left there.

    Args:
        name: kind and fingerprint: everything that the index depends on.
        cache: folder of caches; None keeps nothing on disk. One that cannot be written is done without.
        make: makes the index, and leaves it in an empty folder if one is given, as files without subfolders.
        read: reads such a folder, preferably as memory maps.
    """
    if cache is None:
        return make(None)
    folder = cache / "retrieval" / name
    if not _is_whole(folder):
        _store(folder, make)
    # Read also right after it was made: the maps are shared with other processes, and working memory is given back.
    return read(folder) if _is_whole(folder) else make(None)


def _is_whole(folder: Path) -> bool:
    try:
        digests = json.loads((folder / _MARK).read_text(encoding="utf-8"))["digests"]
        return bool(digests) and all(_digest(folder / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _store(folder: Path, make: Callable[[Path | None], object]) -> None:
    """Write into a folder beside and rename it, so that no other process sees half of it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    except OSError:
        return  # Without a cache everything works, only slower.
    try:
        make(beside)
        files = [file for file in sorted(beside.iterdir()) if not file.name.startswith(".")]
        mark = {"digests": {file.name: _digest(file) for file in files}}
        (beside / _MARK).write_text(json.dumps(mark), encoding="utf-8")
        # Another process may have been faster; what is whole stays, since somebody may be reading it.
        if folder.exists() and not _is_whole(folder):
            shutil.rmtree(folder)
        beside.rename(folder)
    except OSError:
        pass  # The disk is full, or another process was faster.
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
