"""Where data came from, as far as it takes to give the same kind of thing back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Origin"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where data came from.

    Parameters
    ----------
    suffix
        The extension of the file (``.csv``), or nothing for a frame.
    native
        The kind of frame that was given: ``polars``, ``polars lazy``, ``pandas``, ``pyarrow``;
        or ``file``.
    index, types, labels
        The index, the types and the column labels of a frame of another library.
    delimiter, encoding, line_ending
        How a text file was written.
    bom
        Whether it began with a byte order mark.
    file_label, notes, table_name, version
        What a statistical file says of itself.
    """

    suffix: str = ""
    native: str = "file"
    index: Any = None
    types: Any = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    delimiter: str = ","
    encoding: str = "utf-8"
    line_ending: str = "\n"
    bom: bool = False
    file_label: str = ""
    notes: Sequence[str] = field(default=())
    table_name: str = ""
    version: int = 0
