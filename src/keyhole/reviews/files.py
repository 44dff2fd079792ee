"""The files of a review, each with the hash of the bytes that were read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from keyhole.data import Microdata
from keyhole.errors import FileError

if TYPE_CHECKING:
    from keyhole.environment.scenarios.recoding import ScenarioKey


KEYED = "keyed"
"""The part of the file under review, recoded to the key that the review is about."""
LINKED = "linked"
"""The same, recoded to the key that a study links on."""

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


@dataclass(frozen=True, slots=True)
class ScenarioFile(ReviewFile):
    """The file under review as one scenario's intruder could match it."""

    key: ScenarioKey | None = None


def scenario_key_of(files: Files, part: str) -> ScenarioKey | None:
    """Return the scenario's key that a part of the review was recoded to, if there is one."""
    found = files.get(part)
    return found.key if isinstance(found, ScenarioFile) else None


Memory = dict[tuple[str, str], tuple[Any, Any]]
"""What was made before, by its name and how it was made: of what, and what it is."""

_memory: ContextVar[Memory | None] = ContextVar("_memory", default=None)


@contextmanager
def remembering(memory: Memory) -> Iterator[None]:
    """Read no file again that is as it was: same size, time and way of reading.

    Only for looking at a review again and again; a run that makes a dossier reads everything.
    """
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


_root: ContextVar[Path | None] = ContextVar("_root", default=None)


@contextmanager
def confined(root: Path) -> Iterator[None]:
    """Read no file outside a folder, whatever a review names; links are followed first."""
    token = _root.set(root.resolve())
    try:
        yield
    finally:
        _root.reset(token)


def allowed(path: Path) -> Path:
    """Return a path; refuse one that is none, or outside the folder that reading is confined to."""
    if "\0" in str(path):
        raise FileError("a path must not hold a zero byte. Correct it in the review file.")
    root = _root.get()
    if root is not None and not path.resolve().is_relative_to(root):
        raise FileError(
            f"{path.name!r} is not below the folder the workbench was started in. Copy it there, "
            f"or start the workbench in a folder above both."
        )
    return path


def remembered(name: str, state: Any, make: Callable[[], Read], how: str = "") -> Read:
    """Make something anew only if what it is made of changed, while a review is looked at.

    A state of None is never the same as before. Of a name the last two ways of making it are kept.
    """
    memory = _memory.get()
    if memory is None or state is None:
        return make()
    known = memory.get((name, how))
    if known is not None and known[0] == state:
        found: Read = known[1]
        return found
    found = make()
    memory.pop((name, how), None)
    memory[name, how] = (state, found)
    for older in [key for key in memory if key[0] == name][:-2]:
        del memory[older]
    return found


def read_again(path: Path, read: Callable[[Path], Read]) -> Read:
    """Read a file that tells its own hash, unless it is remembered and is as it was."""
    return remembered(str(allowed(path)), _state(path), lambda: read(path), _how(read))


def seen_from(folder: Path, file: Path) -> str:
    """Write a file's path as seen from a folder, so that both can be moved together."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return file.as_posix()


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_steadily(path: Path, read: Callable[[Path], Read]) -> tuple[Read, str]:
    """Read a file and return its hash, sure that both are of the same bytes."""
    return remembered(str(allowed(path)), _state(path), lambda: _read(path, read), _how(read))


def _state(path: Path) -> Any:
    try:
        now = path.stat()
    except (OSError, ValueError):
        return None
    return now.st_mtime_ns, now.st_size, now.st_ino


def _how(read: Callable[..., Any]) -> str:
    """Return how a file is to be read: by what, told what."""
    func = getattr(read, "func", read)
    return repr((func, getattr(read, "args", ()), getattr(read, "keywords", {})))


def _read(path: Path, read: Callable[[Path], Read]) -> tuple[Read, str]:
    before = hash_or_none(path)
    found = read(path)
    if before is None or hash_or_none(path) != before:
        raise FileError(
            f"{os.fspath(path.name)!r} was changed while it was read. Run the review again when "
            f"nothing else writes to the file."
        )
    return found, before


def hash_or_none(path: Path) -> str | None:
    """Hash a file; one that cannot be opened is told of by what reads it."""
    try:
        return hash_file(path) if path.is_file() else None  # a device never ends
    except OSError:
        return None
