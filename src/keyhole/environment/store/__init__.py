"""Where an environment is kept: a SQLite file, or a PostgreSQL database that people share.

SQLAlchemy is loaded when a name here is first used.

Examples
--------
>>> import tempfile
>>> from dataclasses import replace
>>> from keyhole.environment.model import Organisation
>>> from keyhole.environment.store import open_store
>>> store = open_store(tempfile.mkdtemp() + "/environment.db", create=True)
>>> snapshot = store.read()
>>> changed = replace(snapshot.environment, organisations=(Organisation("Registry"),))
>>> snapshot = store.write(snapshot, changed, who="ann")
>>> [(change.who, change.action, change.kind, change.name) for change in store.history()]
[('ann', 'added', 'organisation', 'Registry')]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole.environment.store.opening import open_store
    from keyhole.environment.store.snapshots import Change, Snapshot
    from keyhole.environment.store.store import Store

__all__ = ["Change", "Snapshot", "Store", "open_store"]

_HOMES = {"Change": "snapshots", "Snapshot": "snapshots", "Store": "store", "open_store": "opening"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
