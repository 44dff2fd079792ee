"""Delimited text of any size, read in pieces by the parser that `read_text` uses."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from keyhole.data import text, text_faults
from keyhole.errors import FileError

__all__ = ["TextFile", "TooLongError", "open_text"]

_HEAD = 1 << 22
_AT_ONCE = 1 << 22
_LARGEST = (1 << 31) - 1


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

    @property
    def has_records(self) -> bool:
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
        import pyarrow as pa  # type: ignore[import-untyped]

        if not self.has_records:
            return
        places = {column: str(place) for place, column in enumerate(self.names)}
        wanted = [places[column] for column in chosen]
        block = min(size, _LARGEST)
        with self.path.open("rb") as file:
            file.seek(self.start)
            try:
                yield from _parsed(file, self, wanted, block)
            except pa.ArrowInvalid:
                if block < min(self.path.stat().st_size, _LARGEST):
                    raise TooLongError from None
                raise self.fault() from None

    def check_quotes(self) -> None:
        """Say so if a quotation mark is not closed, which parsers take as one long cell."""
        line = _find_open_quote(self.path, self.delimiter)
        if line is not None:
            raise text_faults.open_quote(self.called, line)

    def fault(self) -> FileError:
        """Return what is wrong with a text that does not parse."""
        try:
            self.check_quotes()
            with self.path.open(encoding="utf-8-sig", newline="") as lines:
                for line, row in text_faults._numbered(lines, self.delimiter):
                    if row is None:
                        return text_faults.open_quote(self.called, line)
                    if row and len(row) != len(self.names):
                        return text_faults._ragged(
                            self.called, line, len(row), len(self.names), self.delimiter
                        )
        except UnicodeDecodeError:
            return _undecoded(self.path, self.called)
        except FileError as error:
            return error
        return FileError(
            f"{self.called!r} cannot be read as text with the delimiter {self.delimiter!r}. Check "
            f"that cells which hold quotation marks have them doubled."
        )


def _parsed(file: Any, of: TextFile, wanted: list[str], block: int) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # Texts are numbered as they are parsed: most columns have few different ones.
    kind = pa.dictionary(pa.int32(), pa.string())
    yield from arrow_csv.open_csv(
        file,
        read_options=arrow_csv.ReadOptions(
            column_names=[str(place) for place in range(len(of.names))], block_size=block
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=of.delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, kind),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def open_text(
    path: Path, copy: Callable[[], Path], *, encoding: str | None, delimiter: str | None
) -> TextFile:
    """Open a text; one that is packed or not in UTF-8 is first copied as plain UTF-8.

    Parameters
    ----------
    path
        The file.
    copy
        Gives a new place for such a copy.
    encoding, delimiter
        Taken as said, not detected.
    """
    used, mark = _encoding(path, encoding)
    plain, skipped = path, len(mark)
    if path.suffix.lower() == ".gz" or used != "utf-8":
        plain, skipped = copy(), 0
        _recode(path, plain, used, len(mark))
    head = _head(plain, skipped, path.name)
    try:
        layout = text._layout(head, delimiter, path.name)
    except UnicodeDecodeError:
        raise _undecoded(plain, path.name) from None
    names, start = tuple(layout.names), layout.start + skipped
    return TextFile(plain, path.name, names, layout.delimiter, start)


def _head(path: Path, skipped: int, name: str) -> bytes:
    """Return the beginning of a text, whole lines, once all of it is seen to be text."""
    with path.open("rb") as file:
        file.seek(skipped)
        head = file.read(_HEAD)
        line, rest = 1, head
        while rest:
            place = rest.find(b"\0")
            if place >= 0:
                line += rest.count(b"\n", 0, place)
                text._refuse_binary(b"\n" * (line - 1) + b"\0", name)
            line += rest.count(b"\n")
            rest = file.read(_AT_ONCE)
    if not head.strip():
        raise FileError(f"{name!r} is empty. Give a file with a header and records.")
    cut = head.rfind(b"\n") + 1
    return head[:cut] if len(head) == _HEAD and cut else head


def _opened(path: Path) -> Any:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _blocks(file: Any) -> Iterator[bytes]:
    return iter(lambda: file.read(_AT_ONCE), b"")


def _encoding(path: Path, encoding: str | None) -> tuple[str, bytes]:
    """Return the encoding of a text and the mark it begins with, if any."""
    used = text._known_encoding(encoding or "utf-8")
    beginning = b"".join(_unpacked(path, 8))[:8]
    for mark, marked in text._MARKS:
        if beginning.startswith(mark):
            return marked, mark
    return used, b""


def _unpacked(path: Path, most: int | None = None) -> Iterator[bytes]:
    try:
        with _opened(path) as file:
            if most is not None:
                yield file.read(most)
            else:
                yield from _blocks(file)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise FileError(
            f"{path.name!r} cannot be unpacked: it is not a whole gzip file. Copy it again, or "
            f"take off '.gz' if it is not packed."
        ) from None


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
                return _not_in("utf-8", name, lines + block.count(b"\n", 0, _start(error)) + 1)
            lines += block.count(b"\n")
    return _not_in("utf-8", name, lines)


def _start(error: UnicodeError) -> int:
    return int(getattr(error, "start", 0))


def _not_in(encoding: str, name: str, line: int) -> FileError:
    return FileError(
        f"{name!r} is not in the encoding {encoding!r}: line {line} cannot be decoded. Say "
        f"which it is in (--encoding cp1252 for most files of Western Windows programs)."
    )


def _find_open_quote(path: Path, delimiter: str) -> int | None:
    """Return the line of a record that never ends; see `text_faults.find_open_quote`."""
    with path.open("rb") as file:
        if sum(block.count(b'"') for block in _blocks(file)) % 2 == 0:
            return None
    line: int = 1
    row: list[str] | None = None
    with path.open(encoding="utf-8-sig", newline="") as lines:
        ended = chain(lines, ["\r\n", text_faults._OURS])
        for line, row in text_faults._numbered(ended, delimiter):  # noqa: B007
            pass
    return None if row == [text_faults._OURS] else line
