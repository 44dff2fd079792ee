"""Places of stores: a SQLite file, or a PostgreSQL database by URL, and what goes wrong there.

A password never gets into a message.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from keyhole import errors
from keyhole.core.extras import extra_problems, require_extra
from keyhole.errors import FileError, KeyholeError, OptionError, RunError

require_extra("stores")
import sqlalchemy as sa  # noqa: E402

# "KEYH", at byte 68 of every SQLite file of ours.
APPLICATION = 0x4B455948
_HALF_URL = re.compile(r"\s*(postgres(ql)?(\+\w+)?|sqlite)\s*:", re.IGNORECASE)
_CREDENTIALS = re.compile(r"[^/\\@:]:[^/\\@]+@")  # ann:secret@
_WANTED = (
    "store must be the path of a SQLite file, or a URL such as "
    "postgresql://user:password@host/database"
)


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A SQLite file."""

    path: Path

    def __str__(self) -> str:
        return repr(str(self.path))

    @property
    def identity(self) -> str:
        """The same text for the same file, however it was given."""
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
                folder = stat.S_ISDIR(mode)
                what = "a folder" if folder else "a pipe, a socket or a device"
                where = " in it" * folder
                raise FileError(f"{self} must be a file. Got {what} instead: name a file{where}.")
            with self.path.open("rb") as file:
                header = file.read(100)
        except (FileNotFoundError, NotADirectoryError):
            problem = ""
            if not create:
                make = "make a store with `keyhole environment init`"
                problem = f"does not exist. Check its name, or {make}."
            elif not self.path.parent.is_dir():
                folder_name = repr(str(self.path.parent))
                problem = f"cannot be made: the folder {folder_name} does not exist. Make it first."
            if problem:
                raise FileError(f"{self} {problem}") from None
            return
        except (OSError, ValueError) as error:
            number = error.errno if isinstance(error, OSError) else None
            reason = os.strerror(number) if number else "the system refuses"
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

    def engine(self, *, create: bool, writing: bool, timeout: float) -> sa.Engine:
        """Give an engine that waits for a lock as long as is told."""
        del create
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

    def check(self, *, create: bool) -> None:
        """Nothing can be told of a database before it is asked."""


Place = FilePlace | ServerPlace


def place_of_store(place: str | os.PathLike[str]) -> Place:
    """Tell where a store is, from a path or a URL."""
    text = os.fspath(place)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise OptionError(f"{_WANTED}. Got nothing of the kind instead.")
    scheme, mark, rest = text.partition("://")
    if not mark and not (_HALF_URL.match(text) or _CREDENTIALS.search(text)):
        return FilePlace(Path(text))
    problem, url = "Got an incomplete URL instead: begin it with postgresql://.", None
    if mark:
        problem = (
            "Got a URL that cannot be read: write @, /, : and % in a password as %40, %2F, %3A "
            "and %25."
        )
        with suppress(sa.exc.ArgumentError, ValueError):  # whose message may show the password
            url = sa.make_url(f"{scheme.strip().lower()}://{rest}")
    if url is not None and url.get_backend_name() == "sqlite":
        if url.host or url.query or not url.database or url.database == ":memory:":
            raise OptionError(
                "a SQLite URL must name a file and nothing else: sqlite:///folder/environment.db. "
                "Give the path instead."
            )
        return FilePlace(Path(url.database))
    if url is not None:
        problem = "Got a URL of another kind of database instead."
        if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
            if "@" not in (url.host or ""):
                return ServerPlace(url)
            problem = "Got a URL with more than one @: write the @ of a password as %40."
    raise OptionError(f"{_WANTED}. {problem}")


_SAID: Any = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
DAMAGED: str = next(one["said"] for one in _SAID["meanings"] if "malformed" in one["words"])
OLD_TABLES = frozenset(_SAID["old"]["tables"])


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
        return FileError(DAMAGED.format(place=place))
    cause: BaseException = getattr(error, "orig", None) or error
    kinds = [kind.__name__ for kind in type(cause).__mro__]
    # An error of psycopg itself comes while a connection is set up.
    told = isinstance(error, sa.exc.DBAPIError) or type(error).__module__.startswith("psycopg")
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
