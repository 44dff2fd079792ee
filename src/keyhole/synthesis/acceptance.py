"""Which donors a record may take from: none that breaks a rule it kept, none of equal value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from keyhole.data import Microdata

__all__ = ["Acceptance", "RuleSet"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class RuleSet(Protocol):
    """What this module needs to know of rules."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the rules name."""
        ...

    def broken(self, frame: pl.DataFrame) -> Flags:
        """Tell for each record which rules it breaks."""
        ...


class Acceptance:
    """Tells whether records may receive the values of donors.

    Parameters
    ----------
    data
        The file.
    targets
        The variables that are replaced, in the order of the columns of `given`.
    rules
        Rules that a record must go on keeping if it kept them.
    must_change
        Records that may not receive an equal value.
    """

    def __init__(
        self,
        data: Microdata,
        targets: Sequence[str],
        rules: RuleSet | None,
        must_change: Flags | None,
    ) -> None:
        self._data, self._targets, self._rules = data, tuple(targets), rules
        self._must_change = must_change
        self._columns: dict[str, pl.Series] = {}
        self._exempt: Flags | None = None
        if rules is not None:
            self._columns = {name: data.column(name) for name in sorted(rules.columns)}
            self._exempt = rules.broken(pl.DataFrame(list(self._columns.values())))

    @property
    def broken_before(self) -> Flags | None:
        """Tell for each record which rules it broke already."""
        return self._exempt

    def concerns(self, target: str) -> bool:
        """Tell whether anything can forbid a value of the target."""
        return self._must_change is not None or target in self._columns

    def allows(self, rows: Ints, given: Ints, target: int, donors: Ints) -> Flags:
        """Tell for each record whether it may receive the target's value of a donor.

        `given` has for each record the donor of each target (itself where nothing is replaced).
        """
        fine = np.ones(len(rows), dtype=np.bool_)
        name = self._targets[target]
        if self._must_change is not None:
            values = self._data.codes(name).values
            fine &= ~self._must_change[rows] | (values[donors] != values[rows])
        if name in self._columns:
            changed = given.copy()
            changed[:, target] = donors
            fine &= self.keeps_rules(rows, changed)
        return fine

    def keeps_rules(self, rows: Ints, given: Ints) -> Flags:
        """Tell for each record whether it keeps the rules it kept, with what it was given."""
        if self._rules is None or self._exempt is None:
            return np.ones(len(rows), dtype=np.bool_)
        at = {name: t for t, name in enumerate(self._targets)}
        frame = pl.DataFrame(
            [
                column.gather(given[:, at[name]] if name in at else rows)
                for name, column in self._columns.items()
            ]
        )
        broken = self._rules.broken(frame) & ~self._exempt[rows]
        return ~np.asarray(broken.any(axis=1))
