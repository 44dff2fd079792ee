"""Read an environment from wherever it is kept: a JSON file, or a store."""

from __future__ import annotations

import os
from pathlib import Path

from keyhole.environment.model import Environment

__all__ = ["is_exported", "read_place"]


def is_exported(place: str | os.PathLike[str]) -> bool:
    """Tell whether a place is an exported environment, which is read and never written.

    Examples
    --------
    >>> is_exported("env.json"), is_exported("env.db"), is_exported("postgresql://host/a.json")
    (True, False, False)
    """
    text = os.fspath(place)
    return "://" not in text and Path(text).suffix.lower() == ".json"


def read_place(place: str | os.PathLike[str]) -> Environment:
    """Read an environment from a ``.json`` file, an SQLite file or a PostgreSQL URL.

    Nothing is changed there.
    """
    if is_exported(place):
        from keyhole.environment.exchange import read_environment

        return read_environment(place)
    from keyhole.environment.store import open_store

    return open_store(place, writing=False).read().environment
