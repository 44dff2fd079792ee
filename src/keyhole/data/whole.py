"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from keyhole.errors import FileError, OptionError, RunError

__all__ = ["write_whole"]


@contextmanager
def write_whole(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Give a temporary path next to the target, and rename it into place on success.

    Whatever goes wrong, an interrupt included, the temporary file is removed and the target
    is as it was. A target that exists stays unless `force` is given.

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
    _check(target, force)
    temporary = target.with_name(f".{secrets.token_hex(4)}-{target.name[-60:].lstrip('.')}")
    try:
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
        if error.filename not in (None, str(temporary), str(target)):
            raise  # it is about another file
        reason = os.strerror(error.errno) if error.errno else "the system refuses"
        raise RunError(f"{str(target)!r} could not be written: {reason}.") from None
    finally:
        with suppress(OSError):
            temporary.unlink()
    _settle_folder(target.parent)


def _check(target: Path, force: bool) -> None:
    if not target.parent.is_dir():
        raise OptionError(
            f"{str(target)!r} cannot be written: the folder {str(target.parent)!r} does not "
            f"exist. Make it first."
        )
    if target.is_dir():
        raise OptionError(f"{str(target)!r} must be a file. Got a folder instead.")
    if target.exists() and not force:
        raise OptionError(
            f"{str(target)!r} exists. Give another name, or ask for it to be replaced (--force)."
        )


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
