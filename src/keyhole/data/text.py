"""Delimited text (CSV, TSV) as columns of text."""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import polars as pl

from keyhole.data.formats import suffix_of
from keyhole.data.origin import Origin
from keyhole.data.text_faults import (
    DELIMITER_NAMES,
    DELIMITERS,
    Lines,
    find_open_quote,
    malformed,
    open_quote,
)
from keyhole.errors import FileError, OptionError

__all__ = ["read_text"]

_BLOCK = 1 << 21
_LARGEST = (1 << 31) - 1
_GLANCE = 50
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before that of UTF-16, which it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Codecs of Python that are no encodings of files: they would change what is written there.
_NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")

Choose = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a text is laid out: its names, and where its records begin."""

    names: list[str]
    start: int
    delimiter: str
    line_ending: str


def read_text(
    path: Path, choose: Choose, *, encoding: str | None = None, delimiter: str | None = None
) -> tuple[pl.DataFrame, Origin]:
    """Read a delimited text file; every column is text and empty cells are null.

    The first line has the names. Blank lines are no records. A byte order mark tells the
    encoding; else it is UTF-8 unless `encoding` says another. The delimiter is the one among
    comma, semicolon, tab and bar that gives the first records as many cells as the header.

    Parameters
    ----------
    path
        The file; ``.gz`` is unpacked.
    choose
        Given all names, returns those to be read.
    encoding, delimiter
        Taken as said, not detected.
    """
    data, used, bom = _utf8(_bytes(path), encoding, path.name)
    _refuse_binary(data, path.name)
    try:
        layout = _layout(data, delimiter, path.name)
        chosen = choose(layout.names)
        frame = _parse(data, layout, chosen, path.name)
        if (line := find_open_quote(data, layout.delimiter)) is not None:
            raise open_quote(path.name, line)
    except UnicodeDecodeError:
        _decode(data, "utf-8", path.name)
        raise
    origin = Origin(
        suffix=suffix_of(path),
        delimiter=layout.delimiter,
        encoding=used,
        line_ending=layout.line_ending,
        bom=bom,
    )
    return frame, origin


def _bytes(path: Path) -> bytes:
    if path.suffix.lower() != ".gz":
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise FileError(
            f"{path.name!r} cannot be unpacked: it is not a whole gzip file. Copy it again, or "
            f"take off '.gz' if it is not packed."
        ) from None


def _utf8(data: bytes, encoding: str | None, name: str) -> tuple[bytes, str, bool]:
    """Return the text in UTF-8 without a mark, the encoding it was in, and if it had a mark."""
    used, bom = _known_encoding(encoding or "utf-8"), False
    for mark, marked in _MARKS:
        if data.startswith(mark):
            data, used, bom = data[len(mark) :], marked, True
            break
    data = _recoded(data, used, name)
    if _is_blank(data, None):
        raise FileError(f"{name!r} is empty. Give a file with a header and records.")
    return data, used, bom


def _is_blank(data: bytes | memoryview, blanks: bytes | None) -> bool:
    """Whether there is nothing but blanks; a long text is not copied to find out."""
    return not bytes(data[:4096]).strip(blanks) and not bytes(data).strip(blanks)


def _known_encoding(encoding: str) -> str:
    try:
        found = codecs.lookup(encoding).name
        if found in _NO_ENCODINGS:
            raise LookupError
        "".encode(encoding)
    except (LookupError, TypeError, ValueError):
        raise OptionError(
            f"encoding must be one that Python knows for text files, like 'utf-8' or 'cp1252'. "
            f"Got {encoding!r} instead."
        ) from None
    return "utf-8" if found == "utf-8-sig" else found  # a mark is seen for itself


def _recoded(data: bytes, encoding: str, name: str) -> bytes:
    # Reading checks UTF-8 as it goes; to check it here would take as long again.
    return data if encoding == "utf-8" else _decode(data, encoding, name).encode()


def _decode(data: bytes, encoding: str, name: str) -> str:
    try:
        return str(data, encoding)
    except UnicodeError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise FileError(
            f"{name!r} is not in the encoding {encoding!r}: line {line} cannot be decoded. Say "
            f"which it is in (--encoding cp1252 for most files of Western Windows programs)."
        ) from None


def _refuse_binary(data: bytes, name: str) -> None:
    place = data.find(b"\0")
    if place >= 0:
        raise FileError(
            f"{name!r} holds zero bytes (the first in line {data.count(10, 0, place) + 1}), so it "
            f"is not plain text. If it is UTF-16 say so (--encoding utf-16-le); else write it anew."
        )


def _layout(data: bytes, delimiter: str | None, name: str) -> _Layout:
    if delimiter is not None and not _is_delimiter(delimiter):
        raise OptionError(
            f"delimiter must be one character of ASCII, and none that ends a line or quotes. "
            f"Got {delimiter!r} instead."
        )
    used = delimiter or _detect(data)
    lines = Lines(data)
    header: list[str] = next((row for row in _rows(lines, used, name) if row), [])
    if delimiter is not None and len(header) == 1:
        _hint_delimiter(data, delimiter, name)
    ending = "\r\n" if lines.last.endswith("\r\n") else "\r" if lines.last.endswith("\r") else "\n"
    return _Layout(header, lines.read, used, ending)


def _is_delimiter(mark: Any) -> bool:
    return isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '\0\r\n"'


def _hint_delimiter(data: bytes, delimiter: str, name: str) -> None:
    found = [DELIMITER_NAMES[mark] for mark in DELIMITERS if _agreement(data, mark)[0]]
    if found:
        raise FileError(
            f"{name!r} has one column when read with the delimiter {delimiter!r}, but several "
            f"with a {found[0]}. Give the delimiter that the file has, or leave it to be found."
        )


def _rows(lines: Iterable[str], delimiter: str, name: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    except csv.Error:
        raise FileError(
            f"{name!r} cannot be read as text with the delimiter {delimiter!r}: a cell is too "
            f"long. Check that every quotation mark is closed."
        ) from None


def _detect(data: bytes) -> str:
    """Return the delimiter that gives the first records as many cells as the header."""
    return max(DELIMITERS, key=lambda mark: _agreement(data, mark))


def _agreement(data: bytes, mark: str) -> tuple[bool, int]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell too long for a glance
        rows.extend(filter(None, islice(csv.reader(Lines(data), delimiter=mark), _GLANCE)))
    widths = Counter(map(len, rows))
    width = len(rows[0]) if rows else 1
    return width > 1 and 2 * widths[width] > len(rows), width


def _parse(data: bytes, layout: _Layout, chosen: list[str], name: str) -> pl.DataFrame:
    """Parse the records of the chosen columns.

    PyArrow's parser, since it refuses rows with too few cells, where others fill them up.
    Columns go under their places, because any text may be a name.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    body = memoryview(data)[layout.start :]
    if _is_blank(body, b"\r\n"):
        return pl.DataFrame(schema=dict.fromkeys(chosen, pl.String))
    places = {column: str(place) for place, column in enumerate(layout.names)}
    wanted = [places[column] for column in chosen]
    try:
        table = _arrow(pa.py_buffer(body), layout, wanted, _BLOCK)
    except pa.ArrowInvalid:
        _decode(data, "utf-8", name)
        try:  # in one block, for a file with cells longer than a block
            table = _arrow(pa.py_buffer(body), layout, wanted, min(len(body) + 1, _LARGEST))
        except pa.ArrowInvalid:
            raise malformed(data, layout.delimiter, len(layout.names), name) from None
    # Typed columns are made contiguous later; to do it to their text first would be for nothing.
    frame = cast("pl.DataFrame", pl.from_arrow(table, rechunk=False))
    return frame.rename(dict(zip(frame.columns, chosen, strict=True)))


def _arrow(buffer: Any, layout: _Layout, wanted: list[str], block: int) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        buffer,
        read_options=arrow_csv.ReadOptions(
            column_names=[str(place) for place in range(len(layout.names))], block_size=block
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.large_string()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
