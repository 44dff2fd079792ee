"""Read an environment from wherever it is kept: a JSON file, or a store."""

from __future__ import annotations

import os
from pathlib import Path

from keyhole.environment.model import Environment

__all__ = ["read_place"]


def read_place(place: str | os.PathLike[str]) -> Environment:
    """Read an environment from a ``.json`` file, an SQLite file or a PostgreSQL URL.

    Nothing is changed there.
    """
    if Path(place).suffix.lower() == ".json":
        from keyhole.environment.exchange import read_environment

        return read_environment(place)
    from keyhole.environment.store import open_store

    return open_store(place, writing=False).read().environment
