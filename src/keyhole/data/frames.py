"""Frames of Polars, pandas and Arrow, and the Parquet and Arrow files that hold them.

What is known of the columns travels in the metadata of the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.apart import memory_for
from keyhole.data.columns import Column, Numbered, Variable, named
from keyhole.data.describing import Facts, Request
from keyhole.data.microdata import Microdata, Origin
from keyhole.errors import ColumnError, FileError, InputError

_SPELT = ("interval", "period")
_FAILURES = (Exception, pl.exceptions.PanicException)
_KEY = "keyhole"
_VALUE_BYTES, _COPIES, _LONG_CELLS = 8, 4, 1 << 14
_PAGE_HEAD, _LONGEST_PAGE_HEAD = 1 << 9, 1 << 24
# The texts of a shorter file are encoded sooner than their lists are read. Plainly written, a text
# has its length in so many bytes before it.
_LONG_FILE, _LENGTH_BYTES = 1 << 14, 4
_THRIFT = {1: "truth", 2: "truth", 4: "number", 5: "number", 6: "number", 8: "text", 12: "struct"}
_TYPES: tuple[pl.DataType, ...] = (pl.Int64(), pl.Float64(), pl.Date(), pl.Datetime("us"))
_PARSED = {str(dtype.base_type()): dtype for dtype in _TYPES}
_PLAIN_FACTS = ("label", "decimals", "trimmed", "measurement")
_AS_IT_IS: Any = (lambda value: value,) * 2
# How other facts become plain, and are restored.
_FACTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "value_labels": (lambda labels: [list(pair) for pair in labels.items()], dict),
    "missing_codes": (list, tuple),
    "missing_ranges": (list, lambda ranges: tuple((low, high) for low, high in ranges)),
    "parsed": (lambda dtype: str(dtype.base_type()), _PARSED.__getitem__),
}


def read_frame(source: Any, request: Request) -> tuple[pl.DataFrame, Origin]:
    """Take the wanted columns of any frame that narwhals knows, or of a dictionary of columns."""
    library = type(source).__module__.partition(".")[0]
    if isinstance(source, pl.LazyFrame):
        names = source.collect_schema().names()
        frame = source.select(named(request.choose(names, "the frame"))).collect()
        return frame, Origin(native="polars lazy")
    if library == "pandas" and hasattr(source, "columns"):
        return _read_pandas(source, request)
    if library == "pyarrow" and hasattr(source, "schema"):
        chosen = request.choose(source.schema.names, "the frame")
        return from_arrow(source.select(chosen)), Origin(native="pyarrow", types=source.schema)
    if isinstance(source, Mapping):
        columns = {str(name): values for name, values in source.items()}
        chosen = request.choose(list(columns), "the data")
        made = _taken({name: partial(pl.Series, name, columns[name]) for name in chosen})
        return made, Origin(native="polars")
    frame = source
    if not isinstance(source, pl.DataFrame):
        import narwhals as nw

        try:
            known = nw.from_native(source)
        except TypeError:
            raise InputError(
                f"data must be the path of a file or a frame (Polars, pandas, PyArrow). "
                f"Got {type(source).__name__} instead."
            ) from None
        frame = (known.collect() if isinstance(known, nw.LazyFrame) else known).to_polars()
    return frame.select(named(request.choose(frame.columns, "the frame"))), Origin(native="polars")


def _taken(columns: Mapping[str, Callable[[], pl.Series]]) -> pl.DataFrame:
    """Make columns of one length, or say what is wrong with those that cannot be made."""
    series, problems = dict[str, pl.Series](), list[str]()
    for name, make in columns.items():
        try:
            series[name] = make()
        except _FAILURES:  # what a library says of a value it cannot take would show the value
            problems.append(
                f"column {name!r} must hold values of one type. Got mixed types instead: turn them "
                f"into text or into numbers before loading."
            )
    lengths = sorted({len(column) for column in series.values()})
    if len(lengths) > 1:
        problems.append(f"columns must have the same length. Got {lengths} instead.")
    if problems:
        raise ColumnError(problems)
    return pl.DataFrame(series)


def _read_pandas(source: Any, request: Request) -> tuple[pl.DataFrame, Origin]:
    names = [str(name) for name in source.columns]
    chosen = set(request.choose(names, "the frame"))
    places = [place for place, name in enumerate(names) if name in chosen]
    frame = _taken(
        {names[place]: partial(_from_pandas, source, place, names[place]) for place in places}
    )
    types = {names[place]: source.dtypes.iloc[place] for place in places}
    labels = {names[place]: source.columns[place] for place in places}
    return frame, Origin(native="pandas", index=source.index, types=types, labels=labels)


def _from_pandas(source: Any, place: int, name: str) -> pl.Series:
    import narwhals as nw

    pd: Any = sys.modules["pandas"]  # the frame is one of its own
    column = source.iloc[:, place]
    categories = getattr(column.dtype, "categories", None)
    dtype = column.dtype if categories is None else categories.dtype
    if isinstance(dtype, pd.IntervalDtype | pd.PeriodDtype) or (
        column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in _SPELT
    ):  # bands and periods go by their texts: "(0, 5]", "2020-01"
        column = column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
    series: pl.Series = nw.from_native(column, series_only=True).to_polars().alias(name)
    if series.dtype == pl.Object:
        raise TypeError
    return series


def to_native(frame: pl.DataFrame, origin: Origin) -> Any:
    """Give the frame back as the kind that was taken; as Polars if it was a file."""
    if origin.native == "pyarrow":
        return _to_arrow(frame, origin)
    if origin.native != "pandas":
        return frame.lazy() if origin.native == "polars lazy" else frame
    result = _by_place(frame).to_pandas()
    result.columns = frame.columns
    for name, wanted in origin.types.items():
        if name in frame.columns and result[name].dtype != wanted:
            result[name] = _retyped(frame[name], result[name], wanted)
    if origin.index is not None and len(origin.index) == frame.height:
        result.index = origin.index
    result.columns = [origin.labels.get(name, name) for name in frame.columns]
    return result


def _by_place(frame: pl.DataFrame) -> pl.DataFrame:
    """Name columns by their places: no zero byte in a name goes from Polars to others."""
    numbered = frame.clone()
    numbered.columns = [*map(str, range(frame.width))]
    return numbered


def _retyped(series: pl.Series, column: Any, wanted: Any) -> Any:
    """Give a column its pandas type back where its values still fit it."""
    try:
        if str(wanted)[:3].lower() in ("int", "uin") and series.null_count():
            # By way of Python's own numbers: a float in between would round large ones.
            return column.__class__(series.to_list(), dtype=wanted, index=column.index)
        return column.astype(wanted)
    except (TypeError, ValueError):
        return column


def _to_arrow(frame: pl.DataFrame, origin: Origin) -> Any:
    table = _by_place(frame).to_arrow().rename_columns(frame.columns)
    for place, name in enumerate(frame.columns):
        known = origin.types.get_all_field_indices(name)
        if not known or table.schema.field(place).type == origin.types.field(known[0]).type:
            continue
        try:
            column = table.column(place).cast(origin.types.field(known[0]).type)
        except (TypeError, ValueError, NotImplementedError):
            continue
        table = table.set_column(place, name, column)
    return table


def from_arrow(table: Any) -> pl.DataFrame:
    """Turn a table of Arrow into a frame."""
    problems = [
        f"column {field.name!r} is of Arrow's type {str(field.type)!r}, which is not supported: "
        f"leave it out, or turn it into numbers or text."
        for field in table.schema
        if _is_odd(field.type)
    ]
    if problems:  # before the library breaks on them
        raise ColumnError(problems)
    named_by_place = _in_range(table).rename_columns([*map(str, range(table.num_columns))])
    try:
        # Names that are empty, or hold a zero byte, would come over as others.
        frame = pl.DataFrame(named_by_place)
        frame.columns = table.column_names
        return frame
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise ColumnError(
            "the table holds a column of a type that is not supported, or of more than there is "
            "memory for: leave it out, or turn it into numbers, dates or text."
        ) from None


def _is_odd(kind: Any) -> bool:
    """Whether an Arrow type is one that no frame has."""
    from pyarrow import types  # type: ignore[import-untyped]

    return any(test(kind) for test in (types.is_decimal256, types.is_interval, types.is_union))


def _in_range(table: Any) -> Any:
    """Bring times in seconds to milliseconds here, where one that does not fit is noticed."""
    import pyarrow as pa
    from pyarrow import types

    problems = []
    for place, field in enumerate(table.schema):
        stamp = types.is_timestamp(field.type)
        if not (stamp or types.is_duration(field.type)) or field.type.unit != "s":
            continue
        finer = pa.timestamp("ms", field.type.tz) if stamp else pa.duration("ms")
        try:
            table = table.set_column(place, field.name, table.column(place).cast(finer))
        except pa.ArrowInvalid:
            problems.append(
                f"column {field.name!r} holds times that are out of range. Correct them, or leave "
                f"it out."
            )
    if problems:
        raise ColumnError(problems)
    return table


def read_parquet(
    path: Path, request: Request, *, numbered: bool = True
) -> tuple[Mapping[str, Column], Mapping[str, Facts]]:
    """Read the wanted columns of a Parquet file, and what it says of them.

    Columns of few texts come `numbered`, which takes room beside that of the texts themselves.
    """
    broken = (pl.exceptions.PolarsError, OSError, UnicodeError, pl.exceptions.PanicException)
    import pyarrow as pa
    from pyarrow import parquet

    unsound, declared = (pa.ArrowException, OSError, UnicodeError), None
    with suppress(*unsound):
        declared = parquet.read_metadata(path)
    with suppress(*broken):
        schema = pl.read_parquet_schema(path)
        names = list(schema)
        metadata = pl.read_parquet_metadata(path)
        chosen = request.choose(names, repr(path.name))
        require_packed(path, declared, chosen, whole=True)
        # A name may hold stars and brackets: it is this one file that is meant.
        file = pl.scan_parquet(path, glob=False)
        few: dict[str, Numbered] = {}
        with suppress(*unsound):
            texts = [name for name in chosen if numbered and schema[name] == pl.String]
            few = _read_numbered(path, declared, texts)
        rest = file.select(named(n for n in chosen if n not in few)).collect()
        columns = {n: few[n] if n in few else rest[n] for n in chosen}
        return columns, read_facts(metadata)
    with suppress(*unsound):
        # Polars may fail only because of types that it does not have.
        schema = parquet.read_schema(path)
        if any(_is_odd(field.type) for field in schema):
            require_packed(path, declared, schema.names, whole=True)
            frame, facts = _chosen(parquet.ParquetFile(path).read(), request, path)
            return frame.to_dict(), facts
    raise unreadable(path, "Parquet")


def _read_numbered(path: Path, declared: Any, texts: Iterable[str]) -> dict[str, Numbered]:
    """Read the columns of text that a long Parquet file has as places in a list of few texts."""
    if declared is None or declared.num_rows < _LONG_FILE:
        return {}
    from pyarrow import parquet

    groups = [declared.row_group(group) for group in range(declared.num_row_groups)]
    leaves = {declared.schema.column(leaf).path: leaf for leaf in range(declared.num_columns)}
    few = [
        name
        for name in texts
        if name in leaves
        and "." not in name
        and all(_is_numbered(group.column(leaves[name])) for group in groups)
    ]
    if not few:
        return {}
    table = parquet.ParquetFile(path, read_dictionary=few).read(few)
    table.validate(full=True)  # else a changed byte leads outside of a dictionary
    read = ((name, _as_numbered(table.column(name).chunks)) for name in few)
    return {name: column for name, column in read if column is not None}


def _is_numbered(column: Any) -> bool:
    """Whether a column of text takes less than the lengths of its texts would."""
    packed = column.total_uncompressed_size < _LENGTH_BYTES * column.num_values
    return bool(column.has_dictionary_page and packed)


def _as_numbered(chunks: Iterable[Any]) -> Numbered | None:
    """Return pieces of a column, each with a list of its texts, as one; None if a list is odd."""
    shares = []
    for chunk in chunks:
        texts = chunk.dictionary.to_pylist()
        missing = chunk.indices.null_count > 0
        places = chunk.indices.fill_null(len(texts)) if missing else chunk.indices
        places = places.to_numpy()
        counts = np.bincount(places, minlength=len(texts))
        if not counts[: len(texts)].all() or len(set(texts)) < len(texts):
            return None
        shares.append(([*texts, None] if missing else texts, places))
    return Numbered.of_texts(shares)


def require_packed(path: Path, declared: Any, chosen: Iterable[str], *, whole: bool) -> None:
    """Refuse a Parquet file whose columns unpack to much more than those of its size do.

    If they are not read `whole`, only long cells are held several times.
    """
    if declared is None:
        return
    wanted, leaves = set(chosen), range(declared.num_columns)
    paths = [declared.schema.column(leaf).path for leaf in leaves]
    read = [leaf for leaf in leaves if {paths[leaf], paths[leaf].partition(".")[0]} & wanted]
    groups = [declared.row_group(group) for group in range(declared.num_row_groups)]
    try:
        with path.open("rb", buffering=0) as file:
            sizes = [
                (_unpacked_size(file, group.column(leaf)), group.num_rows)
                for group in groups
                for leaf in read
            ]
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        raise unreadable(path, "Parquet") from None
    need = _COPIES * sum(size for size, rows in sizes if whole or size > _LONG_CELLS * rows)
    need = max(need, _VALUE_BYTES * declared.num_rows * len(read)) if whole else need
    memory = memory_for(path)
    if need > memory:
        raise FileError(
            f"{path.name!r} takes more than {memory >> 20:,} MB of memory to read, which is too "
            f"much for a Parquet file of its size. Name fewer columns, or save it again."
        )


def _unpacked_size(file: FileIO, chunk: Any) -> int:
    """Return what a column unpacks to: readers take room by what each page says of itself."""
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    end = at + chunk.total_compressed_size
    size = values = 0
    while at < end:
        file.seek(at)
        head = file.read(_PAGE_HEAD)
        try:
            fields, length = _read_struct(head, 0)
        except IndexError:  # long values among the statistics of the page
            fields, length = _read_struct(head + file.read(_LONGEST_PAGE_HEAD), 0)
        size, at = size + fields[2], at + length + fields[3]
        values += (fields.get(5) or fields.get(8) or {1: 0})[1]
        if fields[2] < 0 or fields[3] < 0 or values > chunk.num_values:
            raise ValueError
    return max(size, int(chunk.total_uncompressed_size))


def _read_struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Read the whole numbers of a struct of Thrift's compact protocol; also returns its end."""
    fields: dict[int, Any] = {}
    field = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        field, at = field + step, at + 1
        if not step or kind not in _THRIFT:
            raise ValueError
        if _THRIFT[kind] == "struct":
            fields[field], at = _read_struct(data, at)
        elif _THRIFT[kind] != "truth":  # which takes no room
            number = shift = 0
            while data[at] > 127:
                number, shift, at = number | (data[at] & 127) << shift, shift + 7, at + 1
            number, at = number | data[at] << shift, at + 1
            fields[field] = number >> 1 ^ -(number & 1)
            at += number if _THRIFT[kind] == "text" else 0
    return fields, at + 1


