"""Open what forms come in: text, JSON, XML, and sheets as rows of text cells."""

from __future__ import annotations

import codecs
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhole.data.codebook import delimited_cells, parse_xml
from keyhole.data.guarding import ask_reader
from keyhole.environment.exchange import parse_json
from keyhole.errors import FileError

WORKBOOKS = (".xlsx", ".xls")
MOST_BYTES = 256 << 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before that of UTF-16, which it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of a table: its number in the file, and its cells by column name."""

    number: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")


def open_bytes(path: Path) -> bytes:
    """Read a file of reasonable size, or say why it cannot be."""
    try:
        if not path.is_file():
            what = "a folder" if path.is_dir() else "nothing"
            raise FileError(f"{str(path)!r} must be a file. Got {what} instead. Check the path.")
        if path.stat().st_size > MOST_BYTES:
            raise FileError(
                f"{path.name!r} must be of {MOST_BYTES >> 20} megabytes at most. Give a form, a "
                f"codebook or a list of labels, not data."
            )
        content = path.read_bytes()
    except (OSError, ValueError):
        raise FileError(f"{str(path)!r} cannot be read. Check the path and its access.") from None
    if not content.strip():
        raise FileError(f"{path.name!r} is empty. Give a file that describes a form.")
    return content


def decoded_text(path: Path, encoding: str | None = None) -> str:
    """Read a text file; a byte order mark tells its encoding, else it is UTF-8 or as said."""
    content = open_bytes(path)
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    used = marked or encoding or "utf-8"
    try:
        text = content.decode(used)
    except LookupError:
        wanted = "encoding must be one that Python knows, like 'utf-8' or 'cp1252'."
        raise FileError(f"{wanted} Got {used!r} instead.") from None
    except (UnicodeError, ValueError):
        raise FileError(
            f"{path.name!r} cannot be decoded as {used}. Say which encoding it is in "
            f"('cp1252' for most files of Western Windows programs)."
        ) from None
    if "\0" in text:
        raise FileError(f"{path.name!r} holds NUL characters: it is not text. Export it anew.")
    return text


def open_json(path: Path, encoding: str | None = None) -> Any:
    """Read JSON; what is no JSON, or nested without end, is refused with the place."""
    return parse_json(decoded_text(path, encoding), path.name)


def open_xml(path: Path) -> Any:
    """Read XML without entities of its own making and without anything from elsewhere."""
    return parse_xml(open_bytes(path), repr(path.name))


def read_cells(path: Path, encoding: str | None = None) -> list[list[str]]:
    """Read a CSV file, or the first sheet of a workbook, as rows of cells."""
    if path.suffix.lower() in WORKBOOKS:
        return next(iter(_workbook(path).values()))
    return [*delimited_cells(decoded_text(path, encoding), repr(path.name))]


def read_sheet(path: Path, encoding: str | None = None) -> list[SheetRow]:
    """Read a CSV file or a first sheet as rows of trimmed text; columns in lower case."""
    return named_rows(read_cells(path, encoding), path.name)


def sheets(path: Path) -> dict[str, list[SheetRow]]:
    """Read all sheets of a workbook as rows, by name in lower case."""
    found = _workbook(path).items()
    return {name.strip().lower(): named_rows(rows, f"{path.name} ({name})") for name, rows in found}


def _workbook(path: Path) -> dict[str, list[list[str]]]:
    try:
        with zipfile.ZipFile(io.BytesIO(open_bytes(path))) as packed:
            size = sum(one.file_size for one in packed.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        size = 0  # the reader says what is wrong with it
    if size > 2 * MOST_BYTES:
        raise FileError(
            f"{path.name!r} unpacks to more than {2 * MOST_BYTES >> 20} MB. Give a form, not data."
        )
    found: dict[str, list[list[str]]] = json.loads(
        ask_reader(f"{__name__}:answer_sheets", path, "Excel", {})
    )
    return found


def answer_sheets(given: Mapping[str, Any]) -> bytes:
    """Read all cells of a workbook, in the process of its own."""
    import fastexcel

    path = Path(given["path"])
    try:
        book = fastexcel.read_excel(path)
        frames = {
            name: book.load_sheet(name, header_row=None, dtypes="string", skip_rows=0).to_polars()
            for name in book.sheet_names
        }
    except fastexcel.FastExcelError:
        raise FileError(
            f"{path.name!r} cannot be read as an Excel workbook: it is broken, locked by a "
            f"password or not whole. Save it anew as .xlsx."
        ) from None
    found = {
        name: [[cell or "" for cell in row] for row in frame.iter_rows()]
        for name, frame in frames.items()
    }
    return json.dumps(found).encode()


def named_rows(rows: Iterable[Sequence[str]], where: str) -> list[SheetRow]:
    """Return rows by the names that the first has, but for those that are blank."""
    header: list[str] | None = None
    named: list[SheetRow] = []
    problems: list[str] = []
    for number, cells in enumerate(rows, 1):
        trimmed = [cell.strip() for cell in cells]
        if not any(trimmed):
            continue
        if header is None:
            header = [cell.lower() for cell in trimmed]
            continue
        if any(trimmed[len(header) :]):
            problems.append(f"{where!r}, row {number}, has more cells than the header.")
        named.append(SheetRow(number, dict(zip(header, trimmed, strict=False))))
    if problems:
        raise FileError(problems[:20])
    if header is not None and len(set(header) - {""}) < sum(map(bool, header)):
        raise FileError(f"{where!r} has columns of the same name. Rename or delete one.")
    return named


def require_headings(rows: Sequence[SheetRow], wanted: Sequence[str], where: str) -> None:
    """Name the columns that are not there."""
    if not rows:
        raise FileError(f"{where!r} has no rows under a header. Give a file that describes a form.")
    absent = [column for column in wanted if column not in rows[0].cells]
    if absent:
        raise FileError(
            f"{where!r} must have the columns {', '.join(wanted)}. "
            f"Got none of the name {', '.join(absent)} instead."
        )
