"""Storage of large arrays: in memory, or in mapped files of a work folder."""

from __future__ import annotations

import itertools
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.core.files import hold_folder, release_folder
from keyhole.core.options import Problem
from keyhole.engines.resources import format_size
from keyhole.errors import FileError, OptionError, RunError
from keyhole.kernels.arrays import Array

# Long arrays are worked through so many rows at a time: what is made on the way stays small.
ROWS_AT_ONCE = 1 << 20


class Storage:
    """Arrays with one value or more a record: here in memory, in a `WorkFolder` in mapped files."""

    name = "memory"  # what results call the engine that counts here

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Return an array whose values are not set."""
        return np.empty(shape, dtype=dtype)

    def require(self, size: int, what: str) -> None:
        """Refuse what would take more memory than may be used; here the system does."""


MEMORY = Storage()


def parts(length: int, most: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Cut a length into slices of at most so many."""
    cuts = [*range(0, length, most), length]
    return (slice(a, b) for a, b in itertools.pairwise(cuts) if a < b)


def count_codes(codes: Array, size: int) -> npt.NDArray[np.int64]:
    """Count the records of each code."""
    out = np.zeros(size, dtype=np.int64)
    for some in parts(len(codes)):
        out += np.bincount(codes[some], minlength=size)
    return out


def copied(array: Array, storage: Storage) -> Array:
    """Return a copy in some storage."""
    out = storage.empty(array.shape, array.dtype)
    for some in parts(len(array)):
        out[some] = array[some]
    return out


DEFAULT_MEMORY = 10**9
_CAN_UNLINK_OPEN_FILES = os.name == "posix"


class WorkFolder(Storage):
    """A folder of its own for the large arrays of one data set.

    It should be on a disk: on a file system in memory nothing would be gained. About `memory` bytes
    may be used besides mapped files. Only its owner can enter the folder, for it holds the records'
    codes. An array's file loses its name as soon as it is mapped, so that the system gives its room
    back when the array goes or the process dies; what a killed process left is removed later.
    """

    name = "disk"

    def __init__(
        self, parent: str | os.PathLike[str] | None = None, *, memory: int = DEFAULT_MEMORY
    ) -> None:
        self.memory = memory
        self.place = Path(tempfile.gettempdir() if parent is None else parent)
        if not os.path.isdir(self.place):  # not of Path: it may be too long
            template = "{work_folder} {0!r} does not exist. Make it, or give another."
            raise FileError(Problem(template, str(self.place)))
        with refusing(self.place):
            self.path = hold_folder(self.place)
        self._numbers = itertools.count()
        self._close = weakref.finalize(self, release_folder, self.path)

    def close(self) -> None:
        """Remove the folder; arrays that are still held stay good where the system allows."""
        self._close()

    def require(self, size: int, what: str) -> None:
        """Refuse what would take more memory than may be used, before it begins."""
        if size > self.memory:
            enough = format_size(1.1 * size, digits=2).replace(" ", "")
            template = (
                "{0} takes about {1} of memory, more than the {2} that may be used. Give more "
                "({memory} {3}), ask for less, or use {engine} memory on a machine that has it."
            )
            most = format_size(self.memory)
            raise OptionError(Problem(template, what, format_size(size), most, enough))

    def file(self, suffix: str = "") -> Path:
        """Return a new name in the folder."""
        return self.path / f"{next(self._numbers)}{suffix}"

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Return an array in a mapped file; its values are not set."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        if size == 0:
            return np.empty(shape, dtype=kind)
        path = self.file(".array")
        try:
            with path.open("x+b") as file:
                if hasattr(os, "posix_fallocate"):  # a full disk is told now, not by a crash later
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    os.truncate(file.fileno(), size)
                held = mmap.mmap(file.fileno(), size)
            if _CAN_UNLINK_OPEN_FILES:
                path.unlink()
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            raise refused(self.place, error) from None
        array: npt.NDArray[Any] = np.frombuffer(held, dtype=kind).reshape(shape)
        return array


@contextmanager
def refusing(place: Path) -> Iterator[None]:
    """Say so if the system takes no more there."""
    try:
        yield
    except OSError as error:
        raise refused(place, error) from None


def refused(place: Path, error: OSError) -> FileError | RunError:
    """Say that nothing can be written to a work folder."""
    reason = os.strerror(error.errno) if error.errno else "the system refuses"
    if isinstance(error, PermissionError):
        template = "{work_folder} {0!r} cannot be written: {1}. Give another."
        return FileError(Problem(template, str(place), reason.lower()))
    template = "{work_folder} {0!r} is full: {1}. Free some space there, or give another folder."
    return RunError(Problem(template, str(place), reason))