def read_arrow(path: Path, request: Request) -> tuple[pl.DataFrame, Mapping[str, Facts]]:
    """Read the wanted columns of an Arrow (IPC, Feather) file, and what it says of them."""
    import pyarrow as pa
    from pyarrow import ipc

    try:
        with pa.memory_map(str(path)) as source:
            table = ipc.open_file(source).read_all()
            table.validate(full=True)  # else a changed byte leads outside of the file
            return _chosen(table, request, path)
    except (pa.ArrowException, OSError, UnicodeError):
        raise unreadable(path, "Arrow") from None


def _chosen(table: Any, request: Request, path: Path) -> tuple[pl.DataFrame, Mapping[str, Facts]]:
    chosen = request.choose(table.schema.names, repr(path.name))
    return from_arrow(table.select(chosen)).clone(), read_facts(table.schema.metadata)


def unreadable(path: Path, name: str) -> FileError:
    """Say that a file cannot be read as what its name says it is."""
    return FileError(
        f"{path.name!r} cannot be read as {name}: it is damaged, incomplete, or uses features that "
        f"are not supported. Copy it again or save it again."
    )


def write_parquet(data: Microdata, path: Path) -> None:
    """Write a Parquet file."""
    notes = _notes(data.variables)
    data.frame.write_parquet(path, metadata={_KEY: notes} if notes else None)


