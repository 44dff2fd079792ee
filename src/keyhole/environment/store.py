"""Stores of environments: a SQLite file, or a PostgreSQL database that people share.

A store is its history: who changed what when, and for each thing that was changed its plain
values before and after, as JSON. What it holds now is what the last change of each name left.
A password never gets into a message.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import sqlite3
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from keyhole import errors
from keyhole.core.extras import extra_problems, require_extra
from keyhole.core.names import shown
from keyhole.environment import soundness
from keyhole.environment.exchange import decode, encode_thing
from keyhole.environment.model import Environment
from keyhole.environment.wording import MOST, require_none
from keyhole.errors import ConflictError, FileError, KeyholeError, OptionError, RunError

require_extra("stores")
import sqlalchemy as sa  # noqa: E402

Action = Literal["added", "changed", "removed"]

VERSIONS = ("0001", "0002", "0003")
_REMEDY = "Nothing was written. Read the store again and repeat the changes."
_MAKE = "or make a store with `keyhole environment init`."

metadata = sa.MetaData()
version_table = sa.Table(
    "keyhole_store_version", metadata, sa.Column("version_num", sa.String(32), primary_key=True)
)
changes = sa.Table(
    "changes",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),  # in UTC; SQLite does not say so
    *(sa.Column(name, sa.Text, nullable=False) for name in ("who", "note")),
)
history = sa.Table(
    "history",
    metadata,
    sa.Column("change", sa.Integer, sa.ForeignKey("changes.number"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("action", "kind", "name")),
    *(sa.Column(name, sa.Text) for name in ("before", "after")),
)
_latest_index = sa.Index("latest_of_a_name", history.c.kind, history.c.name, history.c.change)


# --- places ---------------------------------------------------------------------------------------

# "KEYH", at byte 68 of every SQLite file of ours.
APPLICATION = 0x4B455948
_HALF_URL = re.compile(r"\s*(postgres(ql)?(\+\w+)?|sqlite)\s*:", re.IGNORECASE)
_CREDENTIALS = re.compile(r"[^/\\@:]:[^/\\@]+@")  # ann:secret@
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_WANTED = (
    "store must be the path of a SQLite file, or a URL such as "
    "postgresql://user:password@host/database or sqlite:///folder/environment.db"
)


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A SQLite file."""

    path: Path

    def __str__(self) -> str:
        return repr(str(self.path))

    @property
    def identity(self) -> str:
        """The same text for the same file."""
        return str(self.path.resolve())

    def engine(self, *, create: bool, writing: bool, timeout: float) -> sa.Engine:
        """Give an engine that opens the file, and makes it only if asked to."""
        file = self.path.absolute()
        journal = file.with_name(f"{file.name}-journal")

        def connect() -> sqlite3.Connection:
            # A killed writer leaves a journal, which SQLite undoes only where it may write.
            mode = "rwc" if create else "rw" if writing or journal.exists() else "ro"
            options: Any = {"uri": True, "isolation_level": None, "check_same_thread": False}
            url = f"file:{quote(str(file))}?mode={mode}"
            connection: sqlite3.Connection = sqlite3.connect(url, timeout=timeout, **options)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA query_only = {'OFF' if writing else 'ON'}")
            return connection

        def begin(connection: sa.Connection) -> None:
            """Begin as a writer, who is alone, or as a reader, who sees one moment."""
            alone = connection.get_execution_options().get("alone", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if alone else "BEGIN")

        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)
        sa.event.listen(engine, "begin", begin)
        return engine

    def check(self, *, create: bool) -> None:
        """Refuse what is not a store of ours; SQLite is not asked, so nothing is touched."""
        try:
            mode = self.path.stat().st_mode
            if not stat.S_ISREG(mode):
                what = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
                raise FileError(f"{self} must be a file. Got {what} instead: name a file.")
            with self.path.open("rb") as file:
                header = file.read(100)
        except (FileNotFoundError, NotADirectoryError):
            if create and self.path.parent.is_dir():
                return
            problem = f"does not exist. Check its name, {_MAKE}"
            if create:
                parent = repr(str(self.path.parent))
                problem = f"cannot be made: the folder {parent} does not exist. Make it first."
            raise FileError(f"{self} {problem}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "the system refuses"
            raise FileError(f"{self} cannot be read: {reason}. Check the path.") from None
        database = header.startswith(b"SQLite format 3\0")
        ours = database and header[68:72] == APPLICATION.to_bytes(4, "big")
        if ours or (create and not header):
            return
        held = "It holds something else" if header else "It holds nothing"
        held = "It is another program's SQLite database" if database else held
        raise FileError(
            f"{self} must be a store of keyhole. {held} and was left as it is. Give another path."
        )


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """A PostgreSQL database."""

    url: sa.URL

    def __str__(self) -> str:
        return repr(self.identity)

    @property
    def identity(self) -> str:
        """The server, the database and its options (which may choose a schema), and no secret."""
        asked = self.url.query
        host = self.url.host or asked.get("host", "")
        port = f":{self.url.port}" if self.url.port else ""
        options = f"?options={asked['options']}" if "options" in asked else ""
        return f"postgresql://{host}{port}/{self.url.database or ''}{options}"

    def engine(self, *, create: bool, writing: bool, timeout: float) -> sa.Engine:  # noqa: ARG002
        """Give an engine that waits for a lock as long as is told; `create` is for files."""
        name, seconds = self.url.set(drivername="postgresql+psycopg"), max(2, round(timeout))
        said = "connect_timeout" in self.url.query
        arguments: dict[str, Any] = {} if said else {"connect_timeout": seconds}
        try:
            engine = sa.create_engine(name, poolclass=sa.NullPool, connect_args=arguments)
        except ModuleNotFoundError:
            raise OptionError(extra_problems("postgres")) from None

        def settle(connection: Any, _: Any) -> None:
            connection.execute(f"SET lock_timeout = {max(1, round(timeout * 1000))}")
            if not writing:
                connection.execute("SET default_transaction_read_only = on")
            connection.commit()

        sa.event.listen(engine, "connect", settle)
        return engine


Place = FilePlace | ServerPlace


def place_of_store(place: str | os.PathLike[str]) -> Place:
    """Tell where a store is, from a path or a URL."""
    text = os.fspath(place)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise OptionError(f"{_WANTED}. Got nothing of the kind instead.")
    scheme, mark, rest = text.partition("://")
    if not mark and not (_HALF_URL.match(text) or _CREDENTIALS.search(text)):
        return FilePlace(Path(text))
    with suppress(sa.exc.ArgumentError, ValueError):  # whose message may show the password
        url = sa.make_url(f"{scheme.strip().lower()}://{rest}")
        if url.get_backend_name() == "sqlite" and not (url.host or url.query):
            if url.database and url.database != ":memory:":
                return FilePlace(Path(url.database))
        elif url.drivername in _SERVERS and "@" not in (url.host or ""):
            return ServerPlace(url)
    raise OptionError(
        f"{_WANTED}. Got another URL instead: in a password, write @, /, : and % as %40, %2F, %3A "
        f"and %25."
    )


_SAID: Any = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_DAMAGED: str = next(one["said"] for one in _SAID["meanings"] if "malformed" in one["words"])


@contextmanager
def failures_told(place: Place, timeout: float) -> Iterator[None]:
    """Say in our words what the database says: it may quote values, and a URL its password."""
    try:
        yield
    except Exception as error:
        ours = _meaning(place, timeout, error)
        if ours is None:
            raise
        raise ours from None


def _meaning(place: Place, timeout: float, error: Exception) -> KeyholeError | None:
    if isinstance(error, UnicodeDecodeError):  # what it says, or holds, is no text
        return FileError(_DAMAGED.format(place=place))
    cause: BaseException = getattr(error, "orig", None) or error
    kinds = [kind.__name__ for kind in type(cause).__mro__]
    # An error of psycopg itself comes while a connection is set up.
    told = isinstance(error, sa.exc.DBAPIError | sa.exc.ArgumentError) or type(
        error
    ).__module__.startswith("psycopg")
    if not told:
        failed = f"{place}: the database failed ({kinds[0]})."
        return RunError(failed) if isinstance(error, sa.exc.SQLAlchemyError) else None
    text = f"{cause} {getattr(cause, 'sqlstate', None) or ''}"
    for one in _SAID["meanings"]:
        if any(word in text or word in kinds for word in one["words"]):
            ours: type[KeyholeError] = getattr(errors, one["kind"])
            return ours(one["said"].format(place=place, timeout=timeout))
    if isinstance(place, ServerPlace) and "OperationalError" in kinds:
        why = next(why for words, why in _SAID["unreached"].items() if words in text)
        return RunError(f"{place} cannot be reached: {why}.")
    return RunError(f"{place}: the database failed ({kinds[0]}). Nothing was written.")


# --- stores ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An environment as read from a store, with what is needed to write it back.

    ``versions`` has the number of the last change of each thing, ``number`` that of all.
    """

    environment: Environment
    versions: Mapping[soundness.Key, int]
    number: int
    place: str


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that somebody added, changed or removed; things written together share ``number``.

    ``before`` and ``after`` are its plain values as JSON has them; ``when`` is in UTC.
    """

    number: int
    when: datetime.datetime
    who: str
    note: str
    action: Action
    kind: str
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


Differences = Mapping[soundness.Key, tuple[Any, Any]]


def differences(before: Environment, after: Environment) -> Differences:
    """Tell the things that differ, before and after; ``None`` where one is not there."""
    old, new = soundness.entities(before), soundness.entities(after)
    pairs = {key: (old.get(key), new.get(key)) for key in old | new}
    return {key: (a, b) for key, (a, b) in pairs.items() if a is not b and a != b}


class Store:
    """A data environment that is kept, with its history; `open_store` gives one.

    `place` tells where, without a password; `created` whether it was made when it was opened.
    """

    __slots__ = ("_engine", "_place", "_timeout", "_writing", "created", "place")

    def __init__(self, place: Place, engine: sa.Engine, *, writing: bool, timeout: float) -> None:
        self._place, self._engine = place, engine
        self._writing, self._timeout = writing, timeout
        self.place, self.created = place.identity, False

    def __repr__(self) -> str:
        return f"Store({self._place})"

    def read(self) -> Snapshot:
        """Read the whole environment as it is at one moment."""
        with self.reading() as connection:
            stored_version(connection, self._place)
            return self._snapshot(connection)

    def write(
        self, snapshot: Snapshot, environment: Environment, *, who: str, note: str = ""
    ) -> Snapshot:
        """Write what differs between a snapshot of this store and an environment made from it.

        Everything is written, or nothing. What others changed since stays, and is in the snapshot
        that is returned; if they changed one of the same things otherwise, a `ConflictError` says
        who and when.
        """
        self._check(snapshot, who, note)
        require_none(soundness.unfit_names(environment))
        wanted = differences(snapshot.environment, environment)
        if not wanted:
            return snapshot
        rows = _rows(wanted)
        require_none(soundness.use_problems(environment))
        with self.alone() as connection:
            stored_version(connection, self._place)
            here = snapshot
            if _last_number(connection) != snapshot.number:
                here = self._snapshot(connection)
                wanted = _still_wanted(connection, snapshot, here, wanted)
            things, versions = soundness.entities(here.environment), dict(here.versions)
            number = here.number + bool(wanted)
            for key, (_, after) in wanted.items():
                things[key], versions[key] = after, number
                if after is None:
                    del things[key], versions[key]
            merged = Snapshot(soundness.assembled(things), versions, number, here.place)
            if here is not snapshot:  # what fits what was read must fit what others made of it
                problems = list(islice(soundness.use_problems(merged.environment), MOST))
                if problems:
                    first = "Others changed the store after it was read here, and now:"
                    raise ConflictError([first, *problems, _REMEDY])
            if wanted:
                said = {"at": datetime.datetime.now(datetime.UTC), "who": who, "note": note}
                connection.execute(sa.insert(changes), {"number": merged.number, **said})
                ends = ({"change": merged.number, "position": i} for i in range(len(wanted)))
                more = [rows[key] | end for key, end in zip(wanted, ends, strict=True)]
                connection.execute(sa.insert(history), more)
            return merged

    def history(self, kind: str | None = None, name: str | None = None) -> list[Change]:
        """Tell who changed what when, the oldest first; of one kind, of one name."""
        if kind is not None and kind not in soundness.KIND_OF:
            raise OptionError(
                f"kind must be one of {', '.join(soundness.KIND_OF)}. Got {kind!r} instead."
            )
        if name is not None and not _is_clean(name):
            return []
        with self.reading() as connection:
            stored_version(connection, self._place)
            try:
                return _read_history(connection, kind, name)
            except (TypeError, ValueError, RecursionError):
                raise FileError(_DAMAGED.format(place=self._place)) from None

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """Give a connection that sees one moment."""
        moment = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        return self._connected(**moment if self._engine.dialect.name == "postgresql" else {})

    @contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        """Give a connection that writes everything, or nothing, and that no other writes beside."""
        with self._connected(alone=True) as connection:
            if connection.dialect.name == "postgresql":  # SQLite is locked from the beginning
                name = "hashtext(coalesce(current_schema(), ''))"
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({APPLICATION}, {name})")
            yield connection

    @contextmanager
    def _connected(self, **options: Any) -> Iterator[sa.Connection]:
        with failures_told(self._place, self._timeout), self._engine.connect() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                yield connection

    def _snapshot(self, connection: sa.Connection) -> Snapshot:
        listed, problems = history.c, list[str]()
        last = sa.select(listed.kind, listed.name, sa.func.max(listed.change).label("change"))
        latest = last.group_by(listed.kind, listed.name).subquery()
        same = sa.and_(*(listed[name] == latest.c[name] for name in ("kind", "name", "change")))
        query = sa.select(listed.kind, listed.name, listed.change, listed.after)
        rows = connection.execute(query.join(latest, same).where(listed.after.is_not(None))).all()
        try:
            things = {
                (kind, name): decode(soundness.KIND_OF[kind].type, json.loads(after), "", problems)
                for kind, name, _, after in rows
            }
        except (KeyError, ValueError, RecursionError):
            problems.append("no document of ours")
        if problems:
            raise FileError(_DAMAGED.format(place=self._place))
        versions = {(kind, name): number for kind, name, number, _ in rows}
        return Snapshot(soundness.assembled(things), versions, _last_number(connection), self.place)

    def _check(self, snapshot: Snapshot, who: str, note: str) -> None:
        problems = []
        if not self._writing:
            problems.append(f"{self._place} was opened for reading only. Open it for writing.")
        if snapshot.place != self.place:
            problems.append(
                f"snapshot must be of the store {self._place}. Got one of another store: read "
                f"this one, and write the environment against that."
            )
        for words, text, least in (("who", who, 1), ("note", note, 0)):
            if not isinstance(text, str) or len(text.strip()) < least or not _is_clean(text):
                problems.append(f"{words} must be text without NUL{', and not empty' * least}.")
        require_none(problems)

    def _bring_up(self, connection: sa.Connection, *, create: bool) -> None:
        """Make a store, or bring an older one up, in a transaction that no other is in."""
        version = stored_version(connection, self._place, create)
        if version is None:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
            metadata.create_all(connection)
            connection.execute(sa.insert(version_table), {"version_num": VERSIONS[-1]})
            self.created = True
        elif version != VERSIONS[-1]:
            kept = sa.table("entities", *map(sa.column, ("kind", "name", "version")))
            listed = connection.execute(sa.select(*kept.c))
            if {(kind, name): v for kind, name, v in listed} != self._snapshot(connection).versions:
                raise FileError(_DAMAGED.format(place=self._place))
            old, listed_ = sa.MetaData(), frozenset(_SAID["old"]["tables"])
            old.reflect(connection, only=lambda name, _: name in listed_)
            old.drop_all(connection, [one for one in old.sorted_tables if one.name in listed_])
            connection.exec_driver_sql("DROP INDEX IF EXISTS history_of_a_name")
            _latest_index.create(connection)
            connection.execute(sa.update(version_table).values(version_num=VERSIONS[-1]))


def open_store(
    place: str | os.PathLike[str],
    *,
    create: bool = False,
    writing: bool = True,
    timeout: float = 10.0,
) -> Store:
    """Open the store of an environment.

    The place is the path of a SQLite file, or a URL: ``sqlite:///folder/environment.db``,
    ``postgresql://user:password@host/database``. A password may also be in ``PGPASSWORD`` or a
    password file. With `create` a store is made where nothing is; `timeout` are the seconds to wait
    for a lock.

    A store of an older version is brought up, or read as it is (`writing` false); one of a newer
    version, and anything that is not a store, is refused and left as it is.
    """
    if not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise OptionError(f"timeout must be a number of seconds above 0. Got {timeout!r} instead.")
    if create and not writing:
        raise OptionError("create must be left out where writing is False: nothing is made then.")
    found = place_of_store(place)
    if isinstance(found, FilePlace):
        found.check(create=create)
    with failures_told(found, timeout):
        engine = found.engine(create=create, writing=writing, timeout=timeout)
    store = Store(found, engine, writing=writing, timeout=timeout)
    with store.reading() as connection:
        current = stored_version(connection, found, create) == VERSIONS[-1]
    if writing and not current:
        with store.alone() as connection:
            store._bring_up(connection, create=create)
    # From now on a file that goes away is not made anew.
    store._engine = found.engine(create=False, writing=writing, timeout=timeout)
    return store


def stored_version(connection: sa.Connection, place: Place, create: bool = False) -> str | None:
    """Give the version of the store, None where one can be made, or refuse what is there."""
    there = sa.inspect(connection)
    if there.has_table(version_table.name):
        version: str | None = connection.execute(sa.select(version_table)).scalar()
        if version is None:
            raise FileError(_DAMAGED.format(place=place))
        if version not in VERSIONS:
            raise FileError(
                f"{place} is a store of version {version!r}, which a newer keyhole made; this one "
                f"knows versions up to {VERSIONS[-1]}. It was left as it is. Install the newer "
                f"keyhole."
            )
        return version
    if there.get_table_names():
        raise FileError(
            f"{place} must be a store of keyhole, or empty. It holds tables of something else and "
            f"was left as it is. Give another database or schema."
        )
    if not create:
        raise FileError(f"{place} is empty. Check its name, {_MAKE}")
    return None


def _is_clean(text: str) -> bool:
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def _rows(wanted: Differences) -> dict[soundness.Key, dict[str, Any]]:
    """Give what differs as rows of the history, or say what cannot be kept."""
    problems, found = list[str](), {}

    def text(plain: Any) -> str:
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))

    for (kind, name), (before, after) in wanted.items():
        action = "added" if before is None else "removed" if after is None else "changed"
        old = before and text(encode_thing(before, []))
        new = after and text(soundness.plain_form(soundness.KIND_OF[kind], after, problems))
        row = {"action": action, "kind": kind, "name": name, "before": old, "after": new}
        found[kind, name] = row
    require_none(problems)
    return found


