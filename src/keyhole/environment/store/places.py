"""Where a store is: a file, or a database by URL. A password never gets into a message."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from keyhole.errors import FileError, OptionError

# "KEYH", at byte 68 of every SQLite file of ours.
APPLICATION = 0x4B455948
_HALF_URL = re.compile(r"\s*(postgres(ql)?(\+\w+)?|sqlite)\s*:", re.IGNORECASE)
_CREDENTIALS = re.compile(r"[^/\\@:]:[^/\\@]+@")  # ann:secret@
_HEADER = b"SQLite format 3\0"
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
            connection = sqlite3.connect(
                f"file:{quote(str(file))}?mode={mode}",
                uri=True,
                timeout=timeout,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA query_only = {'OFF' if writing else 'ON'}")
            return connection

        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)
        sa.event.listen(engine, "begin", _begin)
        return engine

    def check(self, *, create: bool) -> None:
        """Refuse what is not a store of ours; SQLite is not asked, so nothing is touched."""
        try:
            mode = self.path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            self._check_absent(create=create)
            return
        except (OSError, ValueError) as error:
            raise FileError(f"{self} cannot be read: {_reason(error)}. Check the path.") from None
        if stat.S_ISDIR(mode):
            raise FileError(f"{self} must be a file. Got a folder instead: name a file in it.")
        if not stat.S_ISREG(mode):
            raise FileError(
                f"{self} must be a file. Got a pipe, a socket or a device instead: name a file."
            )
        self._check_header(create=create)

    def _check_absent(self, *, create: bool) -> None:
        if not create:
            raise FileError(
                f"{self} does not exist. Check its name, or make a store with `keyhole environment "
                f"init`."
            )
        if not self.path.parent.is_dir():
            raise FileError(
                f"{self} cannot be made: the folder {str(self.path.parent)!r} does not exist. "
                f"Make it first."
            )

    def _check_header(self, *, create: bool) -> None:
        try:
            with self.path.open("rb") as file:
                header = file.read(100)
        except OSError as error:
            raise FileError(f"{self} cannot be read: {_reason(error)}.") from None
        if not header and create:
            return
        if not header.startswith(_HEADER):
            held = "nothing" if not header else "something else"
            raise FileError(
                f"{self} must be a store of keyhole. It holds {held} and was left as it is. Give "
                f"another path."
            )
        if header[68:72] != APPLICATION.to_bytes(4, "big"):
            raise FileError(
                f"{self} must be a store of keyhole. It is another program's SQLite database and "
                f"was left as it is. Give another path."
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
        arguments: dict[str, Any] = {"connect_timeout": seconds} if self._says_none() else {}
        try:
            engine = sa.create_engine(name, poolclass=sa.NullPool, connect_args=arguments)
        except ModuleNotFoundError:
            raise OptionError(
                "a store in PostgreSQL needs psycopg, which is not installed. Install "
                "'keyhole[postgres]'."
            ) from None
        wait = f"SET lock_timeout = {max(1, round(timeout * 1000))}"

        def settle(connection: Any, _: Any) -> None:
            connection.execute(wait)
            if not writing:
                connection.execute("SET default_transaction_read_only = on")
            connection.commit()

        sa.event.listen(engine, "connect", settle)
        return engine

    def _says_none(self) -> bool:
        return "connect_timeout" not in self.url.query

    def check(self, *, create: bool) -> None:
        """Nothing can be told of a database before it is asked."""


Place = FilePlace | ServerPlace


def place_of_store(place: str | os.PathLike[str]) -> Place:
    """Tell where a store is, from a path or a URL.

    Examples
    --------
    >>> print(place_of_store("PostgreSQL://ann:secret@registry/environment"))
    'postgresql://registry/environment'
    """
    text = os.fspath(place)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise OptionError(f"{_WANTED}. Got nothing of the kind instead.")
    scheme, mark, rest = text.partition("://")
    if not mark:
        _refuse_half_urls(text)
        return FilePlace(Path(text))
    try:
        url = sa.make_url(f"{scheme.strip().lower()}://{rest}")
    except (sa.exc.ArgumentError, ValueError):  # whose message may show the password
        raise OptionError(
            f"{_WANTED}. Got a URL that cannot be read: write @, /, : and % in a password as "
            f"%40, %2F, %3A and %25."
        ) from None
    return _file(url) if url.get_backend_name() == "sqlite" else _server(url)


def _refuse_half_urls(text: str) -> None:
    """Refuse what is meant as a URL, before it is taken for a path and shown with its password."""
    if _HALF_URL.match(text) or _CREDENTIALS.search(text):
        raise OptionError(
            f"{_WANTED}. Got a URL that is not whole instead: begin it with postgresql://."
        )


def _file(url: sa.URL) -> FilePlace:
    if url.host or url.query or not url.database or url.database == ":memory:":
        raise OptionError(
            "a SQLite URL must name a file and nothing else: sqlite:///folder/environment.db. "
            "Give the path instead."
        )
    return FilePlace(Path(url.database))


def _server(url: sa.URL) -> ServerPlace:
    known = ("postgresql", "postgres", "postgresql+psycopg")
    if url.drivername not in known:
        raise OptionError(f"{_WANTED}. Got a URL of another kind of database instead.")
    if "@" in (url.host or ""):
        raise OptionError(
            f"{_WANTED}. Got a URL with more than one @: write the @ of a password as %40."
        )
    return ServerPlace(url)


def _begin(connection: sa.Connection) -> None:
    """Begin as a writer, who is alone, or as a reader, who sees one moment."""
    writing = connection.get_execution_options().get("alone", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _reason(error: OSError | ValueError) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else "the system refuses"
