"""State of the workbench between pages and after a restart, in one SQLite file.

Reviews that were opened, the versions of each review file, and the jobs. Nothing of a record is in
it but what a review file itself says, and nothing in it lets anybody in.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from keyhole.core.codec import Figures
from keyhole.core.files import write_whole
from keyhole.errors import FileError

FOLDER = ".keyhole"
# Counts up when the tables change, so that an older keyhole leaves newer ones alone.
_VERSION = 1
_LAYOUT = """
CREATE TABLE IF NOT EXISTS projects (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, opened REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS versions (
    project INTEGER NOT NULL REFERENCES projects (id), number INTEGER NOT NULL,
    text TEXT NOT NULL, label TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (project, number)
);
CREATE TABLE IF NOT EXISTS cursors (
    project INTEGER PRIMARY KEY REFERENCES projects (id), number INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY, project INTEGER NOT NULL REFERENCES projects (id),
    kind TEXT NOT NULL, asked TEXT NOT NULL, state TEXT NOT NULL, step TEXT NOT NULL,
    process INTEGER, started REAL NOT NULL, ended REAL, problem TEXT NOT NULL
);
DROP TABLE IF EXISTS sessions;
"""
# Fail where a table of that name is another one.
_TABLES = (
    "SELECT id, path, opened FROM projects",
    "SELECT project, number, text, label, at FROM versions",
    "SELECT project, number FROM cursors",
    "SELECT id, project, kind, asked, state, step, process, started, ended, problem FROM jobs",
)


def _lay_out(database: sqlite3.Connection, path: Path) -> None:
    """Make the tables that are not there; refuse those of a newer keyhole."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise FileError(
            f"{str(path)!r}, where the workbench remembers versions and jobs, is of a newer "
            f"keyhole. Use that one, or move {FOLDER!r} away; no review is lost."
        )
    for statement in (*_LAYOUT.split(";"), *_TABLES, f"PRAGMA user_version = {_VERSION}"):
        database.execute(statement)


Stored = TypeVar("Stored", bound=Figures)


def keep_figures(path: Path, content: Figures) -> None:
    """Keep something small in a file of the workbench's own."""
    with write_whole(path, force=True, private=True) as temporary:
        temporary.write_text(json.dumps(content.to_dict()), encoding="utf-8")


def kept_figures(path: Path, shape: type[Stored]) -> Stored | None:
    """Return what was kept; None if there is none, or one of another version."""
    try:
        return shape.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class WorkbenchState:
    """The workbench's memory of a start folder."""

    path: Path

    @classmethod
    def of(cls, folder: Path) -> WorkbenchState:
        """Open the memory of a start folder, or make it; only its owner can read it."""
        place = folder / FOLDER
        state = cls(place / "workbench.db")
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            if place.is_symlink() or not place.is_dir():
                raise NotADirectoryError
            if place.stat().st_mode & 0o077:
                place.chmod(0o700)
            if not state.path.exists() or state.path.is_symlink():  # a link exists, and is refused
                os.close(os.open(state.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with state.changing() as database:
                _lay_out(database, state.path)
            for old in place.glob("*-*.json"):  # of a server before, or of nobody known
                if not old.is_dir():
                    old.unlink()
        except (OSError, sqlite3.Error):
            raise FileError(
                f"{str(state.path)!r}, where the workbench remembers versions and jobs, cannot be "
                f"used: it is broken, or not yours. Move {FOLDER!r} away; no review is lost."
            ) from None
        return state

    @property
    def folder(self) -> Path:
        """The start folder."""
        return self.path.parent.parent

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection to read by."""
        database = sqlite3.connect(self.path, timeout=20, isolation_level=None)
        database.row_factory = sqlite3.Row
        try:
            yield database
        finally:
            database.close()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose changes are all made, or none of them."""
        with self.reading() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return what a query finds."""
        with self.reading() as database:
            return database.execute(query, values).fetchall()

    def do(self, statement: str, *values: Any) -> int | None:
        """Make one change; return the number of a new row."""
        with self.changing() as database:
            return database.execute(statement, values).lastrowid
