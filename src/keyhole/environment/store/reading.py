"""Read a store: everything at one moment, and its history."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from keyhole.environment.kinds import KINDS, Key, ordered
from keyhole.environment.model import Environment
from keyhole.environment.store.layouts import LAYOUTS, TableLayout
from keyhole.environment.store.snapshots import Change, Snapshot
from keyhole.environment.store.tables import changes, entities, history

Rows = dict[int, list[Sequence[Any]]]


def read_snapshot(connection: sa.Connection, place: str) -> Snapshot:
    """Read everything; the connection's transaction makes it one moment."""
    parts: dict[sa.Table, Rows] = {}
    things = {
        kind.attribute: tuple(_things(connection, LAYOUTS[kind.name], parts)) for kind in KINDS
    }
    listed = connection.execute(sa.select(entities.c.kind, entities.c.name, entities.c.version))
    versions = {(kind, name): version for kind, name, version in listed}
    return Snapshot(ordered(Environment(**things)), versions, last_number(connection), place)


def _things(
    connection: sa.Connection, layout: TableLayout, known: dict[sa.Table, Rows]
) -> Iterable[Any]:
    """Build the things of a kind. Fields, which several kinds have, are read once."""
    for part in layout.parts:
        if part.table not in known:
            known[part.table] = _rows(connection, part.table)
    for entity, *own in connection.execute(sa.select(layout.table)):
        yield layout.build(own, *(known[part.table].get(entity, ()) for part in layout.parts))


def _rows(connection: sa.Connection, table: sa.Table) -> Rows:
    columns = [c for c in table.columns if c.name not in ("entity", "position")]
    query = sa.select(table.c.entity, *columns).order_by(table.c.entity, table.c.position)
    found: Rows = defaultdict(list)
    for entity, *values in connection.execute(query):
        found[entity].append(values)
    return found


def last_number(connection: sa.Connection) -> int:
    """Give the number of the last change; 0 before the first."""
    return connection.execute(sa.select(sa.func.max(changes.c.number))).scalar() or 0


def read_history(connection: sa.Connection, kind: str | None, name: str | None) -> list[Change]:
    """Read who changed what when, the oldest first."""
    query = _history().order_by(history.c.change, history.c.position)
    if kind is not None:
        query = query.where(history.c.kind == kind)
    if name is not None:
        query = query.where(history.c.name == name)
    return [_change(row) for row in connection.execute(query)]


def read_last_changes(connection: sa.Connection, keys: Iterable[Key]) -> list[Change]:
    """Read the last change of each of some things."""
    found = []
    for kind, name in keys:
        query = _history().where(history.c.kind == kind, history.c.name == name)
        row = connection.execute(query.order_by(history.c.change.desc()).limit(1)).one()
        found.append(_change(row))
    return found


def _history() -> sa.Select[Any]:
    said = changes.c.number, changes.c.at, changes.c.who, changes.c.note
    held = (history.c[name] for name in ("action", "kind", "name", "before", "after"))
    return sa.select(*said, *held).join_from(history, changes)


def _change(row: Sequence[Any]) -> Change:
    number, when, who, note, action, kind, name, before, after = row
    return Change(number, when, who, note, action, kind, name, _parsed(before), _parsed(after))


def _parsed(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)