def write_arrow(data: Microdata, path: Path) -> None:
    """Write an Arrow file, which Feather is another name of."""
    import pyarrow as pa
    from pyarrow import ipc

    table = _by_place(data.frame).to_arrow(compat_level=pl.CompatLevel.oldest())
    table = table.rename_columns(data.frame.columns)
    notes = _notes(data.variables)
    if notes:
        table = table.replace_schema_metadata({_KEY: notes})
    with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _notes(variables: tuple[Variable, ...]) -> str:
    """Write down what the format has no place of its own for, but no roles."""
    noted = (*_PLAIN_FACTS, *_FACTS)
    facts = plain_facts({v.name: {key: getattr(v, key) for key in noted} for v in variables})
    filled = {name: note for name, note in facts.items() if note}
    return json.dumps(filled, sort_keys=True, default=str) if filled else ""


def read_facts(metadata: Mapping[Any, Any] | None) -> dict[str, Facts]:
    """Read what a file's metadata says of its columns; what we did not write is left aside."""
    metadata = metadata or {}
    notes = metadata.get(_KEY) or metadata.get(_KEY.encode()) or "{}"
    try:
        return restored_facts(json.loads(notes))
    except (ValueError, TypeError, AttributeError, KeyError):
        return {}


def plain_facts(facts: Mapping[str, Facts]) -> dict[str, Any]:
    """Return what a file says of its columns as plain values, for `restored_facts`."""
    return {
        name: {k: _FACTS.get(k, _AS_IT_IS)[0](v) for k, v in known.items() if v}
        for name, known in facts.items()
    }


def restored_facts(plain: Mapping[str, Any]) -> dict[str, Facts]:
    """Return what a file says of its columns, from `plain_facts`."""
    known = {*_PLAIN_FACTS, *_FACTS, "format", "width"}
    return {
        name: {key: _FACTS.get(key, _AS_IT_IS)[1](note[key]) for key in known & note.keys()}
        for name, note in plain.items()
    }