def _last_number(connection: sa.Connection) -> int:
    """Give the number of the last change; 0 before the first."""
    return connection.execute(sa.select(sa.func.max(changes.c.number))).scalar() or 0


def _still_wanted(
    connection: sa.Connection, old: Snapshot, here: Snapshot, wanted: Differences
) -> Differences:
    """Leave out what others did too; a thing that others changed otherwise is a conflict."""
    now = soundness.entities(here.environment)
    open_ = {key: both for key, both in wanted.items() if now.get(key) != both[1]}
    keys = [key for key in open_ if old.versions.get(key) != here.versions.get(key)]
    if not keys:
        return open_
    last = [_read_history(connection, kind, name)[-1] for kind, name in keys[:MOST]]
    lines = [
        f"{change.kind} {shown(change.name)} was {change.action} by {shown(change.who)} on "
        f"{change.when:%Y-%m-%d at %H:%M:%S} UTC, after it was read here."
        for change in last
    ]
    if len(keys) > MOST:
        lines.append(f"And {len(keys) - MOST:,} more things were changed by others.")
    raise ConflictError([*lines, _REMEDY])


def _read_history(connection: sa.Connection, kind: str | None, name: str | None) -> list[Change]:
    held = (history.c[column] for column in ("action", "kind", "name", "before", "after"))
    query = sa.select(*changes.c, *held).join_from(history, changes)
    for column, wanted in ((history.c.kind, kind), (history.c.name, name)):
        query = query if wanted is None else query.where(column == wanted)
    found = []
    for row in connection.execute(query.order_by(history.c.change, history.c.position)):
        number, when, *told, before, after = row
        known = when if when.tzinfo else when.replace(tzinfo=datetime.UTC)
        plain = (None if text is None else json.loads(text) for text in (before, after))
        found.append(Change(number, known.astimezone(datetime.UTC), *told, *plain))
    return found
