"""Files below the start folder, and no others."""

from __future__ import annotations

from pathlib import Path

from keyhole.errors import FileError

__all__ = ["inside", "seen_from"]

# File systems take no longer name.
LONGEST = 250


def inside(folder: Path, name: str) -> Path:
    """Return the file that a name means, if it is below a folder; links are followed first.

    Raises
    ------
    FileError
        If it is above the folder or beside it, whatever way is taken there.

    Examples
    --------
    >>> inside(Path("/data"), "../etc/passwd")
    Traceback (most recent call last):
    ...
    keyhole.errors.FileError: that file is not below the folder the workbench was started in.
    Copy it there, or start the workbench in a folder above both.
    """
    try:
        found = (folder / name).resolve()
        known = found.is_relative_to(folder.resolve()) and "\0" not in name
        known = known and max(map(len, found.parts)) < LONGEST
    except (OSError, ValueError, RuntimeError):
        known = False
    if not known:
        raise FileError(
            "that file is not below the folder the workbench was started in. Copy it there, or "
            "start the workbench in a folder above both."
        )
    return found


def seen_from(folder: Path, path: Path) -> str:
    """Write a path as seen from the start folder."""
    return path.resolve().relative_to(folder.resolve()).as_posix()
