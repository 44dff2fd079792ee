"""Delimited text files (CSV, TSV): read whole or in pieces, and what is wrong with them."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import polars as pl

from keyhole.core.options import Problem
from keyhole.data.formats import suffix_of
from keyhole.data.microdata import Origin
from keyhole.errors import FileError, OptionError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_BLOCK = 1 << 21
_AT_ONCE = 1 << 22
_LARGEST = (1 << 31) - 1
_GLANCE = 50
# No record is longer: what is has no lines, or a quotation mark that is not closed.
_LONGEST = 1 << 24
# No text of records is packed smaller than this; below so many bytes it does no harm.
_PACKED, _HARMLESS = 200, 1 << 27
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before that of UTF-16, which it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Codecs of Python that are no encodings of files: they would change what is written there.
_NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")
_OURS = "ours"

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

    `choose`, given all names, returns those to be read.
    """
    data = b"".join(_unpacked(path)) if path.suffix.lower() == ".gz" else _plain(path)
    used, mark = _encoding(data, encoding)
    data = data[len(mark) :] if mark else data
    if used != "utf-8":  # Parsing checks UTF-8 as it goes; to check it here takes as long again.
        data = _decode(data, used, path.name).encode()
    if _is_blank(data, None):
        raise _empty(path.name)
    _refuse_binary(data, path.name)
    try:
        layout = _layout(data, delimiter, path.name)
        chosen = choose(layout.names)
        frame = _parse(data, layout, chosen, path.name)
        _check_quotes([data], lambda: _Lines(data), layout.delimiter, path.name)
    except UnicodeDecodeError:
        _decode(data, "utf-8", path.name)
        raise
    origin = Origin(
        suffix=suffix_of(path),
        delimiter=layout.delimiter,
        encoding=used,
        line_ending=layout.line_ending,
        bom=bool(mark),
    )
    return frame, origin


def _plain(path: Path) -> bytes:
    if path.stat().st_size > _LONGEST:
        for _ in _unpacked(path):  # to see that it has lines, before there is memory taken for it
            pass
    return path.read_bytes()


def _unpacked(path: Path, most: int = -1) -> Iterator[bytes]:
    """Give the bytes of a file in blocks, unpacked; or its first ones only."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            if most >= 0:
                yield file.read(most)
            else:
                yield from _bounded(path, _blocks(file))
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise FileError(
            f"{path.name!r} cannot be unpacked: it is not a whole gzip file. Copy it again, or "
            f"take off '.gz' if it is not packed."
        ) from None


def _bounded(path: Path, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Refuse a text without lines, and one that was packed to fill the memory, as soon as seen."""
    most = max(_PACKED * path.stat().st_size, _HARMLESS)
    read = line = 0
    for block in blocks:
        read += len(block)
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        line = line + len(block) if end < 0 else len(block) - end - 1
        if line > _LONGEST:
            raise FileError(
                f"{path.name!r} has a line of more than {_LONGEST >> 20} MB, so it is no table of "
                f"records. Write it anew, each record on a line of its own."
            )
        if read > most:
            raise FileError(
                f"{path.name!r} unpacks to more than {_PACKED} times its size, which files of "
                f"records do not. If it is right, unpack it first and give the text."
            )
        yield block


def _blocks(file: Any) -> Iterator[bytes]:
    return iter(lambda: file.read(_AT_ONCE), b"")


def _encoding(beginning: bytes, encoding: str | None) -> tuple[str, bytes]:
    """Return the encoding of a text and the byte order mark it begins with, if any."""
    used = _known_encoding(encoding or "utf-8")
    return next(((of, mark) for mark, of in _MARKS if beginning.startswith(mark)), (used, b""))


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


def _is_blank(data: bytes | memoryview, blanks: bytes | None) -> bool:
    """Whether there is nothing but blanks; a long text is not copied to find out."""
    return not bytes(data[:4096]).strip(blanks) and not bytes(data).strip(blanks)


