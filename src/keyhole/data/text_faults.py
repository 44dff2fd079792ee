"""What is wrong with a delimited text that does not parse, and in which line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain

from keyhole.errors import FileError

__all__ = ["DELIMITERS", "DELIMITER_NAMES", "Lines", "find_open_quote", "malformed", "open_quote"]

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_OURS = "ours"


class Lines:
    r"""The lines of a text in UTF-8, counting the bytes that were read.

    Examples
    --------
    >>> lines = Lines("größe\n1\n".encode())
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


def malformed(data: bytes, delimiter: str, expected: int, name: str) -> FileError:
    """Say which row does not have as many cells as the header, or which quote is not closed."""
    line = find_open_quote(data, delimiter)
    if line is not None:
        return open_quote(name, line)
    for line, row in _numbered(Lines(data), delimiter):
        if row is None:
            return open_quote(name, line)
        if row and len(row) != expected:
            return _ragged(name, line, len(row), expected, delimiter)
    return FileError(
        f"{name!r} cannot be read as text with the delimiter {delimiter!r}. Check that cells which "
        f"hold quotation marks have them doubled."
    )


def find_open_quote(data: bytes, delimiter: str) -> int | None:
    r"""Return the line of a record that never ends, because a quotation mark is not closed.

    Parsers take all that follows as one cell.

    Examples
    --------
    >>> find_open_quote(b'a,b\n1,"x\n2,y\n', ",")
    2
    """
    if data.count(b'"') % 2 == 0:
        return None
    # A line of our own at the end stays apart from the rest only if no quotation mark is open.
    line, row = 1, None
    for line, row in _numbered(chain(Lines(data), ["\r\n", _OURS]), delimiter):  # noqa: B007
        pass
    return None if row == [_OURS] else line


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


def open_quote(name: str, line: int) -> FileError:
    """Say that a quotation mark is not closed."""
    return FileError(
        f"{name!r}, line {line}: a quotation mark is opened that is not closed. Close it, or "
        f"double it if it is part of the text."
    )


def _ragged(name: str, line: int, got: int, expected: int, delimiter: str) -> FileError:
    mark = DELIMITER_NAMES.get(delimiter, repr(delimiter))
    return FileError(
        f"{name!r}, line {line}: must have {expected} cells, as the header has. Got {got} "
        f"instead. Check that the delimiter is a {mark}, and that cells which hold one are in "
        f"quotation marks."
    )
