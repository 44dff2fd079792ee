"""File formats, by extension and by what a file begins with."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from keyhole.core.names import nearest
from keyhole.errors import FileError, InputError

EXTENSIONS = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
    ".sas7bdat": "SAS",
    ".xpt": "SAS transport",
    **dict.fromkeys((".sav", ".zsav"), "SPSS"),
    ".dta": "Stata",
    ".xlsx": "Excel",
}
_PROPER = {"gzip": ".gz", **{form: suffix for suffix, form in reversed(EXTENSIONS.items())}}
_BEGINNINGS = (
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"$FL2", "SPSS"),
    (b"$FL3", "SPSS"),
    (b"<stata_dta>", "Stata"),
    (b"HEADER RECORD*******LIB", "SAS transport"),
    (b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60", "SAS"),
    (b"PK\x03\x04", "Excel"),
    (b"\x1f\x8b", "gzip"),
)


def suffix_of(path: Path) -> str:
    """Return the extension, with the one before ``.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def find_format(path: Path, *, writing: bool = False) -> str:
    """Return the format an extension stands for; only text may be packed (``.gz``)."""
    suffix = suffix_of(path)
    found = EXTENSIONS.get(suffix.removesuffix(".gz"))
    if found is None or (suffix.endswith(".gz") and found != "text"):
        known = [one for one in EXTENSIONS if not (writing and one == ".sas7bdat")]
        held = None
        with suppress(OSError, FileError):
            held = _held(_begin(path)) if path.is_file() else None
        like = " Save it as .xlsx." if suffix == ".xls" else ""
        if held:
            like = f" It looks like {_called(held)}: rename it to end in {_PROPER[held]}."
        raise FileError(
            f"{path.name!r} must have an extension that says its format: {', '.join(known)}, or "
            f".csv.gz and the like. Got {suffix or 'none'} instead.{like}"
        )
    return found


def require_file(path: Path) -> None:
    """Say what is wrong with a path that cannot be read as what its extension says."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise FileError(_no_such_file(path)) from None
    except OSError as error:
        raise _refused(path, error) from None
    if stat.S_ISDIR(mode):
        raise FileError(f"{str(path)!r} must be a file. Got a folder instead: name a file in it.")
    if not stat.S_ISREG(mode):  # to read from it may wait for ever, and is possible once only
        raise FileError(
            f"{str(path)!r} must be a file. Got a pipe, a socket or a device instead: write what "
            f"it gives to a file first."
        )
    wanted = find_format(path)
    beginning = _begin(path)
    if not beginning:
        raise FileError(f"{path.name!r} is empty. Give a file with a header and records.")
    if path.suffix.lower() == ".gz":
        wanted = "gzip"
    held = _held(beginning)
    if held is not None and held != wanted:
        raise FileError(
            f"{path.name!r} is named as {_called(wanted)} but holds {_called(held)}. Rename it so "
            f"that it ends in {_PROPER[held]}."
        )


def _refused(path: Path, error: OSError) -> FileError:
    if isinstance(error, PermissionError):
        return FileError(
            f"{str(path)!r} cannot be read: permission denied. Ask its owner for access."
        )
    reason = os.strerror(error.errno) if error.errno else "the system refuses"
    return FileError(f"{str(path)!r} cannot be read: {reason}. Check the path.")


def _called(name: str) -> str:
    return name if name == "text" else f"{name} data"


def _held(beginning: bytes) -> str | None:
    return next((name for mark, name in _BEGINNINGS if beginning.startswith(mark)), None)


def _begin(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(64)
    except OSError as error:
        raise _refused(path, error) from None


def _no_such_file(path: Path) -> str:
    if not path.parent.is_dir():
        return (
            f"{str(path)!r} does not exist, nor does its folder {str(path.parent)!r}. "
            f"Check the path."
        )
    names: list[str] = []
    with suppress(OSError):
        names = sorted(file.name for file in path.parent.iterdir())
    near = nearest(path.name, [name for name in names if name != path.name])
    offer = f"Did you mean {' or '.join(map(repr, near))}?" if near else "Check the path."
    return f"{str(path)!r} does not exist. {offer}"


def name_by_contents(path: Path) -> str:
    """Name a file that has no name, as one that standard input gave: text is delimited text."""
    held = _held(_begin(path)) or "text"
    return f"stdin{'.csv.gz' if held == 'gzip' else _PROPER[held]}"


def written_suffix(suffix: str) -> str:
    """Return an extension if files can be written with it, else that of Parquet."""
    with suppress(InputError):
        require_written_format(Path(f"x{suffix}"))
        return suffix
    return ".parquet"


def require_written_format(path: Path) -> str:
    """Return the format of a file that is to be written, if it can be."""
    form = find_format(path, writing=True)
    if form == "SAS":
        raise FileError(
            f"{path.name!r} must be in a format that can be written. Got .sas7bdat instead: "
            f"write SAS transport (.xpt), which SAS reads."
        )
    return form
