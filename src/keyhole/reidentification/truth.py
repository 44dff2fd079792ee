"""Who is who: the ids of the two files, and the pairs that the internal file names.

The internal file (IUF) holds the ids of the public file (PUF) and of the external file (EIF), side
by side (Singer & Dajani, section 1.1). An id may be several columns. Only counts are told of
ids that cannot be used, never an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from keyhole.core.names import quoted
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError, OptionError
from keyhole.kernels.arrays import Ints
from keyhole.reidentification.files import WIDE

__all__ = [
    "Truth",
    "find_truth",
    "id_problems",
    "incomplete_warnings",
    "name_problems",
    "names_of",
    "order_by_id",
    "require_rows",
    "text_ids",
    "unknown_problems",
]


NOBODY = -1
_EXACT = 2**53  # above, a float no longer tells whole numbers apart


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The pairs that are one person, by record number.

    Parameters
    ----------
    puf, eif
        The distinct true pairs.
    rows
        For each row of the IUF its PUF record, -1 where it names none.
    incomplete
        Rows of the IUF without one of the two ids, which name no pair.
    """

    puf: Ints
    eif: Ints
    rows: Ints
    incomplete: int

    @property
    def overlap(self) -> int:
        """PUF records that are in the EIF too."""
        return len(np.unique(self.puf))


