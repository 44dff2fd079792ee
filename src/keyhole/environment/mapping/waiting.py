"""The queue of pending decisions across all forms: ``keyhole environment waiting``.

Same-text questions are one line: a decision on one of them holds for all. With a target, what
would change its key comes first, by the bits that it may add.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from keyhole.core.options import Option, bind, documented
from keyhole.core.tables import Table
from keyhole.environment.adding.adding import Owner, captured_field
from keyhole.environment.adding.catalogue import (
    Catalogue,
    asked_text,
    options_of,
    stored_questions,
    text_key,
)
from keyhole.environment.adding.proposals import Proposal, rank
from keyhole.environment.codings.graph import CodingGraph
from keyhole.environment.mapping.mapping import map_class
from keyhole.environment.mapping.undecided import FOLLOWED, waits
from keyhole.environment.options import StorePlace
from keyhole.environment.wording import short
from keyhole.results import Result

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 60
_MOST = 3


@dataclass(frozen=True, slots=True)
class Pending:
    """A field that waits for a decision, and its proposals, the best first.

    `forms` counts the forms that ask the same text; `changes_key` are the columns of the target
    of which it may tell more, `bits` how much at most.
    """

    kind: str
    form: str
    field: str
    label: str
    forms: int
    proposals: tuple[Proposal, ...]
    changes_key: tuple[str, ...] = ()
    bits: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Waiting(Result):
    """All pending decisions of an environment, those that change the target's key first."""

    target: str
    fields: int
    waiting: tuple[Pending, ...]

    def to_frame(self) -> pl.DataFrame:
        """Return one row a decision."""
        import polars as pl

        rows = [
            (one.kind, one.form, one.field, one.forms, list(one.changes_key), one.bits)
            for one in self.waiting
        ]
        names = {"kind": str, "form": str, "field": str, "forms": int}
        schema = {**names, "changes_key": list[str], "bits": float}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def tables(self) -> list[Table]:
        """Return the decisions, one line each."""
        rows = []
        for one in self.waiting[:_SHOWN]:
            best = one.proposals[0] if one.proposals else None
            told = "" if best is None else f"{best.action} {best.name or best.identifier}".strip()
            score = "" if best is None else f"{best.score:.2f}"
            changes = ", ".join(one.changes_key)
            rows.append([short(one.form), short(one.field), str(one.forms), told, score, changes])
        notes = [f"{len(self.waiting):,} decisions on {self.fields:,} fields are pending."]
        columns = ["form", "field", "forms", "best proposal", "score", "changes"]
        return [Table("Pending decisions", columns, rows, notes)]


@documented
def waiting(
    store: StorePlace,
    *,
    target: Annotated[
        str | None, Option("Put first what would change the key of this target.", metavar="TARGET")
    ] = None,
) -> Waiting:
    """List the fields of all forms that wait for a decision, one line for the same text."""
    bind(waiting, locals()).require()
    graph = CodingGraph.of(store)
    changes: dict[tuple[str, str], dict[str, None]] = {}
    gained: dict[str, float] = {}
    if target is not None:
        found = map_class(graph, target)
        surely = found.surely or found
        for variable in found.key:
            known = surely.variable(variable.column)
            gained[variable.column] = variable.entropy - (known.entropy if known else 0.0)
        for one in found.undecided:
            changes.setdefault((one.form, one.field), {})[one.column] = None
    lines: dict[object, Pending] = {}
    count = 0
    for kind, owner, field, key, proposals in _pending(graph):
        count += 1
        columns = tuple(changes.get((owner.name, field), ()))
        label = next(f.label for f in owner.fields if f.name == field)
        known_line = lines.get(key)
        forms = known_line.forms + 1 if known_line else 1
        bits = sum(gained.get(column, 0.0) for column in columns)
        made = Pending(kind, owner.name, field, label, forms, proposals, columns, bits)
        if known_line is not None:
            every = tuple(dict.fromkeys((*known_line.changes_key, *columns)))
            first = known_line.form, known_line.field
            made = Pending(
                known_line.kind, *first, known_line.label, forms, known_line.proposals, every,
                sum(gained.get(column, 0.0) for column in every),
            )  # fmt: skip
        lines[key] = made
    ordered = sorted(
        lines.values(), key=lambda one: (-round(one.bits, 9), -one.forms, one.form, one.field)
    )
    return Waiting(target or "", count, tuple(ordered))


def _pending(
    graph: CodingGraph,
) -> Iterator[tuple[str, Owner, str, object, tuple[Proposal, ...]]]:
    """Yield the fields that wait, with what tells their text and their proposals."""
    environment = graph.environment
    catalogue = Catalogue(environment)
    owners: list[Owner] = [*environment.targets, *environment.forms, *environment.sources]
    for owner in owners:
        if not any(waits(field) for field in owner.fields):
            continue
        captured = [captured_field(field, catalogue.names) for field in owner.fields]
        options, asked = options_of(captured), stored_questions(owner.fields)
        for field, one, questions in zip(owner.fields, captured, asked, strict=True):
            if not waits(field):
                continue
            ranked = rank(catalogue, one, questions, options=options)
            if ranked[0].action == "leave" and ranked[0].score >= FOLLOWED:
                continue
            kind = type(owner).__name__.lower()
            key = text_key(*asked_text(one), questions)
            yield kind, owner, field.name, key, ranked[:_MOST]
