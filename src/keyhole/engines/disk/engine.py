"""The disk engine."""

from __future__ import annotations

from collections.abc import Mapping

from keyhole.data.columns import Codes
from keyhole.engines.disk.folder import WorkFolder
from keyhole.engines.memory import MemoryEngine

__all__ = ["DiskEngine"]


class DiskEngine(MemoryEngine):
    """Counts cells of encoded columns that lie in mapped files.

    It is the memory engine in another room: what has a value for each record is in mapped files,
    which the system writes out and reads in as it has memory, and everything else is small.

    Parameters
    ----------
    columns
        The encoded columns by name; all of the same length.
    folder
        Where arrays with a value a record are made.
    """

    name = "disk"

    def __init__(self, columns: Mapping[str, Codes], *, folder: WorkFolder) -> None:
        super().__init__(columns, room=folder)
