"""What became of the fields of forms, targets and sources that were added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from keyhole.core.marks import HIDDEN, Named, figure
from keyhole.core.options import Problem
from keyhole.core.tables import Table
from keyhole.environment.adding.placing import Placement
from keyhole.environment.adding.proposals import COLUMNS, FieldProposals, proposal_rows
from keyhole.environment.model import Environment
from keyhole.environment.wording import short
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl


_SHOWN = 60
_DECIDE = Problem(
    "To decide: import {form} NAME {propose} FILE.toml, edit the file, then import {form} NAME "
    "{decisions} FILE.toml."
)
_DEEDS = {
    "assimilate": "assimilated",
    "accommodate": "accommodated",
    "create": "created a construct",
    "identifier": "kept apart",
    "leave": "left without a coding",
}


@dataclass(frozen=True, slots=True, repr=False)
class Addition(Result):
    """What became of each field of a form, target or source, and the new environment."""

    environment: Annotated[Environment, HIDDEN]
    kind: str
    name: str
    placements: tuple[Placement, ...]
    waiting: tuple[FieldProposals, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    @figure()
    def counts(self) -> dict[str, int]:
        """How many fields each development took."""
        waits = {one.field for one in self.waiting}
        found: Counter[str] = Counter(p.action for p in self.placements if p.field not in waits)
        return {**found, "waiting": len(waits)}

    def to_frame(self) -> pl.DataFrame:
        """Return one row a field."""
        return _frame([(self.name, p) for p in self.placements])

    def tables(self) -> list[Table]:
        """Return what became of each field, and what waits for a person."""
        waits = {one.field for one in self.waiting}
        rows = [
            [
                short(p.field),
                "waiting for a person" if p.field in waits else _DEEDS[p.action],
                p.construct or p.identifier,
                p.coding,
                ", ".join(p.minted),
            ]
            for p in self.placements[:_SHOWN]
        ]
        more = len(self.placements) - _SHOWN
        notes = [f"and {more:,} more fields"] if more > 0 else []
        notes += [note for p in self.placements for note in p.notes][:5]
        columns = ["field", "became", "construct", "coding", "minted"]
        tables = [Table(f"{self.kind} {short(self.name)}", columns, rows, [*notes, *self.notes])]
        waiting = [row for one in self.waiting[:_SHOWN] for row in proposal_rows(one)]
        if not waiting:
            return tables
        return [*tables, Table("Waiting for a person", COLUMNS, waiting, [_DECIDE])]


@dataclass(frozen=True, slots=True, repr=False)
class Batch(Result):
    """What became of the forms of a batch; what was not sure enough waits for a person."""

    environment: Annotated[Environment, HIDDEN]
    threshold: float
    additions: Annotated[tuple[Addition, ...], Named("forms")]

    @property
    def waiting(self) -> list[tuple[str, FieldProposals]]:
        """The fields that wait for a person, with their form."""
        return [(one.name, field) for one in self.additions for field in one.waiting]

    @property
    @figure()
    def counts(self) -> dict[str, int]:
        """How many fields each development took."""
        total: Counter[str] = Counter()
        for one in self.additions:
            total.update(one.counts)
        return dict(total)

    def to_frame(self) -> pl.DataFrame:
        """Return one row a field."""
        return _frame([(one.name, p) for one in self.additions for p in one.placements])

    def tables(self) -> list[Table]:
        """Return a row a form, and the fields that wait."""
        actions = list(_DEEDS)
        rows = []
        for one in self.additions[:_SHOWN]:
            counts = one.counts
            cells = [f"{counts.get(action, 0):,}" for action in (*actions, "waiting")]
            rows.append([short(one.name), f"{len(one.placements):,}", *cells])
        note = f"proposals with a score of {self.threshold:g} or more were followed"
        columns = ["form", "fields", *actions, "waiting"]
        waiting = [
            [short(form), *row] for form, one in self.waiting[:_SHOWN] for row in proposal_rows(one)
        ]
        tables = [Table("Forms added", columns, rows, [note])]
        columns = ["form", *COLUMNS]
        if not waiting:
            return tables
        return [*tables, Table("Waiting for a person", columns, waiting, [_DECIDE])]


def _frame(rows: list[tuple[str, Placement]]) -> pl.DataFrame:
    import polars as pl

    columns = ["form", "field", "action", "construct", "coding", "identifier"]
    listed = [(name, p.field, p.action, p.construct, p.coding, p.identifier) for name, p in rows]
    return pl.DataFrame(listed, schema=dict.fromkeys(columns, pl.String), orient="row")
