"""Parquet and Arrow files. What is known of the columns travels in the file's own notes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from keyhole.data.arrow import from_arrow, has_odd_types
from keyhole.data.columns import Variable
from keyhole.data.describing import Facts, Request
from keyhole.data.microdata import Microdata
from keyhole.errors import FileError

__all__ = ["broken", "read_arrow", "read_parquet", "write_arrow", "write_parquet"]

_KEY = "keyhole"
_PARSED: dict[str, pl.DataType] = {
    "Int64": pl.Int64(),
    "Float64": pl.Float64(),
    "Date": pl.Date(),
    "Datetime": pl.Datetime("us"),
}


def read_parquet(path: Path, request: Request) -> tuple[pl.DataFrame, Mapping[str, Facts]]:
    """Read the wanted columns of a Parquet file, and what it says of them."""
    with suppress(pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        names = list(pl.read_parquet_schema(path))
        notes = pl.read_parquet_metadata(path).get(_KEY, "")
        chosen = request.choose(names, repr(path.name))
        # A name may hold stars and brackets: it is this one file that is meant.
        return pl.read_parquet(path, columns=chosen, glob=False), _facts(notes)
    return _read_beside_odd_types(path, request)


def _read_beside_odd_types(
    path: Path, request: Request
) -> tuple[pl.DataFrame, Mapping[str, Facts]]:
    """Read a file that Polars cannot, if only because of types that it does not have."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    with suppress(pa.ArrowException, OSError):
        if has_odd_types(parquet.read_schema(path)):
            return _chosen(parquet.ParquetFile(path).read(), request, path)
    raise broken(path, "Parquet")


def read_arrow(path: Path, request: Request) -> tuple[pl.DataFrame, Mapping[str, Facts]]:
    """Read the wanted columns of an Arrow (IPC, Feather) file, and what it says of them."""
    import pyarrow as pa
    from pyarrow import ipc

    try:
        with pa.memory_map(str(path)) as source:
            return _chosen(ipc.open_file(source).read_all(), request, path)
    except (pa.ArrowException, OSError):
        raise broken(path, "Arrow") from None


def _chosen(table: Any, request: Request, path: Path) -> tuple[pl.DataFrame, Mapping[str, Facts]]:
    notes = (table.schema.metadata or {}).get(_KEY.encode(), b"").decode()
    chosen = request.choose(table.schema.names, repr(path.name))
    return from_arrow(table.select(chosen)).clone(), _facts(notes)


def broken(path: Path, name: str) -> FileError:
    """Say that a file cannot be read as what its name says it is."""
    return FileError(
        f"{path.name!r} cannot be read as {name}: it is broken, not whole, or has features that "
        f"are not supported. Copy it again or write it anew."
    )


def write_parquet(data: Microdata, path: Path) -> None:
    """Write a Parquet file."""
    notes = _notes(data.variables)
    data.frame.write_parquet(path, metadata={_KEY: notes} if notes else None)


def write_arrow(data: Microdata, path: Path) -> None:
    """Write an Arrow file, which Feather is another name of."""
    import pyarrow as pa
    from pyarrow import ipc

    table = data.frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    notes = _notes(data.variables)
    if notes:
        table = table.replace_schema_metadata({_KEY: notes})
    with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _notes(variables: tuple[Variable, ...]) -> str:
    """Write down what the format has no place of its own for; roles stay at home."""
    noted = {variable.name: _noted(variable) for variable in variables}
    filled = {name: note for name, note in noted.items() if note}
    return json.dumps(filled, sort_keys=True, default=str) if filled else ""


def _noted(variable: Variable) -> dict[str, Any]:
    note = {
        "label": variable.label,
        "value_labels": [list(pair) for pair in variable.value_labels.items()],
        "missing_codes": list(variable.missing_codes),
        "missing_ranges": [list(ends) for ends in variable.missing_ranges],
        "decimals": variable.decimals,
        "trimmed": variable.trimmed,
        "parsed": str(variable.parsed.base_type()) if variable.parsed is not None else None,
        "measurement": variable.measurement,
    }
    return {key: value for key, value in note.items() if value not in ("", [], None, False)}


def _facts(notes: str) -> dict[str, Facts]:
    """Read notes back; anything that is not as we write it is no note of ours."""
    try:
        return {name: _fact(note) for name, note in json.loads(notes or "{}").items()}
    except (ValueError, TypeError, AttributeError, KeyError):
        return {}


def _fact(note: Mapping[str, Any]) -> Facts:
    known: dict[str, Any] = {
        key: note[key] for key in ("label", "decimals", "trimmed", "measurement") if key in note
    }
    known["value_labels"] = dict(note.get("value_labels", ()))
    known["missing_codes"] = tuple(note.get("missing_codes", ()))
    known["missing_ranges"] = tuple((low, high) for low, high in note.get("missing_ranges", ()))
    if "parsed" in note:
        known["parsed"] = _PARSED[note["parsed"]]
    return known
