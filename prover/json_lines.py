"""Files of records, one JSON object a line, that grow while a program runs and may be cut when it is stopped."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from prover.errors import DataError

Record = TypeVar("Record")


def read_records(path: Path, read: Callable[[Mapping[str, Any]], Record], noun: str) -> list[Record]:
    """All complete records; none where there is no file. A line that was being written is taken out of the file.

    Args:
        path: the file.
        read: makes a record of a line's object; raises ``ValueError``, ``KeyError`` or ``TypeError`` where it is none.
        noun: what a line holds, with its article, for the message.

    Raises:
        DataError: a line is no such record.
    """
    whole, _, rest = (path.read_text(encoding="utf-8") if path.exists() else "").rpartition("\n")
    if rest:
        path.write_text(whole + "\n" if whole else "", encoding="utf-8")
    found = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            found.append(read(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"expected {noun} in line {number} of {path}, got {type(error).__name__}: {error}; remove this line"
            ) from error
    return found
