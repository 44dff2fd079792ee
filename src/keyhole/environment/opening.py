"""Environments from wherever they are kept: a JSON file, or a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.options import Problem
from keyhole.environment.model import Environment
from keyhole.errors import OptionError

if TYPE_CHECKING:
    from keyhole.environment.store import Store


def is_exported(place: str | os.PathLike[str]) -> bool:
    """Tell whether a place is an exported environment, which is read and never written.

    Examples
    --------
    >>> is_exported("env.json"), is_exported("env.db"), is_exported("postgresql://host/a.json")
    (True, False, False)
    """
    text = os.fspath(place)
    return "://" not in text and Path(text).suffix.lower() == ".json"


def read_place(place: Any) -> Environment:
    """Read an environment from a ``.json`` file, an SQLite file or a PostgreSQL URL.

    Nothing is changed there. An environment is its own place, and so is its graph.
    """
    if not isinstance(place, str | os.PathLike):
        held: Environment = getattr(place, "environment", place)
        return held
    if is_exported(place):
        from keyhole.environment.exchange import read_environment

        return read_environment(place)
    from keyhole.environment.store import open_store

    return open_store(place, writing=False).read().environment


def open_writing(place: str | os.PathLike[str], *, create: bool = False) -> Store:
    """Open a store to be written; what is exported is only read."""
    from keyhole.environment.store import open_store

    if not isinstance(place, str | os.PathLike):
        template = "{store} must be the place of a store, to be written to. Got an environment."
        raise OptionError(Problem(template))
    if is_exported(place):
        template = (
            "{0!r} is an exported environment, which is only read. Make a store of it first: "
            "`keyhole environment init` with {from_}."
        )
        raise OptionError(Problem(template, os.fspath(place)))
    return open_store(place, create=create)


def current_user() -> str:
    """Return who is working, for the history of a store."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody has this number here
        return "unknown"
