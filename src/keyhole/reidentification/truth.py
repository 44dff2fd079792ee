"""Internal file (IUF): the true pairs, and the values before perturbation.

It holds the ids of the public file (PUF) and of the external file (EIF) side by side, and may
carry the linking values before they were perturbed (Singer & Dajani, section 1.1). An id may be
several columns. Only counts are told of ids that cannot be used, never an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import polars as pl

from keyhole.core.kinds import Columns
from keyhole.core.marks import COUNT
from keyhole.core.names import quoted
from keyhole.core.tables import Table
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.kernels.arrays import Ints
from keyhole.reidentification.rates import Rates
from keyhole.reidentification.variables import EXACT, WIDE
from keyhole.results import share

NOBODY = -1
UNKNOWN = -2


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The pairs that are one person, by record number.

    `puf`, `eif`: the distinct true pairs. `rows`: for each row of the IUF its PUF record, -1 where
    it names none. `incomplete`: rows of the IUF without one of the two ids, which name no pair.
    """

    puf: Ints
    eif: Ints
    rows: Ints
    incomplete: int

    @property
    def overlap(self) -> int:
        """PUF records that are in the EIF too."""
        return len(np.unique(self.puf))


def find_truth(
    puf: Microdata,
    eif: Microdata,
    iuf: Microdata,
    *,
    puf_id: str | Iterable[str],
    eif_id: str | Iterable[str],
) -> Truth:
    """Find the records of each pair that the internal file names.

    Notes
    -----
    Ids are compared as values: 7 is 7.0 and, where one file holds text, ``"7"``; but ``"07"``
    is another. A row of the IUF with only one of the ids names no pair; it is counted.
    """
    sides = {
        "PUF": (puf, Columns().settle(puf_id)),
        "EIF": (eif, Columns().settle(eif_id)),
    }
    problems = iuf_name_problems(sides["PUF"], sides["EIF"], iuf)
    for file, (data, names) in () if problems else sides.items():
        ids = _ids(data, names)
        whole = ids.drop_nulls()
        shared = int(whole.is_duplicated().sum()) if whole.height else 0
        problems += id_problems(file, names, ids.height - whole.height, shared, ids.height)
    if problems:
        raise ColumnError(problems)
    puf_rows, eif_rows = (_find(*side, iuf) for side in sides.values())
    for (file, (_, names)), rows in zip(sides.items(), (puf_rows, eif_rows), strict=True):
        strange = int((rows == UNKNOWN).sum())
        problems += unknown_id_problems(file, names, strange, iuf.records)
    if problems:
        raise ColumnError(problems)
    complete = (puf_rows >= 0) & (eif_rows >= 0)
    span = int(eif_rows.max(initial=0)) + 1
    pairs = np.unique(puf_rows[complete] * span + eif_rows[complete])
    return Truth(pairs // span, pairs % span, puf_rows, len(complete) - int(complete.sum()))


def order_by_id(data: Microdata, names: Sequence[str]) -> Ints:
    """Return the records in order of their ids, which does not hang on that of the file."""
    ids = _ids(data, names)
    return ids.select(pl.arg_sort_by(ids.columns)).to_series().to_numpy().astype(np.int64)


def _find(data: Microdata, names: Sequence[str], iuf: Microdata) -> Ints:
    """Return the record that each row of the IUF names: -1 for none, -2 for an unknown."""
    ours, theirs = _ids(data, names), _ids(iuf, names)
    differ = [name for name in ours.columns if ours.schema[name] != theirs.schema[name]]
    as_text = [pl.col(name).cast(pl.String) for name in differ]
    ours, theirs = ours.with_columns(as_text), theirs.with_columns(as_text)
    missing = theirs.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
    positions = ours.with_columns(pl.Series("record", np.arange(ours.height), pl.Int64))
    joined = theirs.join(positions, on=ours.columns, how="left", maintain_order="left")
    rows = joined["record"].fill_null(UNKNOWN).to_numpy()
    return np.where(missing, NOBODY, rows).astype(np.int64)


def id_problems(
    file: str, names: Sequence[str], missing: int, shared: int, records: int
) -> list[str]:
    """Say how many ids of a file are missing and how many records share one."""
    problems = []
    if missing:
        problems.append(
            f"the {file}'s id {quoted(names)} must be there for every record. Got "
            f"{missing:,} of {records:,} records without instead: give them an id, or leave them "
            f"out."
        )
    if shared:
        problems.append(
            f"the {file}'s id {quoted(names)} must tell records apart. Got "
            f"{shared:,} of {records:,} records that share theirs with another instead: add the "
            f"column that tells them apart, or leave out the repeated records."
        )
    return problems


def unknown_id_problems(file: str, names: Sequence[str], count: int, rows: int) -> list[str]:
    """Say how many rows of the IUF name a record that is not in a file."""
    said = (
        f"every id {quoted(names)} in the IUF must be one of the {file}. Got "
        f"{count:,} of {rows:,} rows with another instead: leave those rows out, or "
        f"check that ids are written alike in both files ('007' is not 7)."
    )
    return [said] if count else []


def require_rows(name: str, rows: int) -> None:
    """Say so if the IUF has no rows."""
    if not rows:
        raise ColumnError(
            f"the IUF {name!r} has a header but no records, so that nothing could be "
            f"confirmed. Give a row for each person in both files; if nobody is in both, rows with "
            f"the PUF's id and an empty EIF id say so."
        )


def incomplete_warnings(incomplete: int, rows: int) -> list[str]:
    """Say how many rows of the IUF name no pair."""
    said = "rows of the IUF have only one of the two ids and name no pair"
    return [f"{incomplete:,} of {rows:,} {said}"] if incomplete else []


class HasColumns(Protocol):
    """Data whose columns can be asked for by name."""

    def require(self, names: Iterable[str], *, purpose: str = ...) -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        ...


def iuf_name_problems(
    puf: tuple[HasColumns, Sequence[str]], eif: tuple[HasColumns, Sequence[str]], iuf: HasColumns
) -> list[str]:
    """Say what is wrong with the names of the columns of ids."""
    problems = []
    for file, (data, names) in (("PUF", puf), ("EIF", eif)):
        if not names:
            problems.append(f"{file} id must name at least one column. Got none instead.")
        for one in (data, iuf):
            problems += absent_problems(one, names, f"{file} id")
    if puf[1] and set(puf[1]) == set(eif[1]):
        problems.append(
            f"PUF id and EIF id must have names of their own, since the IUF holds both. Got "
            f"{quoted(puf[1])} for each instead: rename one in its file and in the IUF."
        )
    return list(dict.fromkeys(problems))


def absent_problems(data: HasColumns, names: Sequence[str], purpose: str) -> list[str]:
    """Say which names are no columns of the data, or are given twice."""
    try:
        data.require(names, purpose=purpose)
    except ColumnError as error:
        return list(error.problems)
    return []


def _ids(data: Microdata, names: Sequence[str]) -> pl.DataFrame:
    """Return the columns of an id under names of our own, whole numbers as such."""
    return pl.DataFrame({f"id{i}": _plain(data.column(name)) for i, name in enumerate(names)})


def _plain(series: pl.Series) -> pl.Series:
    """Bring an id to one of few types; a file with gaps may hold its whole numbers as floats."""
    if series.dtype.is_float():
        whole = ((series.floor() == series) & (series.abs() < EXACT)).all()
        return series.cast(pl.Int64) if whole else series.cast(pl.Float64)
    if series.dtype == pl.Binary:  # which need not be text
        return series.bin.encode("hex")
    if series.dtype.is_integer() and series.dtype not in WIDE:
        return series.cast(pl.Int64)
    if series.dtype in (pl.Categorical, pl.Enum, pl.Null, *WIDE):
        return series.cast(pl.String)
    return series


def text_ids(columns: Sequence[pl.Series]) -> pl.Series:
    """Return ids as one text each, the same for equal ids; null where a part is missing."""
    texts = [_text(column) for column in columns]
    if len(texts) == 1:
        return texts[0]
    # With its length before it, a part cannot be taken for a piece of the next.
    frame = pl.DataFrame([text.alias(f"id{i}") for i, text in enumerate(texts)])
    parts = [
        expression
        for name in frame.columns
        for expression in (pl.col(name).str.len_bytes().cast(pl.String), pl.lit(":"), pl.col(name))
    ]
    return frame.select(pl.concat_str(parts)).to_series()


def _text(series: pl.Series) -> pl.Series:
    if series.dtype.is_float():
        whole = (series.floor() == series) & (series.abs() < EXACT)
        return (
            series.cast(pl.Int64, strict=False)
            .cast(pl.String)
            .zip_with(whole.fill_null(value=False), series.cast(pl.String))
        )
    if series.dtype == pl.Binary:
        return series.bin.encode("hex")
    return series.cast(pl.String)


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """The PUF with the values of the internal file in place of its own.

    `changed` counts by variable the values that differ; `skipped` says why a variable that the
    internal file carries could not be used.
    """

    puf: Microdata
    records: int
    changed: Mapping[str, int]
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bought:
    """What a perturbation took off each figure."""

    confirmed: int
    confirmed_rate: float | None
    conditional_rate: float | None


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The rates with the values as they were, beside what was changed.

    `records`: PUF records whose values the internal file carries. `changed`: by linking variable,
    how many of their values were perturbed. `without`: the rates without the perturbation.
    `bought`: how much lower the rates are with it.
    """

    records: Annotated[int, COUNT]
    changed: Annotated[Mapping[str, int], COUNT]
    without: Rates
    bought: Bought

    @classmethod
    def measured(cls, restored: Restored, without: Rates, with_it: Rates) -> Perturbation:
        """Set the rates without the perturbation against those with it."""
        bought = Bought(
            without.confirmed - with_it.confirmed,
            _less(without.confirmed_rate, with_it.confirmed_rate),
            _less(without.conditional_rate, with_it.conditional_rate),
        )
        return cls(restored.records, restored.changed, without, bought)

    def table(self, with_it: Rates) -> Table:
        """Set the rates with and without the perturbation side by side."""
        names = ("suspected", "confirmed", "conditional", "pairs that are true")
        both = zip(names, self.without.named().values(), with_it.named().values(), strict=True)
        rows = [[name, share(one.value), share(two.value)] for name, one, two in both]
        changed = ", ".join(f"{name} {count:,}" for name, count in self.changed.items())
        notes = [f"Values perturbed, in {self.records:,} records of the IUF: {changed}."]
        columns = ["rate", "without it", "with it"]
        return Table("What the perturbation bought", columns, rows, notes)


def _less(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else before - after


def restore(puf: Microdata, iuf: Microdata, truth: Truth, link: Sequence[str]) -> Restored | None:
    """Put the values that the internal file carries in place of the PUF's own."""
    carried = [name for name in link if name in iuf.names]
    known = truth.rows >= 0
    if not carried or not known.any():
        return None
    source = np.full(puf.records, -1, dtype=np.int64)
    source[truth.rows[known]] = np.flatnonzero(known)
    columns, changed, skipped = {}, {}, []
    for name in carried:
        values, problem = _restored(puf.column(name), iuf.column(name), source, truth)
        if values is None:
            skipped.append(f"{name!r} {problem}")
            continue
        columns[name] = values
        changed[name] = int(values.ne_missing(puf.column(name)).sum())
    frame = puf.frame.with_columns(values.alias(name) for name, values in columns.items())
    return Restored(puf.replace(frame=frame), int((source >= 0).sum()), changed, tuple(skipped))


def _restored(
    ours: pl.Series, theirs: pl.Series, source: np.ndarray[Any, Any], truth: Truth
) -> tuple[pl.Series | None, str]:
    """Return the values, or why there are none."""
    dtype = _common_type(ours.dtype, theirs.dtype)
    if dtype is None:
        return None, "holds values of another type in the IUF"
    ours, theirs = ours.cast(dtype), theirs.cast(dtype)
    given = theirs.gather(np.maximum(source, 0))
    values = given.zip_with(pl.Series(source >= 0), ours)
    named = np.flatnonzero(truth.rows >= 0)
    again = values.gather(truth.rows[named])
    if again.ne_missing(theirs.gather(named)).any():
        return None, "has several values for one PUF record in the IUF"
    return values, ""


def _common_type(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    """Return the type that holds the values of two columns, if they are of one kind."""
    text = (pl.String, pl.Categorical, pl.Enum)
    if one.base_type() in text and other.base_type() in text:
        return pl.String()
    if one == other:
        return one
    if pl.UInt128 in (one, other):  # nothing holds these and others
        return None
    if one.is_integer() and other.is_integer():
        return pl.Int128() if {one, other} & set(WIDE) else pl.Int64()
    if one.is_numeric() and other.is_numeric():
        return pl.Float64()
    return next((dtype for dtype in (one, other) if {one, other} <= {dtype, pl.Null()}), None)
