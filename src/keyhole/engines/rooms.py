"""Where an engine's large arrays live: in memory, or in files mapped into it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["MEMORY", "ROWS_AT_ONCE", "InMemory", "Room", "copied", "counted", "parts"]

Array = npt.NDArray[Any]

# Long arrays are worked through so many rows at a time: what is made on the way stays small.
ROWS_AT_ONCE = 1 << 20


class Room(Protocol):
    """Gives arrays, one value or more a record, that need not fit into memory."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Return an array whose values are not set."""
        ...

    def require(self, size: int, what: str) -> None:
        """Refuse what would take so many bytes of memory if that is more than may be used."""
        ...


class InMemory:
    """Plain arrays."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Return an array whose values are not set."""
        return np.empty(shape, dtype=dtype)

    def require(self, size: int, what: str) -> None:
        """Let the system say when there is no more."""


MEMORY = InMemory()


def parts(length: int, most: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Cut a length into slices of at most so many.

    Examples
    --------
    >>> list(parts(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    cuts = [*range(0, length, most), length]
    return (slice(a, b) for a, b in itertools.pairwise(cuts) if a < b)


def counted(codes: Array, size: int) -> npt.NDArray[np.int64]:
    """Count the records of each code.

    Examples
    --------
    >>> counted(np.array([0, 2, 2], dtype=np.uint8), 4).tolist()
    [1, 0, 2, 0]
    """
    out = np.zeros(size, dtype=np.int64)
    for some in parts(len(codes)):
        out += np.bincount(codes[some], minlength=size)
    return out


def copied(array: Array, room: Room) -> Array:
    """Return a copy in a room."""
    out = room.empty(array.shape, array.dtype)
    for some in parts(len(array)):
        out[some] = array[some]
    return out
