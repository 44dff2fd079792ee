"""Columns that are asked for by name before they are looked at, so that a file is read once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from threading import RLock

from keyhole.data.naming import absent, repeated
from keyhole.errors import ColumnError, FileError

__all__ = ["AskedColumns"]


class AskedColumns(ABC):
    """Data that remembers which of its columns were asked for.

    Parameters
    ----------
    name
        What the data is called.
    names
        The columns, in the order of the file.
    note
        Why the data is here rather than in memory, if nobody asked for it.
    """

    def __init__(self, name: str, names: Iterable[str], *, note: str = "") -> None:
        self.name, self.names, self.note = name, tuple(names), note
        self._asked: dict[str, None] = {}
        self._lock = RLock()

    @property
    @abstractmethod
    def records(self) -> int:
        """The number of records."""

    def require(self, names: Iterable[str], *, purpose: str = "key") -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        asked = [names] if isinstance(names, str) else [str(name) for name in names]
        problems = absent(
            dict.fromkeys(asked), list(self.names), purpose=purpose, where=repr(self.name)
        )
        problems += [
            f"{purpose} {name!r} is listed more than once. List it once."
            for name in repeated(asked)
        ]
        if problems:
            raise ColumnError(problems)
        with self._lock:
            self._asked.update(dict.fromkeys(asked))
        return tuple(asked)

    def require_records(self, least: int = 1) -> None:
        """Say so if there are no records, or fewer than a stage can use."""
        if self.records == 0:
            raise FileError(
                f"{self.name!r} has a header but no records. Give a file with at least one record."
            )
        if self.records < least:
            raise FileError(
                f"{self.name!r} must have at least {least} records. Got {self.records} instead."
            )
