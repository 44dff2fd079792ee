"""Which donors a record may take from.

None that breaks a rule the record kept, none that contradicts what it is tied to, and none of
equal value where that is forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import polars as pl

from keyhole.kernels.arrays import Flags, Ints
from keyhole.synthesis.design import Coded
from keyhole.synthesis.ties import Tie

__all__ = ["Acceptance", "RuleSet"]


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
    ties
        What a target and another column may say together.
    replace
        Which targets of which records are replaced: a value that is still to be replaced ties
        nothing.
    """

    def __init__(
        self,
        data: Coded,
        targets: Sequence[str],
        rules: RuleSet | None,
        must_change: Flags | None,
        ties: Sequence[Tie] = (),
        replace: Flags | None = None,
    ) -> None:
        rules = rules if rules is not None and rules.columns else None  # a file without rules
        self._data, self._targets, self._replace = data, tuple(targets), replace
        self.rules, self.must_change, self.ties = rules, must_change, tuple(ties)
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
        tied = any(target in (tie.target, tie.column) for tie in self.ties)
        return self.must_change is not None or target in self._columns or tied

    def allows(self, rows: Ints, given: Ints, target: int, donors: Ints) -> Flags:
        """Tell for each record whether it may receive the target's value of a donor.

        `given` has for each record the donor of each target (itself where nothing is replaced).
        """
        fine = np.ones(len(rows), dtype=np.bool_)
        name = self._targets[target]
        if self.must_change is not None:
            values = self._data.codes(name).values
            fine &= ~self.must_change[rows] | (values[donors] != values[rows])
        changed = given.copy()
        changed[:, target] = donors
        if name in self._columns:
            fine &= self._keeps_rules(rows, changed)
        for tie in self.ties:
            if name in (tie.target, tie.column):
                fine &= self._keeps_tie(tie, rows, changed, done=target)
        return fine

    def keeps(self, rows: Ints, given: Ints) -> Flags:
        """Tell for each record whether it keeps its rules and ties, with what it was given."""
        fine = self._keeps_rules(rows, given)
        for tie in self.ties:
            fine &= self._keeps_tie(tie, rows, given, done=len(self._targets))
        return fine

    def _keeps_tie(self, tie: Tie, rows: Ints, given: Ints, *, done: int) -> Flags:
        """Tell whether a tie holds, or is about a target after `done` that is still to come."""
        at = {name: t for t, name in enumerate(self._targets)}
        codes = self._data.codes(tie.target).values
        groups = tie.groups[given[:, at[tie.column]] if tie.column in at else rows]
        fine: Flags = tie.allowed[codes[given[:, at[tie.target]]], groups]
        for name in (tie.target, tie.column):
            if at.get(name, -1) > done and self._replace is not None:
                fine |= self._replace[rows, at[name]]
        return fine

    def _keeps_rules(self, rows: Ints, given: Ints) -> Flags:
        """Tell for each record whether it keeps the rules it kept, with what it was given."""
        if self.rules is None or self._exempt is None:
            return np.ones(len(rows), dtype=np.bool_)
        at = {name: t for t, name in enumerate(self._targets)}
        frame = pl.DataFrame(
            [
                column.gather(given[:, at[name]] if name in at else rows)
                for name, column in self._columns.items()
            ]
        )
        broken = self.rules.broken(frame) & ~self._exempt[rows]
        return ~np.asarray(broken.any(axis=1))
