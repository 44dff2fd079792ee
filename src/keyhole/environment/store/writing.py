"""Write differences into a store, unless somebody else changed the same things."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from keyhole.core.names import shown
from keyhole.environment.kinds import KINDS, Key, entities, ordered
from keyhole.environment.model import Environment
from keyhole.environment.soundness import use_problems
from keyhole.environment.store import tables
from keyhole.environment.store.layouts import LAYOUTS
from keyhole.environment.store.reading import last_number, read_last_changes, read_snapshot
from keyhole.environment.store.snapshots import Difference, Snapshot
from keyhole.environment.wording import MOST
from keyhole.errors import ConflictError

Forms = Mapping[Key, tuple[Any, Any]]
"""The plain form of each thing that differs, before and after."""

_MANY = 1000
_REMEDY = "Nothing was written. Read the store again and make the changes anew."


def write_differences(
    connection: sa.Connection,
    snapshot: Snapshot,
    wanted: Sequence[Difference],
    forms: Forms,
    said: tuple[str, str],
) -> Snapshot:
    """Write what differs from the snapshot, in a transaction that no other writer is in.

    Parameters
    ----------
    connection
        In a transaction, with the store's lock.
    snapshot
        What was read.
    wanted
        What is to differ from it.
    forms
        The plain forms of what differs, for the history.
    said
        Who writes, and the note.

    Returns
    -------
    Snapshot
        What the store holds now, others' changes included.
    """
    here = snapshot
    if last_number(connection) != snapshot.number:
        here = read_snapshot(connection, snapshot.place)
        wanted = _still_wanted(connection, snapshot, here, wanted)
    merged = _merged(here.environment, wanted)
    if here is not snapshot:
        _require_whole(merged)
    if not wanted:
        return here
    number = here.number + 1
    now = datetime.datetime.now(datetime.UTC)
    said_now = {"number": number, "at": now, "who": said[0], "note": said[1]}
    connection.execute(sa.insert(tables.changes), said_now)
    _write_entities(connection, wanted, number)
    connection.execute(sa.insert(tables.history), list(_history(wanted, forms, number)))
    return Snapshot(merged, _versions(here, wanted, number), number, here.place)


def _still_wanted(
    connection: sa.Connection, old: Snapshot, here: Snapshot, wanted: Sequence[Difference]
) -> list[Difference]:
    """Leave out what others did too; a thing that others changed otherwise is a conflict."""
    now = entities(here.environment)
    open_ = [one for one in wanted if now.get(one.key) != one.after]
    keys = [one.key for one in open_ if old.versions.get(one.key) != here.versions.get(one.key)]
    if keys:
        changes = read_last_changes(connection, keys[:MOST])
        lines = [
            f"{change.kind} {shown(change.name)} was {change.action} by {shown(change.who)} on "
            f"{change.when:%Y-%m-%d at %H:%M:%S} UTC, after it was read here."
            for change in changes
        ]
        if len(keys) > MOST:
            lines.append(f"And {len(keys) - MOST:,} more things were changed by others.")
        raise ConflictError([*lines, _REMEDY])
    return open_


def _merged(environment: Environment, wanted: Iterable[Difference]) -> Environment:
    things = entities(environment)
    for one in wanted:
        things.pop(one.key, None)
        if one.after is not None:
            things[one.key] = one.after
    sorts: dict[str, list[Any]] = {kind.name: [] for kind in KINDS}
    for (name, _), thing in things.items():
        sorts[name].append(thing)
    held = {kind.attribute: tuple(sorts[kind.name]) for kind in KINDS}
    return ordered(replace(environment, **held))


def _require_whole(merged: Environment) -> None:
    """Refuse changes that fit what was read, but not what others have made of it since."""
    problems = [problem for problem, _ in zip(use_problems(merged), range(MOST), strict=False)]
    if problems:
        raise ConflictError(
            ["Others changed the store after it was read here, and now:", *problems, _REMEDY]
        )


def _write_entities(connection: sa.Connection, wanted: Sequence[Difference], number: int) -> None:
    kept = _identities(connection)
    gone = [one for one in wanted if one.before is not None]
    for table, identities in _by_table(gone, kept).items():
        query = sa.delete(table).where(table.c.entity == sa.bindparam("gone"))
        connection.execute(query, [{"gone": identity} for identity in identities])
    _delete(connection, [kept[one.key] for one in wanted if one.after is None])
    _renew(connection, [kept[one.key] for one in gone if one.after is not None], number)
    new = [one for one in wanted if one.before is None]
    following = max(kept.values(), default=0) + 1
    added = {one.key: following + i for i, one in enumerate(new)}
    _insert(
        connection,
        tables.entities,
        [
            {"id": identity, "kind": kind, "name": name, "version": number}
            for (kind, name), identity in added.items()
        ],
    )
    for table, rows in _rows(wanted, kept | added).items():
        _insert(connection, table, rows)


def _identities(connection: sa.Connection) -> dict[Key, int]:
    listed = tables.entities.c
    rows = connection.execute(sa.select(listed.kind, listed.name, listed.id))
    return {(kind, name): identity for kind, name, identity in rows}


def _by_table(gone: Iterable[Difference], kept: Mapping[Key, int]) -> dict[sa.Table, list[int]]:
    """List the things whose rows are to go, by table."""
    found: dict[sa.Table, list[int]] = defaultdict(list)
    for one in gone:
        for table in LAYOUTS[one.key[0]].tables:
            found[table].append(kept[one.key])
    return found


def _delete(connection: sa.Connection, identities: Sequence[int]) -> None:
    if identities:
        query = sa.delete(tables.entities).where(tables.entities.c.id == sa.bindparam("gone"))
        connection.execute(query, [{"gone": identity} for identity in identities])


def _renew(connection: sa.Connection, identities: Sequence[int], number: int) -> None:
    if identities:
        query = sa.update(tables.entities).where(tables.entities.c.id == sa.bindparam("same"))
        query = query.values(version=number)
        connection.execute(query, [{"same": identity} for identity in identities])


def _rows(
    wanted: Iterable[Difference], identities: Mapping[Key, int]
) -> dict[sa.Table, list[dict[str, Any]]]:
    """Lay out everything that is there afterwards as rows."""
    found: dict[sa.Table, list[dict[str, Any]]] = defaultdict(list)
    columns = {table: table.columns.keys() for table in tables.metadata.sorted_tables}
    for one in (one for one in wanted if one.after is not None):
        layout, identity = LAYOUTS[one.key[0]], identities[one.key]
        own = (identity, *layout.row(one.after))
        found[layout.table].append(dict(zip(columns[layout.table], own, strict=True)))
        for part in layout.parts:
            names, rows = columns[part.table], found[part.table]
            for position, values in enumerate(part.rows(one.after)):
                rows.append(dict(zip(names, (identity, position, *values), strict=True)))
    return found


def _insert(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if connection.dialect.name == "postgresql" and len(rows) >= _MANY:
        _copy(connection, table, rows)
    elif rows:
        connection.execute(sa.insert(table), rows)


def _copy(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Give PostgreSQL many rows at once, which is quicker by far than a row at a time."""
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    cursor = connection.connection.cursor()
    with cursor, cursor.copy(f'COPY "{table.name}" ({columns}) FROM STDIN') as copy:  # type: ignore[attr-defined]
        for row in rows:
            copy.write_row(tuple(row.values()))


def _history(wanted: Iterable[Difference], forms: Forms, number: int) -> Iterator[dict[str, Any]]:
    for position, one in enumerate(wanted):
        before, after = forms[one.key]
        yield {
            "change": number,
            "position": position,
            "action": one.action,
            "kind": one.key[0],
            "name": one.key[1],
            "before": _text(before),
            "after": _text(after),
        }


def _text(plain: Any) -> str | None:
    if plain is None:
        return None
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _versions(here: Snapshot, wanted: Iterable[Difference], number: int) -> dict[Key, int]:
    versions = dict(here.versions)
    for one in wanted:
        versions.pop(one.key, None)
        if one.after is not None:
            versions[one.key] = number
    return versions
