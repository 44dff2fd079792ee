"""Open a store, make one, or say why not."""

from __future__ import annotations

import math
import os

from keyhole.environment.store.failures import told
from keyhole.environment.store.places import place_of_store
from keyhole.environment.store.store import Store
from keyhole.environment.store.versions import bring_up, is_current, lock, require_readable
from keyhole.errors import OptionError


def open_store(
    place: str | os.PathLike[str],
    *,
    create: bool = False,
    writing: bool = True,
    timeout: float = 10.0,
) -> Store:
    """Open the store of an environment.

    A store of an older version is brought up, in one transaction; one of a newer version, and
    anything that is not a store, is refused and left as it is.

    Parameters
    ----------
    place
        The path of a SQLite file, or a URL: ``sqlite:///folder/environment.db``,
        ``postgresql://user:password@host/database``. A password may also be in
        ``PGPASSWORD`` or a password file; it is never shown.
    create
        Make the store if nothing is there. A store that is there is opened as it is.
    writing
        False opens it for reading only: then an older version is refused.
    timeout
        Seconds to wait while another process has the store locked.

    Returns
    -------
    Store
        With `read`, `write` and `history`; `created` tells whether it was made now.

    Raises
    ------
    FileError
        What is there is not a store, or of a newer version, or cannot be opened.
    OptionError
        The place is neither a path nor a URL of a kind that is known.
    RunError
        The store is locked, or the server cannot be reached.
    """
    if not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise OptionError(f"timeout must be a number of seconds above 0. Got {timeout!r} instead.")
    if create and not writing:
        raise OptionError("create must be left out where writing is False: nothing is made then.")
    found = place_of_store(place)
    found.check(create=create)
    engine = found.engine(create=create, writing=writing, timeout=timeout)
    maker = Store(found, engine, writing=writing, timeout=timeout)
    created = False
    with told(found, timeout), maker.reading() as connection:
        current = is_current(connection)
        if not writing:
            require_readable(connection, found)
    if not current and writing:
        with told(found, timeout), maker.alone() as connection:
            lock(connection)
            created = bring_up(connection, found, create=create)
    # From now on a file that goes away is not made anew.
    engine = found.engine(create=False, writing=writing, timeout=timeout)
    return Store(found, engine, writing=writing, timeout=timeout, created=created)
