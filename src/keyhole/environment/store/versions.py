"""The version of a store, and the migrations that bring an older one up.

The scripts are Alembic's, in ``migrations/versions``; they run here, in the transaction of
whoever opens the store, so that a store is of one version or the other and never between.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from keyhole.environment.store.places import APPLICATION, Place
from keyhole.errors import FileError

TABLE = "keyhole_store_version"
FOLDER = Path(__file__).parent / "migrations"
VERSIONS = ("0001", "0002")

_version = sa.table(TABLE, sa.column("version_num"))


def stored_version(connection: sa.Connection) -> str | None:
    """Give the version of the store, or None where there is none."""
    if not sa.inspect(connection).has_table(TABLE):
        return None
    version: str | None = connection.execute(sa.select(_version)).scalar()
    return version


def is_current(connection: sa.Connection) -> bool:
    """Tell whether there is a store of this version."""
    return stored_version(connection) == VERSIONS[-1]


def require_current(connection: sa.Connection, place: Place) -> None:
    """Refuse a store that has been brought to another version since it was opened."""
    version = connection.execute(sa.select(_version)).scalar()
    if version != VERSIONS[-1]:
        raise _newer(place, version)


def bring_up(connection: sa.Connection, place: Place, *, create: bool) -> bool:
    """Make a store, or bring an older one up; tell whether it was made.

    The connection is in a transaction with the store's lock.
    """
    version = stored_version(connection)
    if version is None:
        _require_empty(connection, place, create)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
    elif version not in VERSIONS:
        raise _newer(place, version)
    if version != VERSIONS[-1]:
        _migrate(connection, version or "base")
    return version is None


def require_readable(connection: sa.Connection, place: Place) -> None:
    """Refuse what cannot be read as it is, where nothing may be changed."""
    version = stored_version(connection)
    if version is None:
        _require_empty(connection, place, create=False)
    elif version not in VERSIONS:
        raise _newer(place, version)
    elif version != VERSIONS[-1]:
        raise FileError(
            f"{place} is a store of version {version}, and this keyhole reads {VERSIONS[-1]}. Open "
            f"it once for writing, which brings it up; `keyhole environment import` does, for one."
        )


def lock(connection: sa.Connection) -> None:
    """Let no other write until the transaction ends; SQLite does so from its beginning."""
    if connection.dialect.name == "postgresql":
        name = "hashtext(coalesce(current_schema(), ''))"
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({APPLICATION}, {name})")


def _require_empty(connection: sa.Connection, place: Place, create: bool) -> None:
    if sa.inspect(connection).get_table_names():
        raise FileError(
            f"{place} must be a store of keyhole, or empty. It holds tables of something else and "
            f"was left as it is. Give another database or schema."
        )
    if not create:
        raise FileError(
            f"{place} is empty. Check its name, or make a store with `keyhole environment init`."
        )


def _newer(place: Place, version: str | None) -> FileError:
    return FileError(
        f"{place} is a store of version {version!r}, which a newer keyhole made; this one knows "
        f"versions up to {VERSIONS[-1]}. It was left as it is. Install the newer keyhole."
    )


def _migrate(connection: sa.Connection, version: str) -> None:
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(FOLDER))
    context = MigrationContext.configure(connection, opts={"version_table": TABLE})
    steps = list(scripts.iterate_revisions(VERSIONS[-1], version))
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
            context.stamp(scripts, step.revision)
