"""Whether a statistical file that was written is whole.

The writer overlooks a disk that refuses: what is refused is left out, in silence. So a file is
read back, before it gets its name. Every record of SPSS, Stata and SAS transport takes its
place in the file, so if all are found nothing before the last is left out. Only Stata has
something after it, and says at which byte it ends.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from keyhole.core.files import require_room
from keyhole.errors import RunError

__all__ = ["require_written"]

_MAP = b"<map>"
_PLACES = 14  # of Stata's map, eight bytes each: the last is where the file ends


def require_written(path: Path, name: str, column: str, records: int) -> None:
    """Say so unless a file holds all the records that were written.

    Parameters
    ----------
    path
        The file.
    name
        Its format: ``SAS transport``, ``SPSS`` or ``Stata``.
    column
        One of its columns, which stands for all.
    records
        How many records were written.
    """
    if _count(path, name, column) == records and (name != "Stata" or _is_ended(path)):
        return
    require_room(path)
    raise RunError(
        f"the {name} file could not be written whole: it was read back and is cut short. Check "
        f"the disk, or choose another folder."
    )


def _count(path: Path, name: str, column: str) -> int | None:
    """Count the records of a file; none if it cannot be read to its end."""
    import pyreadstat

    readers: dict[str, Any] = {
        "SAS transport": pyreadstat.read_xport,
        "SPSS": pyreadstat.read_sav,
        "Stata": pyreadstat.read_dta,
    }
    try:
        cells, _ = readers[name](str(path), usecols=[column], output_format="polars")
        return len(cells)
    except Exception:  # the reader raises plain exceptions of many kinds
        return None


def _is_ended(path: Path) -> bool:
    with path.open("rb") as file:
        beginning = file.read(4096)
    end = beginning.find(_MAP) + len(_MAP) + 8 * _PLACES
    return int.from_bytes(beginning[end - 8 : end], sys.byteorder) == path.stat().st_size
