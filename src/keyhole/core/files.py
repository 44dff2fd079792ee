"""Atomic file writes: whole or not at all, and what a killed run left is put right by the next.

Everything is written inside a hidden folder beside its target, which only its owner can enter,
and renamed into place. The folder holds a lock for as long as its run lives. Whoever writes next
to it removes the folders that nobody holds any more; an older release that was set aside and
whose successor never came is put back. SIGTERM and SIGHUP clean up as Ctrl-C does.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from keyhole.core.options import Problem
from keyhole.errors import FileError, OptionError, RunError

_ROOM = 1 << 16
_UNFINISHED = re.compile(r"\.keyhole-[0-9a-f]{8}")
# Inside such a folder: the lock, what is being written, and what it replaces.
_LOCK, _NEW, _OLD = "lock", "new", "old"
# A terminal that is closed sends SIGHUP, which Windows does not know.
_ENDING = [s for s in (signal.SIGTERM, getattr(signal, "SIGHUP", None)) if s is not None]


@contextmanager
def write_whole(
    path: str | os.PathLike[str], *, force: bool = False, private: bool = False
) -> Iterator[Path]:
    """Give a temporary path next to the target, and rename it into place on success.

    A target that exists, also a link to nothing, stays unless `force` is given; a link is replaced
    and not followed. A `private` file only its owner may read and write; else the umask decides.
    """
    target = Path(path)
    place = _new_place(target.parent)
    try:
        _check(target, force)
        _make(place)
        temporary = place / _NEW / target.name
        yield temporary
        if private:
            temporary.chmod(0o600)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if not force:
            _check(target, force)
        os.replace(temporary, target)
    except PermissionError:
        raise FileError(
            f"{str(target)!r} cannot be written: permission denied. Choose another folder."
        ) from None
    except OSError as error:
        name = error.filename
        if not (name is None or str(name) == str(target) or place.name in str(name)):
            raise  # it tells of another file
        raise _refused(target, error) from None
    finally:
        _remove(place)
    _settle_folder(target.parent)


@contextmanager
def write_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new folder next to the target, and rename it into place on success.

    An older one goes only when the new one is there; the next run puts it back if this is killed.
    """
    target = Path(path)
    place = _new_place(target.parent)
    try:
        _make(place)
        temporary = place / _NEW / target.name
        temporary.mkdir()
        yield temporary
        if os.path.lexists(target):
            (place / _OLD).mkdir()
            target.rename(place / _OLD / target.name)
        temporary.rename(target)
    except OSError as error:
        raise _refused(target, error) from None
    finally:
        _remove(place)
    _settle_folder(target.parent)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder for temporary files that only its owner can enter, and remove it."""
    place = _new_place(Path(tempfile.gettempdir()))
    try:
        _make(place)
        yield place / _NEW
    finally:
        _remove(place)


def hold_folder(parent: Path) -> Path:
    """Make a folder that only its owner can enter; it stays until `release_folder`."""
    place = _new_place(parent)
    _make(place)
    _LASTING.add(place)
    return place / _NEW


def release_folder(held: Path) -> None:
    """Remove a folder that was held."""
    _remove(held.parent)


def sweep(folder: Path) -> None:
    """Remove what killed runs left in a folder, and put back what they had set aside."""
    with suppress(OSError, ValueError):
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if _UNFINISHED.fullmatch(entry.name)]
        for name in names:
            with suppress(OSError):
                _clear(folder / name)


def _clear(place: Path) -> None:
    """Remove an unfinished folder of our own, unless somebody holds it."""
    found = place.lstat()
    if not os.path.isdir(place) or place.is_symlink():
        return
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return
    lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock_file(lock)
        _remove(place)
    finally:
        os.close(lock)
    if sys.platform == "win32":  # which removes no file that is open
        shutil.rmtree(place, ignore_errors=True)


def _new_place(parent: Path) -> Path:
    sweep(parent)
    return parent / f".keyhole-{secrets.token_hex(4)}"


def _make(place: Path) -> None:
    """Make an unfinished folder and hold its lock until the folder is removed."""
    _HELD[place] = None
    place.mkdir(mode=0o700)
    while True:
        try:
            lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # swept away by another run before it was held
            place.mkdir(mode=0o700)
            continue
        _HELD[place] = lock
        with suppress(OSError):  # a file system without locks; nothing is swept there
            lock_file(lock, wait=True)
        if os.fstat(lock).st_nlink:
            break
        _let_go(place)
    (place / _NEW).mkdir(mode=0o700)


_HELD: dict[Path, int | None] = {}
"""The locks of this process, by the folder that is being filled; None before and after."""
_LASTING: set[Path] = set()
"""Those of the folders that may outlast a command."""


def _let_go(place: Path) -> None:
    lock = _HELD.get(place)
    if lock is not None:
        _HELD[place] = None
        os.close(lock)


def _remove(place: Path) -> None:
    """Remove an unfinished folder; what it had set aside is put back if nothing has replaced it."""
    with suppress(OSError, ValueError):
        for old in (place / _OLD).iterdir():
            if not os.path.lexists(place.parent / old.name):
                old.rename(place.parent / old.name)
    _let_go(place)
    with suppress(ValueError):
        shutil.rmtree(place, ignore_errors=True)
    _HELD.pop(place, None)
    _LASTING.discard(place)


def lock_file(file: int, *, wait: bool = False) -> None:
    """Hold an open file until it is closed or the process ends; an `OSError` if it is held."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def is_locked(path: Path) -> bool:
    """Tell whether a process holds a lock; the system lets go of a killed one's."""
    try:
        import fcntl

        number = os.open(path, os.O_RDONLY)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(number)
    return False


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Let a signal that would end the process interrupt it, so that nothing is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [one for one in _ENDING if signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, _interrupt)
    try:
        yield
    finally:
        # What was being written when it was interrupted, also while it cleaned up.
        for place in set(_HELD) - _LASTING:
            _remove(place)
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _refused(target: Path, error: OSError) -> RunError:
    return RunError(
        f"{str(target)!r} could not be written: {_reason(error)}. Free some space there, or choose "
        f"another folder."
    )


def require_room(path: Path) -> None:
    """Let a full disk say so, where a library hides why it could not write a file."""
    with path.open("ab") as file:
        file.write(bytes(_ROOM))
        os.fsync(file.fileno())


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


def _settle_folder(folder: Path) -> None:
    """Make the new name last; not every system lets a folder be opened."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