def names_of(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return names of columns; one name alone is meant as a list of one.

    Examples
    --------
    >>> names_of("age"), names_of(["age", "sex"]), names_of(None)
    (('age',), ('age', 'sex'), ())
    """
    if isinstance(names, str):
        return (names,)
    if names is not None and not isinstance(names, Iterable):
        raise OptionError(
            f"columns must be given as a name or a list of names. Got {type(names).__name__} "
            f"instead."
        )
    return tuple(map(str, names or ()))


def find_truth(
    puf: Microdata,
    eif: Microdata,
    iuf: Microdata,
    *,
    puf_id: str | Iterable[str],
    eif_id: str | Iterable[str],
) -> Truth:
    """Find the records of each pair that the internal file names.

    Parameters
    ----------
    puf, eif, iuf
        The three files.
    puf_id, eif_id
        The columns that name a record of the PUF and of the EIF; the IUF has both.

    Raises
    ------
    ColumnError
        If ids are absent, missing or shared by records, or the IUF names records that are not
        there: all of it at once.

    Notes
    -----
    Ids are compared as values: 7 is 7.0 and, where one file holds text, ``"7"``; but ``"07"``
    is another. A row of the IUF with only one of the ids names no pair; it is counted.

    Examples
    --------
    >>> from keyhole.data import load
    >>> puf = load(pl.DataFrame({"p": [10, 20, 30]}))
    >>> eif = load(pl.DataFrame({"e": ["a", "b"]}))
    >>> truth = find_truth(
    ...     puf, eif, load(pl.DataFrame({"p": [30, 10], "e": ["a", None]})), puf_id="p", eif_id="e"
    ... )
    >>> truth.puf.tolist(), truth.eif.tolist(), truth.incomplete
    ([2], [0], 1)
    """
    sides = (_Side(puf, names_of(puf_id), "PUF"), _Side(eif, names_of(eif_id), "EIF"))
    problems = name_problems((puf, sides[0].names), (eif, sides[1].names), iuf)
    if not problems:
        problems = [problem for side in sides for problem in side.problems()]
    if problems:
        raise ColumnError(problems)
    found = [side.find(iuf) for side in sides]
    problems = [p for side, rows in zip(sides, found, strict=True) for p in side.unknown(iuf, rows)]
    if problems:
        raise ColumnError(problems)
    return _pair(*found)


def order_by_id(data: Microdata, names: Sequence[str]) -> Ints:
    """Return the records in order of their ids, which does not hang on that of the file.

    Examples
    --------
    >>> from keyhole.data import load
    >>> order_by_id(load({"e": ["b", "c", "a"]}), ["e"]).tolist()
    [2, 0, 1]
    """
    ids = _ids(data, names)
    return ids.select(pl.arg_sort_by(ids.columns)).to_series().to_numpy().astype(np.int64)


def _pair(puf: Ints, eif: Ints) -> Truth:
    complete = (puf >= 0) & (eif >= 0)
    span = int(eif.max(initial=0)) + 1
    pairs = np.unique(puf[complete] * span + eif[complete])
    return Truth(pairs // span, pairs % span, puf, len(puf) - int(complete.sum()))


_UNKNOWN = -2


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two files with the columns of its id."""

    data: Microdata
    names: tuple[str, ...]
    file: str

    def problems(self) -> list[str]:
        """Say how many ids are missing and how many records share one."""
        ids = _ids(self.data, self.names)
        complete = ids.drop_nulls()
        shared = int(complete.is_duplicated().sum()) if complete.height else 0
        return id_problems(self.file, self.names, ids.height - complete.height, shared, ids.height)

    def find(self, iuf: Microdata) -> Ints:
        """Return the record that each row of the IUF names: -1 for none, -2 for an unknown."""
        ours, theirs = _alike(_ids(self.data, self.names), _ids(iuf, self.names))
        missing = theirs.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
        positions = ours.with_columns(pl.Series("record", np.arange(ours.height), pl.Int64))
        joined = theirs.join(positions, on=ours.columns, how="left", maintain_order="left")
        rows = joined["record"].fill_null(_UNKNOWN).to_numpy()
        return np.where(missing, NOBODY, rows).astype(np.int64)

    def unknown(self, iuf: Microdata, rows: Ints) -> list[str]:
        """Say how many rows of the IUF name a record that is not there."""
        return unknown_problems(self.file, self.names, int((rows == _UNKNOWN).sum()), iuf.records)


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


def unknown_problems(file: str, names: Sequence[str], count: int, rows: int) -> list[str]:
    """Say how many rows of the IUF name a record that is not in a file."""
    if not count:
        return []
    return [
        f"every id {quoted(names)} in the IUF must be one of the {file}. Got "
        f"{count:,} of {rows:,} rows with another instead: leave those rows out, or "
        f"check that ids are written alike in both files ('007' is not 7)."
    ]


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
    if not incomplete:
        return []
    return [
        f"{incomplete:,} of {rows:,} rows of the IUF have only one of the two ids and name no pair"
    ]


class Named(Protocol):
    """Data whose columns can be asked for by name."""

    def require(self, names: Iterable[str], *, purpose: str = ...) -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong."""
        ...


def name_problems(
    puf: tuple[Named, Sequence[str]], eif: tuple[Named, Sequence[str]], iuf: Named
) -> list[str]:
    """Say what is wrong with the names of the columns of ids."""
    problems = []
    for file, (data, names) in (("PUF", puf), ("EIF", eif)):
        if not names:
            problems.append(f"{file} id must name at least one column. Got none instead.")
        for one in (data, iuf):
            problems += _absent(one, names, f"{file} id")
    if puf[1] and set(puf[1]) == set(eif[1]):
        problems.append(
            f"PUF id and EIF id must have names of their own, since the IUF holds both. Got "
            f"{quoted(puf[1])} for each instead: rename one in its file and in the IUF."
        )
    return list(dict.fromkeys(problems))


def _absent(data: Named, names: Sequence[str], purpose: str) -> list[str]:
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
        whole = ((series.floor() == series) & (series.abs() < _EXACT)).all()
        return series.cast(pl.Int64) if whole else series.cast(pl.Float64)
    if series.dtype == pl.Binary:  # which need not be text
        return series.bin.encode("hex")
    if series.dtype.is_integer() and series.dtype not in WIDE:
        return series.cast(pl.Int64)
    if series.dtype in (pl.Categorical, pl.Enum, pl.Null, *WIDE):
        return series.cast(pl.String)
    return series


def text_ids(columns: Sequence[pl.Series]) -> pl.Series:
    """Return ids as one text each, the same for equal ids; null where a part is missing.

    Examples
    --------
    >>> text_ids([pl.Series([7.0, None])]).to_list()
    ['7', None]
    >>> text_ids([pl.Series([7, 7]), pl.Series(["a", None])]).to_list()
    ['1:71:a', None]
    """
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
        whole = (series.floor() == series) & (series.abs() < _EXACT)
        return (
            series.cast(pl.Int64, strict=False)
            .cast(pl.String)
            .zip_with(whole.fill_null(value=False), series.cast(pl.String))
        )
    if series.dtype == pl.Binary:
        return series.bin.encode("hex")
    return series.cast(pl.String)


def _alike(one: pl.DataFrame, other: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Bring the ids of two files to one type each, as text where they differ."""
    differ = [name for name in one.columns if one.schema[name] != other.schema[name]]
    as_text = [pl.col(name).cast(pl.String) for name in differ]
    return one.with_columns(as_text), other.with_columns(as_text)
