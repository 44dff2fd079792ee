"""What a stage may ask of an engine: a few verbs, the same answers everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Engine", "Missing", "Tally"]

Missing = Literal["own", "wildcard", "drop"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How exposed a key is: its cells and the records in cells smaller than the cutoff.

    Examples
    --------
    >>> tally = Tally(records=10, cells=4, at_risk=3)
    >>> tally.rp, tally.cr, tally.ratio
    (0.3, 0.4, 0.75)
    """

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


class Engine(Protocol):
    """Counts cells of the records it holds.

    Missing values are a category of their own in every `tally`.
    """

    @property
    def records(self) -> int:
        """Return the number of records."""
        ...

    def tally(self, keys: Sequence[str], *, cutoff: int) -> Tally:
        """Tally one key."""
        ...

    def tally_added(
        self, keys: Sequence[str], candidates: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        """Tally the key with each candidate added in turn."""
        ...

    def tally_removed(
        self, keys: Sequence[str], removable: Sequence[str], *, cutoff: int
    ) -> list[Tally]:
        """Tally the key with each removable variable left out in turn."""
        ...

    def cell_sizes(self, keys: Sequence[str], *, missing: Missing) -> npt.NDArray[np.int64]:
        """Return for each record, in order, the size of its cell (0: left out by `drop`)."""
        ...