def _empty(name: str) -> FileError:
    return FileError(f"{name!r} is empty. Give a file with a header and records.")


def _decode(data: bytes, encoding: str, name: str) -> str:
    try:
        return str(data, encoding)
    except UnicodeError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise _not_in(encoding, name, line) from None


def _not_in(encoding: str, name: str, line: int) -> FileError:
    template = (
        "{0!r} is not in the encoding {1!r}: line {2} cannot be decoded. Say which it is in "
        "({encoding} cp1252 for most files of Western Windows programs)."
    )
    return FileError(Problem(template, name, encoding, line))


def _refuse_binary(data: bytes, name: str) -> None:
    place = data.find(b"\0")
    if place >= 0:
        template = (
            "{0!r} holds zero bytes (the first in line {1}), so it is not plain text. If it is "
            "UTF-16 say so ({encoding} utf-16-le); else write it anew."
        )
        raise FileError(Problem(template, name, data.count(10, 0, place) + 1))


def _layout(data: bytes, delimiter: str | None, name: str) -> _Layout:
    one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if delimiter is not None and (not one or delimiter in '\0\r\n"'):
        raise OptionError(
            f"delimiter must be one character of ASCII, and none that ends a line or quotes. "
            f"Got {delimiter!r} instead."
        )
    # Detected is the delimiter that gives the first records as many cells as the header.
    used = delimiter or max(DELIMITERS, key=lambda mark: _agreement(data, mark))
    lines = _Lines(data)
    try:
        header = next(filter(None, csv.reader(lines, delimiter=used)), [])
    except csv.Error:
        raise FileError(
            f"{name!r} cannot be read as text with the delimiter {used!r}: a cell is too long. "
            f"Check that every quotation mark is closed."
        ) from None
    if delimiter is not None and len(header) == 1:
        _hint_delimiter(data, delimiter, name)
    ending = "\r\n" if lines.last.endswith("\r\n") else "\r" if lines.last.endswith("\r") else "\n"
    return _Layout(header, lines.read, used, ending)


def _hint_delimiter(data: bytes, delimiter: str, name: str) -> None:
    found = [name for mark, name in DELIMITERS.items() if _agreement(data, mark)[0]]
    if found:
        raise FileError(
            f"{name!r} has one column when read with the delimiter {delimiter!r}, but several "
            f"with a {found[0]}. Give the delimiter that the file has, or leave it to be found."
        )


def _agreement(data: bytes, mark: str) -> tuple[bool, int]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell too long for a glance
        rows.extend(filter(None, islice(csv.reader(_Lines(data), delimiter=mark), _GLANCE)))
    widths = Counter(map(len, rows))
    width = len(rows[0]) if rows else 1
    return width > 1 and 2 * widths[width] > len(rows), width


