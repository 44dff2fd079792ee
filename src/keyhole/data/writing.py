"""Saving of microdata to files."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl

from keyhole.core.files import require_room, write_whole
from keyhole.data.columns import Variable, require_calendar, require_flat
from keyhole.data.excel import write_excel
from keyhole.data.formats import require_written_format, suffix_of
from keyhole.data.frames import write_arrow, write_parquet
from keyhole.data.inference import fits_text, render_floats
from keyhole.data.microdata import Microdata
from keyhole.data.statistical import write_spss, write_stata, write_transport
from keyhole.data.text import DELIMITERS
from keyhole.errors import ColumnError, FileError, KeyholeError

_FAILURES = (Exception, pl.exceptions.PanicException)


def save(
    data: Microdata, path: str | os.PathLike[str], *, force: bool = False, private: bool = False
) -> Path:
    """Write microdata to a file; the extension says the format.

    A `private` file can be read by its owner alone.

    ================  ============================================================
    text              the cells as they were read, with the same delimiter, encoding,
                      line ends and mark where the extension is the same. A cell that
                      begins with ``=``, ``+``, ``-`` or ``@`` is written as it is,
                      because it is data: open such a file as text in a spreadsheet.
    Parquet, Arrow    types; labels and missing codes as notes that `load` reads back
    SPSS              labels, value labels, missing codes and ranges, formats, measurement
    Stata             labels, value labels, formats, extended missing values (``.a``)
    SAS transport     labels and formats
    Excel             numbers, dates and text; text never becomes a formula
    ================  ============================================================
    """
    target = Path(path)
    name = require_written_format(target)
    require_calendar(data.frame)  # a step may have put in what no file can be read back from
    with write_whole(target, force=force, private=private) as temporary:
        try:
            _WRITERS[name](data, temporary)
        except (KeyholeError, OSError):
            raise
        except _FAILURES as error:  # what a library says of a value would show it
            require_room(temporary)
            raise FileError(
                f"{target.name!r} cannot be written as {name} data ({type(error).__name__}): a "
                f"column has values the format does not hold. Write .parquet or .csv instead."
            ) from None
    return target


def _write_text(data: Microdata, path: Path) -> None:
    suffix, origin = suffix_of(path), data.origin
    same = suffix.removesuffix(".gz") == origin.suffix.removesuffix(".gz")
    usual = "," if suffix.startswith(".csv") else "\t"
    problems: list[str] = []
    for series in data.frame:
        try:
            require_flat(series)
        except ColumnError as error:
            problems += error.problems
    if problems:
        raise ColumnError(problems)
    text = pl.DataFrame({v.name: _text(data.frame[v.name], v) for v in data.variables})
    if text.width == 1:
        text = text.fill_null("")  # else a missing value would be a blank line, and no record
    # Names that hold another delimiter go in quotes, so that it is not taken for the file's.
    doubtful = any(mark in name for name in text.columns for mark in DELIMITERS)
    written = text.write_csv(
        separator=origin.delimiter if same else usual,
        line_terminator=origin.line_ending if same else "\n",
        quote_style="always" if doubtful else "necessary",
    )
    encoding, mark = (origin.encoding, origin.bom) if same else ("utf-8", False)
    try:
        content = (("\N{BYTE ORDER MARK}" if mark else "") + written).encode(encoding)
    except UnicodeEncodeError:
        raise FileError(
            f"the data holds text that the file's encoding {encoding!r} cannot write. Load it "
            f"with encoding='utf-8', or write another format."
        ) from None
    if not suffix.endswith(".gz"):
        path.write_bytes(content)
        return
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write(content)


def _text(series: pl.Series, variable: Variable) -> pl.Series:
    """Write a column as text, as it was read."""
    dtype = series.dtype
    if dtype.is_float():
        places = variable.decimals
        if places is not None and not fits_text(series, places):
            places = None  # a step made finer values: they are not cut
        return render_floats(series, decimals=places, trimmed=variable.trimmed)
    if dtype == pl.Binary:
        return series.bin.encode("hex")
    if dtype == pl.Datetime:
        fraction = "%.f" if (series.dt.microsecond() != 0).any() else ""
        return series.dt.to_string(f"%Y-%m-%dT%H:%M:%S{fraction}")
    if dtype == pl.Duration:
        return series.dt.to_string("iso")
    return series.cast(pl.String)


_WRITERS: dict[str, Callable[[Microdata, Path], None]] = {
    "text": _write_text,
    "Parquet": write_parquet,
    "Arrow": write_arrow,
    "SPSS": write_spss,
    "Stata": write_stata,
    "SAS transport": write_transport,
    "Excel": write_excel,
}
