"""Files of SAS, written for tests: no library writes SAS7BDAT.

One page holds everything. Every column is eight bytes wide: a number, or a text if its first value
is one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

PAGE, HEADER, WIDTH = 8192, 1024, 8
_MAGIC = bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
_MIXED = 512  # a page of descriptions and records


def sas7bdat(columns: Mapping[str, Sequence[float | str]]) -> bytes:
    """Return the bytes of a SAS file with these columns, in UTF-8.

    Examples
    --------
    >>> len(sas7bdat({"age": [34, 51], "town": ["Bonn", "Köln"]})) == HEADER + PAGE
    True
    """
    rows = list(zip(*columns.values(), strict=True))
    kinds = [isinstance(values[0], str) for values in columns.values()]
    parts = _described(list(columns), kinds, len(rows))
    page, end = bytearray(PAGE), PAGE
    struct.pack_into("<HHH", page, 16, _MIXED, len(parts) + len(rows), len(parts))
    for number, part in enumerate(parts):
        end -= len(part) + -len(part) % 4
        page[end : end + len(part)] = part
        struct.pack_into("<II", page, 24 + 12 * number, end, len(part))
    at = 24 + 12 * len(parts)
    at += at % 8
    cells = b"".join(_cell(value) for row in rows for value in row)
    if at + len(cells) > end:
        raise ValueError("that is too much for one page")
    page[at : at + len(cells)] = cells
    return _header() + bytes(page)


def _header() -> bytes:
    head = bytearray(HEADER)
    head[12:32] = _MAGIC
    head[32], head[35], head[37], head[39], head[70] = 0x22, 0x32, 1, ord("1"), 20
    head[84:164] = b"SAS FILE" + b"PEOPLE".ljust(64) + b"DATA    "
    struct.pack_into("<III", head, 196, HEADER, PAGE, 1)
    head[216:240] = b"9.0401M6" + b"Linux".ljust(16)
    return bytes(head)


def _described(names: list[str], kinds: list[bool], rows: int) -> list[bytes]:
    """Return the parts that describe the table: its size, and names and places of columns."""
    size = bytearray(480)
    struct.pack_into("<I", size, 0, 0xF7F7F7F7)
    struct.pack_into("<II", size, 20, WIDTH * len(names), rows)
    struct.pack_into("<I", size, 36, len(names))
    struct.pack_into("<III", size, 52, PAGE, 0, rows)
    count = struct.pack("<III", 0xF6F6F6F6, len(names), 0)
    texts = bytes(WIDTH) + b"".join(name.encode().ljust(WIDTH, b"\0") for name in names)
    lengths = [len(name.encode()) for name in names]
    called = (struct.pack("<HHHH", 0, 12 + WIDTH * i, n, 0) for i, n in enumerate(lengths))
    placed = (
        struct.pack("<IIHH", WIDTH * i, WIDTH, n, 1 + kind)
        for i, (n, kind) in enumerate(zip(lengths, kinds, strict=True))
    )
    shown = struct.pack("<I", 0xFFFFFBFE) + bytes(48)
    return [
        bytes(size),
        count,
        _part(0xFFFFFFFD, [texts], 8),
        _part(0xFFFFFFFF, called, 12),
        _part(0xFFFFFFFC, placed, 12),
        *[shown] * len(names),
    ]


def _part(mark: int, content: Iterable[bytes], start: int) -> bytes:
    """Return a part that begins with its mark and its length."""
    part = bytearray(struct.pack("<I", mark).ljust(start, b"\0") + b"".join(content) + bytes(8))
    struct.pack_into("<H", part, 4, len(part) - 12)
    return bytes(part)


def _cell(value: float | str) -> bytes:
    return struct.pack("<d", value) if not isinstance(value, str) else value.encode().ljust(WIDTH)
