"""Problems and long texts of an environment, cut to what a reader can take in; frames."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keyhole.core.files import write_whole
from keyhole.core.names import nearest, quoted, shown
from keyhole.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MOST = 100
"""Problems that are told; of more, only their number."""

LONGEST = 60
"""Characters of a name that are shown; a longer one is cut."""


def short(text: str, most: int = LONGEST) -> str:
    """Cut a long name or text for a table."""
    return text if len(text) <= most else text[: most - 1] + "…"


def require_none(problems: Iterable[str], kind: type[InputError] = InputError) -> None:
    """Raise the problems, if there are any, all at once."""
    found = list(problems)
    if len(found) > MOST:
        found[MOST:] = [f"and {len(found) - MOST:,} more problems"]
    if found:
        raise kind(found)


def meant(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """Ask whether one of the names was meant that come near a mistyped one."""
    near = nearest(name, list(names)) if name else []
    return f" Did you mean {quoted(near)}?" if near else otherwise


def not_there(kind: str, name: str, names: Iterable[str], remedy: str = "") -> str:
    """Say that a name is not in the environment, and which are near it, or else the remedy."""
    words = f"{kind} {shown(name)}".lstrip()
    return f"{words} is not in the environment.{meant(name, names, remedy)}"


def write_text(path: str | os.PathLike[str], text: str, *, force: bool = False) -> Path:
    """Write a text file, whole or not at all; `force` replaces what is there."""
    with write_whole(path, force=force) as temporary:
        temporary.write_bytes(text.encode())
    return Path(path)


def frame_of(things: Iterable[Any], **types: Any) -> pl.DataFrame:
    """Return a frame with a row a thing, and its attributes of these names and types."""
    import polars as pl

    rows = [[getattr(one, name) for name in types] for one in things]
    return pl.DataFrame(rows, schema=types, orient="row")
