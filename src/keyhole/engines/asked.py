"""Columns that are asked for by name before they are looked at, so that a file is read once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from threading import RLock

from keyhole.data.requiring import require_columns, require_records

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
        asked = require_columns(names, self.names, purpose=purpose, called=self.name)
        with self._lock:
            self._asked.update(dict.fromkeys(asked))
        return asked

    def require_records(self, least: int = 1) -> None:
        """Say so if there are no records, or fewer than a stage can use."""
        require_records(self.records, self.name, least)