def _parse(data: bytes, layout: _Layout, chosen: list[str], name: str) -> pl.DataFrame:
    """Parse the records of the chosen columns.

    PyArrow's parser, since it refuses rows with too few cells, where others fill them up.
    Columns go under their places, because any text may be a name.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import csv as arrow_csv

    body = memoryview(data)[layout.start :]
    if _is_blank(body, b"\r\n"):
        return pl.DataFrame(schema=dict.fromkeys(chosen, pl.String))
    places = {column: str(place) for place, column in enumerate(layout.names)}
    wanted, kind = [places[column] for column in chosen], pa.large_string()
    read = partial(arrow_csv.read_csv, pa.py_buffer(body))
    try:
        table = read(**_options(layout.names, layout.delimiter, wanted, kind, _BLOCK))
    except pa.ArrowInvalid:
        _decode(data, "utf-8", name)
        try:  # in one block, for a file with cells longer than a block
            block = min(len(body) + 1, _LARGEST)
            table = read(**_options(layout.names, layout.delimiter, wanted, kind, block))
        except pa.ArrowInvalid:
            _check_quotes([data], lambda: _Lines(data), layout.delimiter, name)
            raise _malformed(_Lines(data), layout.delimiter, len(layout.names), name) from None
    # Typed columns are made contiguous later; to do it to their text first would be for nothing.
    frame = cast("pl.DataFrame", pl.from_arrow(table, rechunk=False))
    return frame.rename(dict(zip(frame.columns, chosen, strict=True)))


def _options(
    names: Sequence[str], delimiter: str, wanted: list[str], kind: Any, block: int
) -> dict[str, Any]:
    """Return how PyArrow is to parse a text: every wanted column as text, empty cells as null."""
    from pyarrow import csv as arrow_csv

    return {
        "read_options": arrow_csv.ReadOptions(
            column_names=[str(place) for place in range(len(names))], block_size=block
        ),
        "parse_options": arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, kind),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    }


class _Lines:
    r"""The lines of a text in UTF-8, counting the bytes that were read.

    Examples
    --------
    >>> lines = _Lines("größe\n1\n".encode())
    >>> next(iter(lines)), lines.read
    ('größe\n', 8)
    """

    def __init__(self, data: bytes) -> None:
        self._lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
        self.read = 0
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.read += len(line.encode())
            self.last = line
            yield line


def _check_quotes(
    blocks: Iterable[bytes], lines: Callable[[], Iterable[str]], delimiter: str, name: str
) -> None:
    r"""Refuse a text with a quotation mark that is not closed: parsers take the rest as one cell.

    Examples
    --------
    >>> _check_quotes([b'a,b\n1,"x\n'], lambda: ["a,b\n", '1,"x\n'], ",", "a.csv")
    Traceback (most recent call last):
    ...
    keyhole.errors.FileError: 'a.csv', line 2: a quotation mark is opened that is not closed. ...
    """
    if sum(block.count(b'"') for block in blocks) % 2 == 0:
        return
    # A line of our own at the end stays apart from the rest only if no quotation mark is open.
    line, row = 1, None
    for line, row in _numbered(chain(lines(), ["\r\n", _OURS]), delimiter):  # noqa: B007
        pass
    if row != [_OURS]:
        raise _open_quote(name, line) from None  # what a parser says of a cell would show it


def _malformed(lines: Iterable[str], delimiter: str, expected: int, name: str) -> FileError:
    """Say which row does not have as many cells as the header, or which quote is not closed."""
    for line, row in _numbered(lines, delimiter):
        if row is None:
            return _open_quote(name, line)
        if row and len(row) != expected:
            mark = DELIMITERS.get(delimiter, repr(delimiter))
            return FileError(
                f"{name!r}, line {line}: must have {expected} cells, as the header has. Got "
                f"{len(row)} instead. Check that the delimiter is a {mark}, and that cells which "
                f"hold one are in quotation marks."
            )
    return FileError(
        f"{name!r} cannot be read as text with the delimiter {delimiter!r}. Check that cells which "
        f"hold quotation marks have them doubled."
    )


def _numbered(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str] | None]]:
    """Give each row with the line it begins in; none for one with a cell past all measure."""
    reader = csv.reader(lines, delimiter=delimiter)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error:
        yield line, None


def _open_quote(name: str, line: int) -> FileError:
    """Say that a quotation mark is not closed."""
    return FileError(
        f"{name!r}, line {line}: a quotation mark is opened that is not closed. Close it, or "
        f"double it if it is part of the text."
    )


class TooLongError(Exception):
    """A cell may be longer than the pieces: they must be read again in larger ones."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text in UTF-8: where it is, what its columns are called, where its records begin."""

    path: Path
    called: str
    names: tuple[str, ...]
    delimiter: str
    start: int

    def _has_records(self) -> bool:
        """Whether anything but blank lines follows the header."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            return any(block.strip(b"\r\n") for block in _blocks(file))

    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Any]:
        """Yield Arrow's batches of the chosen columns, each of about so many bytes of text.

        Raises
        ------
        TooLongError
            If it does not parse, which it may do in larger pieces.
        """
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        if not self._has_records():
            return
        places = {column: str(place) for place, column in enumerate(self.names)}
        wanted = [places[column] for column in chosen]
        # Texts are numbered as they are parsed: most columns have few different ones.
        kind = pa.dictionary(pa.int32(), pa.string())
        block = min(size, _LARGEST)
        options = _options(self.names, self.delimiter, wanted, kind, block)
        with self.path.open("rb") as file:
            file.seek(self.start)
            try:
                yield from arrow_csv.open_csv(file, **options)
            except pa.ArrowInvalid:
                if block < min(self.path.stat().st_size, _LONGEST):
                    raise TooLongError from None
                raise self._fault() from None

    def check_quotes(self) -> None:
        """Say so if a quotation mark is not closed, which parsers take as one long cell."""
        with self.path.open("rb") as file, self._lines() as lines:
            _check_quotes(_blocks(file), lambda: lines, self.delimiter, self.called)

    def _lines(self) -> io.TextIOWrapper:
        return self.path.open(encoding="utf-8-sig", newline="")

    def _fault(self) -> FileError:
        """Return what is wrong with a text that does not parse."""
        try:
            self.check_quotes()
            with self._lines() as lines:
                return _malformed(lines, self.delimiter, len(self.names), self.called)
        except UnicodeDecodeError:
            return _undecoded(self.path, self.called)
        except FileError as error:
            return error


def open_text(
    path: Path, copy: Callable[[], Path], *, encoding: str | None, delimiter: str | None
) -> TextFile:
    """Open a text; one that is packed or not in UTF-8 is first copied as plain UTF-8."""
    used, mark = _encoding(b"".join(_unpacked(path, 8)), encoding)
    plain, skipped = path, len(mark)
    if path.suffix.lower() == ".gz" or used != "utf-8":
        plain, skipped = copy(), 0
        _recode(path, plain, used, len(mark))
    head = _head(plain, skipped, path.name)
    try:
        layout = _layout(head, delimiter, path.name)
    except UnicodeDecodeError:
        raise _undecoded(plain, path.name) from None
    names, start = tuple(layout.names), layout.start + skipped
    return TextFile(plain, path.name, names, layout.delimiter, start)


def _head(path: Path, skipped: int, name: str) -> bytes:
    """Return the beginning of a text, whole lines, once all of it is seen to be text."""
    with path.open("rb") as file:
        file.seek(skipped)
        head = file.read(_AT_ONCE)
        line = 1
        for rest in _bounded(path, chain([head], _blocks(file))):
            place = rest.find(b"\0")
            if place >= 0:
                line += rest.count(b"\n", 0, place)
                _refuse_binary(b"\n" * (line - 1) + b"\0", name)
            line += rest.count(b"\n")
    if not head.strip():
        raise _empty(name)
    cut = head.rfind(b"\n") + 1
    return head[:cut] if len(head) == _AT_ONCE and cut else head


def _recode(path: Path, target: Path, encoding: str, skipped: int) -> None:
    """Copy a text as plain UTF-8, a block at a time."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 0
    with target.open("xb") as out:
        for block in chain(_unpacked(path), [b""]):
            block, skipped = block[skipped:], max(0, skipped - len(block))
            try:
                out.write(decoder.decode(block, final=not block).encode())
            except UnicodeError as error:
                lines += block.count(b"\n", 0, getattr(error, "start", 0))
                raise _not_in(encoding, path.name, lines + 1) from None
            lines += block.count(b"\n")


def _undecoded(path: Path, name: str) -> FileError:
    """Return which line of a file is not UTF-8."""
    decoder, lines = codecs.getincrementaldecoder("utf-8")(), 0
    with path.open("rb") as file:
        for block in chain(_blocks(file), [b""]):
            try:
                decoder.decode(block, final=not block)
            except UnicodeError as error:
                place = getattr(error, "start", 0)
                return _not_in("utf-8", name, lines + block.count(b"\n", 0, place) + 1)
            lines += block.count(b"\n")
    return _not_in("utf-8", name, lines)
