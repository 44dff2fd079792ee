"""What a stage may ask of data and of an engine: a few verbs, the same answers everywhere."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data.columns import Codes, Variable
from keyhole.data.microdata import require_columns, require_records
from keyhole.engines.storage import Storage
from keyhole.kernels.arrays import Ints

if TYPE_CHECKING:
    from keyhole.engines.partition import PatternTable


Missing = Literal["own", "wildcard", "drop"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How exposed a key is: its cells and the records in cells smaller than the cutoff."""

    records: int
    cells: int
    at_risk: int

    @property
    def rp(self) -> float:
        """Risk proportion: the share of records in cells smaller than the cutoff."""
        return self.at_risk / self.records

    @property
    def cr(self) -> float:
        """Cell ratio: non-empty cells over records."""
        return self.cells / self.records

    @property
    def ratio(self) -> float:
        """RP over CR, from the counts themselves."""
        return self.at_risk / self.cells


@dataclass(frozen=True, slots=True)
class Spectrum:
    """How many records lie in cells of each size, and how many cells there are.

    Records that were left out (a missing key under `drop`) are in none of the counts.
    """

    cells: int
    sizes: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def counted(self) -> int:
        """The records in any cell."""
        return sum(self.counts)

    def below(self, size: int) -> int:
        """Return the records in cells smaller than a size."""
        return sum(c for s, c in zip(self.sizes, self.counts, strict=True) if s < size)

    def mean_risk(self, records: int) -> float:
        """Return the mean over so many records of one over the size of their cells."""
        parts = (c / s for s, c in zip(self.sizes, self.counts, strict=True))
        return math.fsum(parts) / records


class Cells(Protocol):
    """The cells of one key: their sizes, and what each record has of them."""

    @property
    def spectrum(self) -> Spectrum:
        """The records by the size of their cells."""

    def sizes(self) -> Ints:
        """Return for each record, in order, the size of its cell (0: left out by `drop`).

        Under `wildcard` it counts every record that agrees wherever both are known.
        """

    def numbers(self) -> Ints:
        """Return for each record a number of its cell; -1 where it was left out."""


class Records(Protocol):
    """What a stage needs of a file: what is known of its columns, and their codes."""

    @property
    def name(self) -> str:
        """What the data is called."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""

    @property
    def records(self) -> int:
        """The number of records."""

    def variable(self, name: str) -> Variable:
        """Return what is known of a column."""

    def require(self, names: Iterable[str], *, purpose: str = "key") -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""

    def require_records(self, least: int = 1) -> None:
        """Say so if there are no records, or fewer than a stage can use."""

    def codes(self, name: str) -> Codes:
        """Return a column as small unsigned integers."""

    def column(self, name: str) -> pl.Series:
        """Return a column's values, missing ones null."""

    def weights(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of sampling weights."""

    def filter(self, mask: npt.NDArray[np.bool_]) -> Records:
        """Return the records for which the mask is true."""


class Engine(Protocol):
    """Counts cells of the records it holds; missing values are a category of their own."""

    @property
    def name(self) -> str:
        """What results call it."""

    @property
    def records(self) -> int:
        """The number of records."""

    def tally(self, keys: Sequence[str], *, cutoff: int) -> Tally:
        """Tally one key."""

    def tally_added(
        self, keys: Sequence[str], candidates: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        """Tally the key with each candidate added in turn."""

    def tally_removed(
        self, keys: Sequence[str], removable: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        """Tally the key with each removable variable left out in turn."""

    def measure(self, keys: Sequence[str], *, missing: Missing = "own") -> Cells:
        """Sort the records into the cells of a key."""

    def patterns(self, keys: Sequence[str]) -> PatternTable:
        """Return the distinct patterns of a key, each with the number of its records."""


class Backend(Protocol):
    """Where data is held and counted; data that names no other is in memory."""

    @property
    def name(self) -> str:
        """What results call the engine."""

    @property
    def is_here(self) -> bool:
        """Whether every record can be looked at here, in memory or on disk."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a result should say of where the data was counted."""

    @property
    def storage(self) -> Storage:
        """Where arrays with a value for each record are made."""

    def engine(self, data: Any, columns: Iterable[str]) -> Engine:
        """Return the engine that counts these columns of the data."""

    def group(self, data: Any, by: str, code: int) -> Records:
        """Return the records of the data that have one code in a column."""


class AskedColumns(ABC):
    """Data that remembers which of its columns were asked for."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        self.name, self.names = name, tuple(names)
        self._asked: dict[str, None] = {}
        self._lock = RLock()

    @property
    @abstractmethod
    def backend(self) -> Backend:
        """Where the data is held and counted."""

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
