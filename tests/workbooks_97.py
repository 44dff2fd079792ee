"""Workbooks of Excel 97 to 2003 (``.xls``), written for tests: BIFF8 records in a compound file."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_FREE, _LAST, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_END = struct.pack("<HH", 0x0A, 0)


def workbook_97(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    """Return a workbook with these rows of text in its sheets."""
    parts = [_begin(0x10) + _cells(rows) + _END for rows in sheets.values()]
    place, places = len(_begin(5) + _listed(sheets, [0] * len(sheets)) + _END), []
    for part in parts:
        places.append(place)
        place += len(part)
    stream = _begin(5) + _listed(sheets, places) + _END + b"".join(parts)
    return _compound(stream.ljust(4096, b"\0"))  # what is shorter would be kept elsewhere


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _begin(what: int) -> bytes:
    return _record(0x0809, struct.pack("<HHHHII", 0x600, what, 0, 0, 0, 0))


def _text(value: str, size: str) -> bytes:
    return struct.pack(size, len(value)) + b"\1" + value.encode("utf-16-le")


def _cells(rows: Sequence[Sequence[str]]) -> bytes:
    return b"".join(
        _record(0x0204, struct.pack("<HHH", i, j, 0) + _text(cell, "<H"))
        for i, row in enumerate(rows)
        for j, cell in enumerate(row)
        if cell
    )


def _listed(names: Mapping[str, object], places: Sequence[int]) -> bytes:
    return b"".join(
        _record(0x85, struct.pack("<IH", place, 0) + _text(name, "<B"))
        for name, place in zip(names, places, strict=True)
    )


def _compound(stream: bytes) -> bytes:
    """Wrap a stream; sector 0 is the table of sectors, 1 the directory, the rest the stream."""
    stream += b"\0" * (-len(stream) % 512)
    chain = [_TABLE, _LAST, *range(3, len(stream) // 512 + 2), _LAST]
    chain += [_FREE] * (128 - len(chain))
    magic = bytes.fromhex("d0cf11e0a1b11ae1")
    shape = 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, _LAST, 0, _LAST, 0
    head = struct.pack("<8s16x5H6x9I", magic, *shape) + struct.pack("<109I", 0, *[_FREE] * 108)
    folder = _entry("Root Entry", 5, 1, _LAST, 0) + _entry("Workbook", 2, _FREE, 2, len(stream))
    return head + struct.pack("<128I", *chain) + folder.ljust(512, b"\0") + stream


def _entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    told = name.encode("utf-16-le") + b"\0\0"
    near = _FREE, _FREE, child, 0, start, size, 0
    return struct.pack("<64sHBB3I16xI16xIII", told, len(told), kind, 1, *near)
