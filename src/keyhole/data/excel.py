"""Excel workbooks: the first sheet, or one by name."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from keyhole.core.extras import require_extra
from keyhole.core.names import quoted
from keyhole.data.describing import Request
from keyhole.data.inference import without_decimals
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, FileError, OptionError

_ROWS, _COLUMNS, _LENGTH = 1_048_576, 16_384, 32_767
_EXACT = 1 << 53
_LARGEST = 1.79769313486231e308  # of 16 digits, which is what is written


def read_excel(path: Path, request: Request, sheet: str | None = None) -> pl.DataFrame:
    """Read the wanted columns of a sheet; the first row that is not blank has the names."""
    with open_workbook(path) as book:
        if sheet is not None and sheet not in book.sheet_names:
            names = quoted(book.sheet_names)
            raise OptionError(
                f"sheet must be one of {names} in {path.name!r}. Got {sheet!r} instead."
            )
        return _read_sheet(book, sheet or 0, request, path.name)


@contextmanager
def open_workbook(path: Path) -> Iterator[Any]:
    """Give a workbook to be read, or say why it cannot be."""
    require_extra("excel")
    import fastexcel

    try:
        with _quiet():
            yield fastexcel.read_excel(path)
    except fastexcel.FastExcelError:
        raise FileError(
            f"{path.name!r} cannot be read as an Excel workbook: it is damaged, incomplete or "
            f"locked by a password. Save it again as .xlsx."
        ) from None


def _read_sheet(book: Any, sheet: str | int, request: Request, name: str) -> pl.DataFrame:
    # The first row that is not blank has the names.
    filled = book.load_sheet(sheet, header_row=None, n_rows=1, dtypes="string")
    top = filled.to_polars()
    if top.is_empty():
        raise FileError(f"{name!r} has an empty sheet. Give a sheet with a header and records.")
    # Only when no rows are to be skipped does the reader count those that are blank on top.
    whole = book.load_sheet(sheet, header_row=None, skip_rows=0, n_rows=1, dtypes="string")
    start = whole.total_height - filled.total_height + 1
    # A heading may be broken over lines to fit its column.
    names = [" ".join((cell or "").splitlines()) for cell in top.row(0)]
    chosen = request.choose(names, repr(name))
    places = [str(place) for place in range(len(names))]
    body: pl.DataFrame = book.load_sheet(
        sheet, header_row=None, skip_rows=start, column_names=places, schema_sample_rows=None
    ).to_polars()
    records = body.filter(~pl.all_horizontal(pl.all().is_null()))
    return pl.DataFrame({one: _typed(records[str(names.index(one))]) for one in chosen})


def _typed(series: pl.Series) -> pl.Series:
    """Type what Excel does not tell apart: whole numbers and others, days and times of a day."""
    if series.dtype == pl.Float64:
        return without_decimals(series)
    if series.dtype == pl.Datetime:
        day = series.cast(pl.Date)
        return day if (day.cast(series.dtype) == series).all() else series.cast(pl.Datetime("us"))
    return series


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the reader's log of guessed types off the user's screen."""
    logs = [logging.getLogger(name) for name in ("fastexcel", "fastexcel.types.dtype")]
    before = [log.disabled for log in logs]
    for log in logs:
        log.disabled = True
    try:
        yield
    finally:
        for log, disabled in zip(logs, before, strict=True):
            log.disabled = disabled


def write_excel(data: Microdata, path: Path) -> None:
    """Write a workbook of one sheet; text is written as text and never as a formula."""
    require_extra("excel")
    import xlsxwriter  # type: ignore[import-untyped]

    _require_room(data)
    never = ("strings_to_formulas", "strings_to_urls", "strings_to_numbers")
    options = {**dict.fromkeys(never, False), "constant_memory": True}
    content = _Content()
    # Rows wait in files; next to the target, since a run that is killed leaves them behind.
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}-") as folder:
        try:
            with xlsxwriter.Workbook(content, {**options, "tmpdir": folder}) as book:
                book.set_properties({"created": datetime(2000, 1, 1)})  # the same bytes each time
                _fill_sheet(book, data.frame)
        except xlsxwriter.exceptions.FileCreateError as error:
            raise error.args[0] from None  # it holds what the system said
    path.write_bytes(content.getvalue())


class _Content(BytesIO):
    """Bytes that stay open: a workbook that failed still writes its end when it is collected."""

    def close(self) -> None:
        """Stay open."""


def _require_room(data: Microdata) -> None:
    problems = []
    if data.records + 1 > _ROWS or len(data.names) > _COLUMNS:
        problems.append(
            f"an Excel sheet holds {_ROWS - 1:,} records and {_COLUMNS:,} columns at most. Got "
            f"{data.records:,} and {len(data.names):,} instead: write .csv or .parquet."
        )
    for series in data.frame:
        if series.dtype.is_nested() or series.dtype == pl.Object:
            problems.append(f"column {series.name!r} holds lists or objects: leave it out.")
        elif series.dtype.is_float() and (series.abs() > _LARGEST).any():
            problems.append(
                f"column {series.name!r} holds numbers that are too large for Excel, or infinite: "
                f"write .csv or .parquet."
            )
        elif series.dtype == pl.String and (series.str.len_chars().max() or 0) > _LENGTH:  # type: ignore[operator]
            problems.append(
                f"column {series.name!r} has text of more than {_LENGTH:,} characters, which a "
                f"cell of Excel cannot hold: write .csv or .parquet."
            )
    if problems:
        raise ColumnError(problems)


def _fill_sheet(book: Any, frame: pl.DataFrame) -> None:
    sheet = book.add_worksheet()
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    stamp = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    for place, name in enumerate(frame.columns):
        sheet.write_string(0, place, name)
    cells = frame.select(_cell(series) for series in frame)
    writers: list[tuple[Any, ...]] = [
        (sheet.write_boolean,)
        if dtype == pl.Boolean
        else (sheet.write_number,)
        if dtype.is_numeric()
        else (sheet.write_datetime, day if dtype == pl.Date else stamp)
        if dtype in (pl.Date, pl.Datetime)
        else (sheet.write_string,)
        for dtype in cells.dtypes
    ]
    for row, values in enumerate(cells.iter_rows(), 1):
        for place, value in enumerate(values):
            if value is not None and value != "":
                write, *form = writers[place]
                write(row, place, value, *form)


def _cell(series: pl.Series) -> pl.Series:
    """Bring a column to a type that Excel has."""
    dtype = series.dtype
    if dtype.is_integer():
        small = series.cast(pl.Int128).abs().max()
        return series if not isinstance(small, int) or small <= _EXACT else series.cast(pl.String)
    if dtype.is_numeric():
        return series.cast(pl.Float64).fill_nan(None)
    # Excel's calendar begins in 1900.
    if dtype in (pl.Date, pl.Datetime) and not (series.dt.year() < 1900).any():
        return series if dtype == pl.Date else series.dt.replace_time_zone(None)
    if dtype == pl.Binary:
        return series.bin.encode("hex")
    if dtype == pl.Duration:
        return series.dt.to_string("iso")
    return series if dtype == pl.Boolean else series.cast(pl.String)
