"""What a database says, told in our words: it may quote values, and a URL its password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from keyhole.environment.store.places import FilePlace, Place
from keyhole.errors import ConflictError, FileError, KeyholeError, RunError

# Words of a database's message, or its code, and what they mean.
_LOCKED = ("database is locked", "database table is locked", "55P03")
_READ_ONLY = ("readonly database", "25006", "42501")
_BROKEN = ("malformed", "not a database", "no such table", "no such column", "42P01", "42703")
_NO_SCHEMA = ("3F000",)
_FULL = ("disk is full", "disk I/O error", "53100")
_NO_FILE = ("unable to open database file",)
_UNREACHED = {
    "authentication failed": "the user or the password is not accepted. Correct them",
    "no password supplied": "it wants a password. Give it in the URL, or in PGPASSWORD",
    "does not exist": "it has no such database, or no such user. Make it first",
    "refused": "nothing answers there. Check the host and the port, and that it runs",
    "resolve": "the host is not known. Check its name",
    "No such file": "nothing answers there. Check the host and the port, and that it runs",
    "timeout": "it does not answer in time. Check the host, and try again",
}


@contextmanager
def told(place: Place, timeout: float) -> Iterator[None]:
    """Turn what the database says into errors of ours."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _told(place, timeout, error.orig or error) from None
    except UnicodeDecodeError:  # what it says, or holds, is no text
        raise _damaged(place) from None
    except sa.exc.SQLAlchemyError as error:
        raise RunError(f"{place}: the database failed ({type(error).__name__}).") from None
    except Exception as error:
        if not type(error).__module__.startswith("psycopg"):  # rows that were copied in bulk
            raise
        raise _told(place, timeout, error) from None


def _told(place: Place, timeout: float, error: BaseException) -> KeyholeError:
    text = f"{error} {getattr(error, 'sqlstate', None) or ''}"
    if _is_a(error, "IntegrityError"):
        return ConflictError(
            f"{place}: somebody else used a name or removed a thing that this change needs. "
            f"Nothing was written. Read the store again and make the changes anew."
        )
    if _says(text, _LOCKED):
        return RunError(
            f"{place} is in use by another process, and still was after {timeout:g} seconds. "
            f"Nothing was written. Try again when the other is done."
        )
    if _says(text, _READ_ONLY):
        return FileError(f"{place} may only be read. Ask its owner for the right to write.")
    if _says(text, _NO_SCHEMA):
        return FileError(f"{place} has no schema to write in. Make it first (CREATE SCHEMA).")
    if _says(text, _BROKEN):
        return _damaged(place)
    if _says(text, _FULL):
        return RunError(f"{place} could not be written: no room is left. Nothing was written.")
    if _says(text, _NO_FILE):
        return FileError(
            f"{place} cannot be opened. Check that it is there, and that its folder may be written."
        )
    if not isinstance(place, FilePlace) and _is_a(error, "OperationalError"):
        return RunError(f"{place} cannot be reached: {_why(text)}.")
    return RunError(f"{place}: the database failed ({type(error).__name__}). Nothing was written.")


def _damaged(place: Place) -> FileError:
    return FileError(f"{place} is damaged: not all of a store is there. Restore a copy of it.")


def _is_a(error: BaseException, name: str) -> bool:
    """Tell by the names that drivers have in common (PEP 249)."""
    return any(kind.__name__ == name for kind in type(error).__mro__)


def _says(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _why(text: str) -> str:
    found = (why for words, why in _UNREACHED.items() if words in text)
    return next(found, "the server refuses or went away. Check the URL, and try again")
