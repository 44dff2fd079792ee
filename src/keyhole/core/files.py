"""Atomic file writes."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from keyhole.core.options import Problem
from keyhole.errors import FileError, OptionError, RunError

__all__ = ["put_folder", "require_room", "write_whole"]

_ROOM = 1 << 16


@contextmanager
def write_whole(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Give a temporary path next to the target, and rename it into place on success.

    Whatever goes wrong, an interrupt included, the temporary file is removed and the target
    is as it was. A target that exists stays unless `force` is given. A link, also one to
    nothing, is such a target: it is replaced and not followed, so that nothing is written
    where the name does not say.

    Parameters
    ----------
    path
        The file to be written.
    force
        Replace the file if it exists.

    Yields
    ------
    Path
        Where to write; it has the same extension as the target.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with write_whole(folder / "out.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['out.txt']
    """
    target = Path(path)
    temporary = target.parent / f".{secrets.token_hex(4)}-{target.name[-60:].lstrip('.')}"
    try:
        _check(target, force)
        yield temporary
        _settle(temporary)
        if not force:
            _check(target, force)
        os.replace(temporary, target)
    except PermissionError:
        raise FileError(
            f"{str(target)!r} cannot be written: permission denied. Choose another folder."
        ) from None
    except OSError as error:
        if not _is_about(error, temporary, target):
            raise
        raise RunError(
            f"{str(target)!r} could not be written: {_reason(error)}. Make room there, or choose "
            f"another folder."
        ) from None
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink()
    _settle_folder(target.parent)


def require_room(path: Path) -> None:
    """Let a disk that is full say so, where a library hides why it could not write a file.

    It is asked by adding to what was written, which is of no use any more.
    """
    with path.open("ab") as file:
        file.write(bytes(_ROOM))
        os.fsync(file.fileno())


def _is_about(error: OSError, temporary: Path, target: Path) -> bool:
    """Whether an error tells of this file, or of no file by name."""
    name = error.filename
    return name is None or str(name) == str(target) or temporary.name in str(name)


def _reason(error: OSError | ValueError) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else "the system refuses"


def _check(target: Path, force: bool) -> None:
    try:
        problem = _problem(target, force)
    except PermissionError:
        raise
    except (OSError, ValueError) as error:  # a name too long, or with characters no file has
        problem = f"{str(target)!r} cannot be written: {_reason(error)}. Give another name."
    if problem:
        raise OptionError(problem)


def _problem(target: Path, force: bool) -> str:
    if not target.parent.is_dir():
        return (
            f"{str(target)!r} cannot be written: the folder {str(target.parent)!r} does not "
            f"exist. Make it first."
        )
    if target.is_dir():
        return f"{str(target)!r} must be a file. Got a folder instead."
    if target.exists() and not target.is_file():
        return f"{str(target)!r} must be a file. Got a pipe, a socket or a device instead."
    with suppress(FileNotFoundError):
        target.lstat()
        if not force:
            template = "{0!r} exists. Give another name, or ask for it to be replaced ({force})."
            return Problem(template, str(target))
    return ""


def _settle(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _settle_folder(folder: Path) -> None:
    """Make the new name last; not every system lets a folder be opened."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def put_folder(temporary: Path, folder: Path) -> None:
    """Move a finished folder into place; an older one goes only when the new one is there."""
    if not os.path.lexists(folder):
        temporary.rename(folder)
        return
    old = folder.parent / f".{secrets.token_hex(4)}-old"
    folder.rename(old)
    try:
        temporary.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
