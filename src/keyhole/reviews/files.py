"""The files of a review, each with the hash of the bytes that were read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from keyhole.data import Microdata
from keyhole.errors import FileError

__all__ = ["Files", "ReviewFile", "hash_file", "read_steadily"]

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """A file as the review names it: its records, its hash, and how it was read."""

    file: str
    data: Microdata
    sha256: str
    read: Mapping[str, Any] = field(default_factory=dict)


Files = Mapping[str, ReviewFile]
"""The files by their part in the review: `data`, and `puf`, `eif`, `iuf` of a study."""


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_steadily(path: Path, read: Callable[[Path], Read]) -> tuple[Read, str]:
    """Read a file and return its hash, sure that both are of the same bytes.

    Raises
    ------
    FileError
        If the file changes while it is read.
    """
    before = _hash_or_none(path)
    found = read(path)
    if before is None or _hash_or_none(path) != before:
        raise FileError(
            f"{os.fspath(path.name)!r} was changed while it was read. Run the review again when "
            f"nothing else writes to the file."
        )
    return found, before


def _hash_or_none(path: Path) -> str | None:
    """Hash a file; one that cannot be opened is told of by what reads it."""
    try:
        return hash_file(path)
    except OSError:
        return None
