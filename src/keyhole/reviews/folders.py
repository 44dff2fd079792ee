"""A folder to write into: made if need be, fit for it, and one run's own until it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from keyhole.errors import FileError, OptionError

# No longer name is written, the beginning of an unfinished file's included.
LONGEST = "x" * 80


@contextmanager
def own_folder(
    folder: Path, check: Callable[[], None], parts: Sequence[str] = ()
) -> Iterator[None]:
    """Hold a folder, made if need be, while it is written into; on failure leave nothing behind.

    `check` raises what speaks against the folder once it is held; `parts` are folders inside it.
    """
    made: list[Path] = []
    try:
        require_no_link(folder)
        _make(folder, made)
        lock = _lock(folder)
    except BaseException as error:
        _undo(made)
        raise _told(folder, error) from None
    try:
        try:
            check()
            for part in parts:
                _make(folder / part, made)
            for place in (folder, *(folder / part for part in parts)):
                _try(place)
        except BaseException as error:
            _undo(made)
            raise _told(folder, error) from None
        yield
    finally:
        os.close(lock)


def require_no_link(folder: Path) -> None:
    """Refuse a link in place of a folder: its name does not say where things are."""
    if folder.is_symlink():
        raise OptionError(
            f"{str(folder)!r} must be a folder of its own. Got a link instead. Give the folder it "
            f"leads to, or another one."
        )


def _make(folder: Path, made: list[Path]) -> None:
    if folder.is_dir():
        return
    if os.path.lexists(folder):
        raise OptionError(f"{str(folder)!r} must be a folder. Got a file instead.")
    if folder.parent != folder:
        _make(folder.parent, made)
    folder.mkdir(exist_ok=True)
    made.append(folder)


def _undo(made: Sequence[Path]) -> None:
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()


def _lock(folder: Path) -> int:
    """Hold the folder until the number returned is closed; the system lets go of a killed run's."""
    try:
        import fcntl
    except ImportError:  # Windows cannot hold a folder: two runs there must not meet
        return os.open(os.devnull, os.O_RDONLY)
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise OptionError(
            f"{str(folder)!r} is being written into by another run. Wait until it has ended, or "
            f"give another folder."
        ) from None
    except OSError:  # a file system without locks
        return number
    return number


def _try(folder: Path) -> None:
    """Find out before the work whether files can be written there."""
    with suppress(FileNotFoundError):
        os.stat(folder / LONGEST)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, os.strerror(13))


def _told(folder: Path, error: BaseException) -> BaseException:
    if isinstance(error, ValueError):  # a name with a zero byte
        return FileError(f"the folder {str(folder)!r} cannot be written into: its path is none.")
    if not isinstance(error, OSError):
        return error
    reason = (error.strerror or "unknown reason").lower()
    return FileError(
        f"the folder {str(folder)!r} cannot be written into: {reason}. Give another one."
    )
