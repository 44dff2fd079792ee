"""Delimited text files (CSV, TSV): read whole or in pieces, and what is wrong with them."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import polars as pl

from keyhole.core.options import Problem
from keyhole.data.columns import Column, Numbered
from keyhole.data.formats import suffix_of
from keyhole.data.microdata import Origin
from keyhole.errors import FileError, OptionError

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_BLOCK = 1 << 21
_AT_ONCE = 1 << 22
_LARGEST = (1 << 31) - 1
_GLANCE, _SAMPLE = 50, 500
# A shorter text is parsed and typed before what repeats is known. Of so many columns the numbers of
# texts are held at once.
_SHORT, _MOST_NUMBERED = 1 << 20, 512
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


def read_text(
    path: Path, choose: Choose, *, encoding: str | None = None, delimiter: str | None = None
) -> tuple[dict[str, Column], Origin]:
    """Read the columns of a text that `choose`, given all names, returns; empty cells are null.

    A byte order mark tells the encoding; else it is UTF-8 unless `encoding` says another. The
    delimiter is the one that gives the first records as many cells as the header.
    """
    if _is_packed(path) or path.stat().st_size <= _LONGEST:
        data = b"".join(_unpacked(path))
    else:
        for _ in _unpacked(path):  # to see that it has lines, before there is memory taken for it
            pass
        data = path.read_bytes()
    used, mark = text_encoding(data, encoding)
    data = data[len(mark) :] if mark else data
    if used != "utf-8":  # Parsing checks UTF-8 as it goes; to check it here takes as long again.
        data = "".join(decoded_blocks([data], used, path.name)).encode()
    if _is_blank(data, None):
        raise _empty(path.name)
    _refuse_binary([data], path.name)
    file = _laid_out(data, data, 0, delimiter, path.name)
    columns = file.read(choose(file.names))
    file.check_quotes()
    origin = Origin(
        suffix=suffix_of(path),
        delimiter=file.delimiter,
        encoding=used,
        line_ending=file.line_ending,
        bom=bool(mark),
    )
    return columns, origin


def open_text(
    path: Path, copy: Callable[[], Path], *, encoding: str | None, delimiter: str | None
) -> TextFile:
    """Open a text; one that is packed or not in UTF-8 is first copied as plain UTF-8."""
    used, mark = text_encoding(b"".join(_unpacked(path, 8)), encoding)
    plain, skipped = path, len(mark)
    if _is_packed(path) or used != "utf-8":
        plain, skipped, blocks = copy(), 0, _unpacked(path)
        with plain.open("xb") as out:
            rest = chain([next(blocks, b"")[len(mark) :]], blocks)
            out.writelines(text.encode() for text in decoded_blocks(rest, used, path.name))
    with plain.open("rb") as file:
        file.seek(skipped)
        head = file.read(_AT_ONCE)
        _refuse_binary(_bounded(plain, chain([head], _blocks(file))), path.name)
    if not head.strip():
        raise _empty(path.name)
    cut = head.rfind(b"\n") + 1
    head = head[:cut] if len(head) == _AT_ONCE and cut else head
    return _laid_out(plain, head, skipped, delimiter, path.name)


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _unpacked(path: Path, most: int = -1) -> Iterator[bytes]:
    """Give the bytes of a file in blocks, unpacked; or its first ones only."""
    try:
        with gzip.open(path) if _is_packed(path) else path.open("rb") as file:
            if most >= 0:
                yield file.read(most)
            else:
                yield from _bounded(path, _blocks(file))
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise FileError(
            f"{path.name!r} cannot be unpacked: it is not a complete gzip file. Copy it again, or "
            f"remove '.gz' from its name if it is not compressed."
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
                f"{path.name!r} has a line of more than {_LONGEST >> 20} MB, so it is not a table "
                f"of records. Save it again with one record per line."
            )
        if read > most:
            raise FileError(
                f"{path.name!r} unpacks to more than {_PACKED} times its size, which files of "
                f"records do not. If this is intended, unpack it first and give the unpacked file."
            )
        yield block


def _blocks(file: Any) -> Iterator[bytes]:
    return iter(lambda: file.read(_AT_ONCE), b"")


def text_encoding(beginning: bytes, encoding: str | None) -> tuple[str, bytes]:
    """Return the encoding of a text and the byte order mark it begins with, if any."""
    encoding = encoding or "utf-8"
    try:
        used = codecs.lookup(encoding).name
        if used in _NO_ENCODINGS:
            raise LookupError
        "".encode(encoding)
    except (LookupError, TypeError, ValueError):
        raise OptionError(
            f"encoding must be one that Python knows for text files, like 'utf-8' or 'cp1252'. "
            f"Got {encoding!r} instead."
        ) from None
    used = "utf-8" if used == "utf-8-sig" else used  # a mark is seen for itself
    return next(((of, mark) for mark, of in _MARKS if beginning.startswith(mark)), (used, b""))


def _is_blank(data: bytes | memoryview, blanks: bytes | None) -> bool:
    """Whether there is nothing but blanks; a long text is not copied to find out."""
    return not bytes(data[:4096]).strip(blanks) and not bytes(data).strip(blanks)


def _empty(name: str) -> FileError:
    return FileError(f"{name!r} is empty. Give a file with a header and records.")


def decoded_blocks(blocks: Iterable[bytes], encoding: str, name: str) -> Iterator[str]:
    """Decode a text a block at a time, or say which line cannot be."""
    decoder, lines = codecs.getincrementaldecoder(encoding)(), 1
    for block in chain(blocks, [b""]):
        try:
            yield decoder.decode(block, final=not block)
        except UnicodeError as error:
            lines += block.count(b"\n", 0, getattr(error, "start", 0))
            template = (
                "{0!r} is not in the encoding {1!r}: line {2} cannot be decoded. Say which it is "
                "in ({encoding} cp1252 for most files of Western Windows programs)."
            )
            raise FileError(Problem(template, name, encoding, lines)) from None
        lines += block.count(b"\n")


def _refuse_binary(blocks: Iterable[bytes], name: str) -> None:
    line, before = 1, b""
    for block in blocks:
        line += before.count(b"\n")
        place = block.find(b"\0")
        if place >= 0:
            template = (
                "{0!r} holds zero bytes (the first in line {1}), so it is not plain text. If it is "
                "UTF-16 say so ({encoding} utf-16-le); otherwise save it again."
            )
            raise FileError(Problem(template, name, line + block.count(b"\n", 0, place)))
        before = block


def _laid_out(
    content: Path | bytes, head: bytes, skipped: int, delimiter: str | None, name: str
) -> TextFile:
    """Find the delimiter and the names of a text at its head, which begins after `skipped`."""
    one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if delimiter is not None and (not one or delimiter in '\0\r\n"'):
        raise OptionError(
            f"delimiter must be one ASCII character other than a line end or a quotation mark. Got "
            f"{delimiter!r} instead."
        )
    read: list[str] = []

    def lines() -> Iterator[str]:
        for line in _text_lines(head):
            read.append(line)
            yield line

    found: list[str] = []
    try:
        # Detected is the delimiter that gives the first records as many cells as the header.
        used = delimiter or max(DELIMITERS, key=lambda mark: _agreement(head, mark))
        names = next(filter(None, csv.reader(lines(), delimiter=used)), [])
        if delimiter is not None and len(names) == 1:
            found = [name for mark, name in DELIMITERS.items() if _agreement(head, mark)[0]]
    except csv.Error:
        raise FileError(
            f"{name!r} cannot be read as text with the delimiter {used!r}: a cell is too long. "
            f"Check that every quotation mark is closed."
        ) from None
    except UnicodeDecodeError:
        raise _undecoded(content, name) from None
    if found:
        raise FileError(
            f"{name!r} has one column when read with the delimiter {delimiter!r}, but several with "
            f"a {found[0]}. Give the delimiter that the file uses, or leave it out to have it "
            f"detected."
        )
    last = read[-1] if read else ""
    ending = "\r\n" if last.endswith("\r\n") else "\r" if last.endswith("\r") else "\n"
    start = skipped + sum(len(line.encode()) for line in read)
    return TextFile(content, name, tuple(names), used, start, ending)


def _opened(content: Path | bytes) -> BinaryIO:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


def _text_lines(content: Path | bytes) -> io.TextIOWrapper:
    mark = "" if isinstance(content, bytes) else "-sig"  # which is cut off already here
    return io.TextIOWrapper(_opened(content), f"utf-8{mark}", newline="")


def _agreement(data: bytes, mark: str) -> tuple[bool, int]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell too long for a glance
        rows.extend(filter(None, islice(csv.reader(_text_lines(data), delimiter=mark), _GLANCE)))
    widths = Counter(map(len, rows))
    width = len(rows[0]) if rows else 1
    return width > 1 and 2 * widths[width] > len(rows), width


def _undecoded(content: Path | bytes, name: str) -> FileError:
    """Return which line of a text is not UTF-8."""
    try:
        with _opened(content) as file:
            for _ in decoded_blocks(_blocks(file), "utf-8", name):
                pass
    except FileError as error:
        return error
    raise AssertionError("a text that is UTF-8 was not decoded")


def _wait_for_release(body: memoryview) -> None:
    """Wait until Arrow lets go of a text it cannot read: a thread that holds it aborts at exit."""
    for _ in range(1000):
        with suppress(BufferError):
            body.release()
            break
        time.sleep(0.001)


class TooLongError(Exception):
    """A cell may be longer than the pieces: they must be read again in larger ones."""


@dataclass(frozen=True, slots=True, repr=False)
class TextFile:
    """A text in UTF-8, here or in a file: what its columns are called, where its records begin."""

    content: Path | bytes
    called: str
    names: tuple[str, ...]
    delimiter: str
    start: int
    line_ending: str

    def read(self, chosen: list[str]) -> dict[str, Column]:
        """Read the chosen columns of a text that is here."""
        import pyarrow as pa  # type: ignore[import-untyped]
        from pyarrow import csv as arrow_csv

        assert isinstance(self.content, bytes)
        body = memoryview(self.content)[self.start :]
        if _is_blank(body, b"\r\n"):
            return {name: pl.Series(name, dtype=pl.String) for name in chosen}
        columns: dict[str, Column] = {}
        if len(body) > _SHORT:
            columns |= self._numbered(chosen)
        rest = [name for name in chosen if name not in columns]
        if not rest:
            return columns
        table = None
        # At last in one block, for a file with cells longer than a block.
        for block in (_BLOCK, min(len(body) + 1, _LARGEST)):
            with suppress(pa.ArrowInvalid):
                options = self._options(rest, pa.large_string(), block)
                table = arrow_csv.read_csv(pa.py_buffer(body), **options)
                break
        if table is None:
            _wait_for_release(body)
            raise self._fault()
        for name, column in zip(rest, table.columns, strict=True):
            # Typed columns are made contiguous later; to do it to their text first is for nothing.
            columns[name] = cast("pl.Series", pl.from_arrow(column, rechunk=False))
        return {name: columns[name] for name in chosen}

    def _numbered(self, chosen: Sequence[str]) -> dict[str, Numbered]:
        """Return columns of few texts by number; none if the text is odd."""
        from keyhole.kernels.texts import MOST_TEXTS, number_texts

        assert isinstance(self.content, bytes)
        content, repeated = self.content, self._repeated()
        text = np.frombuffer(content, np.uint8)
        few = [name for name in chosen if name in repeated][:_MOST_NUMBERED]
        wanted = {name: place for place, name in enumerate(few)}
        places = np.array([wanted.get(name, -1) for name in self.names], dtype=np.int64)

        def number(cut: tuple[int, int]) -> tuple[list[list[str | None] | None], Any]:
            numbers = np.empty((len(wanted), (cut[1] - cut[0] + 1) // len(places) + 1), np.uint32)
            firsts, lengths = np.empty((2, len(wanted), MOST_TEXTS), dtype=np.int64)
            found = np.zeros(len(wanted), dtype=np.int64)
            told = (places, numbers, firsts, lengths, found)
            records = number_texts(text, *cut, ord(self.delimiter), *told)
            texts: list[list[str | None] | None] = [None] * len(wanted)
            for place, count in enumerate(found.tolist()):
                if records >= 0 and count >= 0:
                    own = zip(firsts[place, :count], lengths[place, :count], strict=True)
                    with suppress(UnicodeDecodeError):  # said when it is read again
                        texts[place] = [content[at : at + n].decode() or None for at, n in own]
            return texts, numbers[:, : max(records, 0)]

        with ThreadPoolExecutor() as pool:
            parts = list(pool.map(number, itertools.pairwise(self._cuts())))
        columns = {}
        for name, place in wanted.items():
            shares = [(own, n[place]) for texts, n in parts if (own := texts[place]) is not None]
            if len(shares) == len(parts):
                columns[name] = Numbered.of_texts(shares)
        return columns

    def _cuts(self) -> list[int]:
        """Cut a text that is here between records, into a part for each core."""
        assert isinstance(self.content, bytes)
        text, at, cuts, is_open = self.content, self.start, [self.start], 0
        quoted = text.find(b'"', at) >= 0
        for goal in np.linspace(at, len(text), (os.cpu_count() or 1) + 1, dtype=int).tolist()[1:-1]:
            while at < len(text) and (at < goal or is_open):  # a line may end inside of a cell
                end = text.find(b"\n", max(at, goal)) + 1 or len(text)
                is_open ^= quoted and text.count(b'"', at, end) % 2
                at = end
            cuts.append(at)
        return [*cuts, len(text)]

    def _repeated(self) -> set[str]:
        """Return the columns of which a text stands for ten records or more, among the first."""
        rows = [row for _, row in islice(self._rows(), 1, 1 + _SAMPLE) if row]
        columns = zip(self.names, zip(*rows, strict=False), strict=False)
        return {name for name, texts in columns if 10 * len(set(texts)) <= len(rows)}

    def batches(self, chosen: Sequence[str], size: int) -> Iterator[Any]:
        """Yield Arrow's batches of the chosen columns of a file, each of about so many bytes."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        assert isinstance(self.content, Path)
        with self.content.open("rb") as file:
            file.seek(self.start)
            if not any(block.strip(b"\r\n") for block in _blocks(file)):
                return
            file.seek(self.start)
            # Texts are numbered as they are parsed: most columns have few different ones.
            kind, block = pa.dictionary(pa.int32(), pa.string()), min(size, _LARGEST)
            try:
                yield from arrow_csv.open_csv(file, **self._options(chosen, kind, block))
            except pa.ArrowInvalid:
                if block < min(self.content.stat().st_size, _LONGEST):
                    raise TooLongError from None
                raise self._fault() from None

    def _options(self, chosen: Sequence[str], kind: Any, block: int) -> dict[str, Any]:
        """Return how PyArrow is to parse: every chosen column as text, empty cells as null."""
        from pyarrow import csv as arrow_csv

        places = {column: str(place) for place, column in enumerate(self.names)}
        wanted = [places[column] for column in chosen]
        return {
            "read_options": arrow_csv.ReadOptions(
                column_names=list(map(str, range(len(self.names)))), block_size=block
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, kind),
                include_columns=wanted,
                null_values=[""],
                strings_can_be_null=True,
            ),
        }

    def check_quotes(self) -> None:
        """Refuse a text with an open quotation mark: parsers take the rest as one cell."""
        if isinstance(self.content, bytes) and self.content.find(b'"', self.start) < 0:
            return
        with _opened(self.content) as file:
            if sum(block.count(b'"') for block in _blocks(file)) % 2 == 0:
                return
        # A line of our own at the end stays apart from the rest only if no quotation mark is open.
        line, row = 1, None
        for line, row in self._rows("\r\n", _OURS):  # noqa: B007
            pass
        if row != [_OURS]:
            raise self._open_quote(line)

    def _rows(self, *more: str) -> Iterator[tuple[int, list[str] | None]]:
        """Give each row with the line it begins in; none for one with a cell past all measure."""
        line = 1
        with _text_lines(self.content) as lines:
            reader = csv.reader(chain(lines, more), delimiter=self.delimiter)
            try:
                for row in reader:
                    yield line, row
                    line = reader.line_num + 1
            except csv.Error:  # what it says of a cell would show it
                yield line, None
            except UnicodeDecodeError:
                raise _undecoded(self.content, self.called) from None

    def _open_quote(self, line: int) -> FileError:
        return FileError(
            f"{self.called!r}, line {line}: a quotation mark is opened that is not closed. Close "
            f"it, or double it if it is part of the text."
        )

    def _fault(self) -> FileError:
        """Return which row does not have as many cells as the header, or which quote is open."""
        try:
            self.check_quotes()
            for line, row in self._rows():
                if row is None:
                    return self._open_quote(line)
                if row and len(row) != len(self.names):
                    mark = DELIMITERS.get(self.delimiter, repr(self.delimiter))
                    return FileError(
                        f"{self.called!r}, line {line}: must have {len(self.names)} cells, as the "
                        f"header has. Got {len(row)} instead. Check that the delimiter is a "
                        f"{mark}, and that cells which hold one are in quotation marks."
                    )
        except FileError as error:
            return error
        return FileError(
            f"{self.called!r} cannot be read as text with the delimiter {self.delimiter!r}. Check "
            f"that cells which hold quotation marks have them doubled."
        )
