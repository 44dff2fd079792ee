"""Microdata: a file of records in memory, and what is known of its columns."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import polars as pl

from keyhole.core.names import absent, repeated
from keyhole.core.tables import Table
from keyhole.data.columns import Codes, Role, Variable, encode, named
from keyhole.data.describing import describe, role_problems
from keyhole.data.missing import blank
from keyhole.errors import ColumnError, FileError, OptionError

_TYPES: Mapping[Any, str] = {
    pl.Boolean: "truth values",
    pl.Date: "dates",
    pl.Datetime: "dates and times",
    pl.Time: "times",
    pl.Duration: "durations",
    pl.Binary: "bytes",
    pl.Null: "nothing",
}
_WEIGHT_REMEDIES = {
    "missing": "leave those records out, or give them a weight",
    "negative": "check that this is the weight, and declare missing codes",
    "infinite": "check how the weight was made",
}
# What makes values missing: where it is the same, the codes of a column are the same.
_MISSING = attrgetter("missing_codes", "missing_ranges", "parsed")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where data came from: how a file was written, or what kind of frame (`native`) was given.

    `index`, `types` and `labels` are those of a frame of another library.
    """

    suffix: str = ""
    native: str = "file"
    index: Any = None
    types: Any = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    delimiter: str = ","
    encoding: str = "utf-8"
    line_ending: str = "\n"
    bom: bool = False
    file_label: str = ""
    notes: Sequence[str] = field(default=())
    table_name: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Microdata:
    """A file of records with what is known of its columns; it is never changed in place.

    Parameters
    ----------
    frame
        The file's values, untouched: missing codes are still in place.
    variables
        What is known of the columns, in column order.
    name
        The file's stem, or ``data``.
    origin
        Where it came from, so that `save` and `to_native` give the same kind back.

    Examples
    --------
    >>> frame = pl.DataFrame({"sex": [1, 2, 1, 9], "zip": ["02134", "10001", "02134", ""]})
    >>> variables = [Variable("sex", "category", missing_codes=(9,)), Variable("zip", "category")]
    >>> data = Microdata(frame, variables)
    >>> data.column("sex").to_list()
    [1, 2, 1, None]
    >>> data.codes("zip").values.tolist()
    [0, 1, 0, 2]
    """

    frame: pl.DataFrame
    variables: tuple[Variable, ...]
    name: str = "data"
    origin: Origin = field(default_factory=lambda: Origin(native="polars"))
    _places: dict[str, int] = field(init=False)
    _columns: dict[str, pl.Series] = field(init=False, default_factory=dict)
    _codes: dict[str, Codes] = field(init=False, default_factory=dict)
    _locks: dict[str, Lock] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        names = [variable.name for variable in self.variables]
        if names != self.frame.columns:
            raise ColumnError("variables must be the frame's columns, in their order")
        object.__setattr__(self, "_places", {name: i for i, name in enumerate(names)})

    @property
    def records(self) -> int:
        """The number of records."""
        return self.frame.height

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._places)

    def variable(self, name: str) -> Variable:
        """Return what is known of a column."""
        (known,) = self.require([name], purpose="column")
        return self.variables[self._places[known]]

    def require(self, names: Iterable[str], *, purpose: str = "key") -> tuple[str, ...]:
        """Return the names if all are columns, each once; else say everything that is wrong.

        One name alone is meant as a list of one; `purpose` is what the message calls them.
        """
        return require_columns(names, self._places, purpose=purpose, called=self.name)

    def require_records(self, least: int = 1) -> None:
        """Say so if there are no records, or fewer than a stage can use."""
        require_records(self.records, self.name, least)

    def column(self, name: str) -> pl.Series:
        """Return a column with declared missing codes, empty text and NaN turned to null."""
        if name not in self._columns:
            variable = self.variable(name)
            self._columns[name] = blank(self.frame.get_column(variable.name), variable)
        return self._columns[name]

    def codes(self, name: str) -> Codes:
        """Return a column as small unsigned integers, made once however many threads ask."""
        if name in self._codes:
            return self._codes[name]
        (name,) = self.require([name], purpose="column")
        with self._locks.setdefault(name, Lock()):
            if name not in self._codes:
                self._codes[name] = encode(self.column(name))
            return self._codes[name]

    def role(self, role: str) -> tuple[str, ...]:
        """Return the names of the columns with a role, in column order."""
        return tuple(variable.name for variable in self.variables if variable.role == role)

    def weights(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return a column of sampling weights: numbers, none missing or negative, not all 0."""
        series = self.column(name)
        if not series.dtype.is_numeric():
            raise ColumnError(
                f"weight {name!r} must hold numbers. Got {values_in_words(series)} instead: "
                f"choose another column, or declare its missing codes."
            )
        values = series.cast(pl.Float64)
        counts = {
            "missing": values.null_count(),
            "negative": int((values < 0).sum()),
            "infinite": int(values.is_infinite().sum()),
        }
        problems = [
            f"weight {name!r} must have no {what} values. Got {count:,} of {len(values):,} "
            f"instead: {_WEIGHT_REMEDIES[what]}."
            for what, count in counts.items()
            if count
        ]
        if not problems and len(values) and not (values > 0).any():
            problems = [f"weight {name!r} must have values above 0. Got 0 for all instead."]
        if problems:
            raise ColumnError(problems)
        array: np.ndarray[Any, np.dtype[np.float64]] = values.to_numpy()
        return array

    def with_roles(
        self, roles: Mapping[str, Role | None] | None = None, /, **more: Role | None
    ) -> Microdata:
        """Return the data with these columns' roles, by name; ``None`` takes a role away."""
        wanted: dict[str, Role | None] = {**(roles or {}), **more}
        problems = absent(wanted, list(self._places), where=repr(self.name))
        problems += role_problems({name: role for name, role in wanted.items() if role is not None})
        if problems:
            raise ColumnError(problems)
        return self.with_variables(
            dataclasses.replace(self.variable(name), role=role) for name, role in wanted.items()
        )

    def with_variables(self, variables: Iterable[Variable]) -> Microdata:
        """Return the data with more, or other, known of the columns these variables name."""
        known = {variable.name: variable for variable in variables}
        self.require(known, purpose="column")
        new = dataclasses.replace(
            self, variables=tuple(known.get(old.name, old) for old in self.variables)
        )
        new._codes.update(
            (name, codes)
            for name, codes in list(self._codes.items())
            if _MISSING(new.variable(name)) == _MISSING(self.variable(name))
        )
        return new

    def replace(self, *, frame: pl.DataFrame | None = None, name: str | None = None) -> Microdata:
        """Return the data with another frame, another name, or both.

        Columns that stay keep what is known of them; of one with values of another type the
        kind is guessed anew, and new ones are described afresh.
        """
        frame = self.frame if frame is None else frame
        variables = tuple(self._carried(series) for series in frame)
        index = self.origin.index if frame.height == self.records else None
        origin = dataclasses.replace(self.origin, index=index)
        return Microdata(frame, variables, name or self.name, origin)

    def _carried(self, series: pl.Series) -> Variable:
        """Return what is known of a column of this name in another frame."""
        if series.name not in self._places:
            return describe(series.to_frame())[0]
        known = self.variable(series.name)
        if series.dtype == self.frame.schema[series.name]:
            return known
        fields = ("label", "value_labels", "missing_codes", "missing_ranges")
        facts = {field: getattr(known, field) for field in fields}
        fresh = describe(series.to_frame(), known={series.name: facts})[0]
        return dataclasses.replace(fresh, role=known.role)

    def select(self, names: Iterable[str]) -> Microdata:
        """Return the data with these columns only, in this order."""
        chosen = self.require(names, purpose="column")
        variables = tuple(self.variable(name) for name in chosen)
        new = dataclasses.replace(self, frame=self.frame.select(named(chosen)), variables=variables)
        new._codes.update((name, self._codes[name]) for name in chosen if name in self._codes)
        return new

    def filter(self, mask: np.ndarray[Any, Any] | pl.Series) -> Microdata:
        """Return the records for which the mask is true."""
        keep = np.asarray(mask, dtype=bool)
        if keep.shape != (self.records,):
            raise ColumnError(
                f"mask must have one truth value for each of {self.records} records. "
                f"Got {keep.size} instead."
            )
        index = self.origin.index
        origin = dataclasses.replace(self.origin, index=None if index is None else index[keep])
        return dataclasses.replace(self, frame=self.frame.filter(pl.Series(keep)), origin=origin)

    def reordered(self, order: np.ndarray[Any, Any]) -> Microdata:
        """Return the records in another order."""
        origin = dataclasses.replace(self.origin, index=None)
        return Microdata(self.frame[order], self.variables, name=self.name, origin=origin)

    def to_native(self) -> Any:
        """Return the same kind of frame as was given; a Polars frame for a file.

        A pandas frame gets its index back as long as the records are the same or filtered.
        """
        from keyhole.data.frames import to_native

        return to_native(self.frame, self.origin)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the data to a file, whole or not at all; the extension says the format.

        See `keyhole.data.writing.save` for what each format keeps.
        """
        from keyhole.data.writing import save

        return save(self, path, force=force)

    def tables(self) -> list[Table]:
        """Return what is known of the columns as a table; no values are shown."""
        types = self.frame.schema
        rows = [
            [v.name, v.kind, v.role or "", type_in_words(v.parsed or types[v.name]), v.label]
            for v in self.variables
        ]
        title = f"{self.name}: {self.records:,} records, {len(rows):,} columns"
        return [Table(title, ["column", "kind", "role", "values", "label"], rows)]

    def __repr__(self) -> str:
        return self.tables()[0].to_text()

    def _repr_html_(self) -> str:
        return self.tables()[0].to_html()


def require_columns(
    names: Iterable[str], columns: Collection[str], *, purpose: str, called: str
) -> tuple[str, ...]:
    """Return the names if all are columns, each once; else say everything that is wrong."""
    asked = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(asked) == 1 and asked[0] in columns:  # as each column is in its turn
        return tuple(asked)
    problems = absent(dict.fromkeys(asked), list(columns), purpose=purpose, where=repr(called))
    problems += [
        f"{purpose} {name!r} is listed more than once. List it once." for name in repeated(asked)
    ]
    if problems:
        raise ColumnError(problems)
    return tuple(asked)


def require_records(records: int, called: str, least: int = 1) -> None:
    """Say so if there are no records, or fewer than a stage can use."""
    if records == 0:
        raise FileError(
            f"{called!r} has a header but no records. Give a file with at least one record."
        )
    if records < least:
        raise FileError(f"{called!r} must have at least {least} records. Got {records} instead.")


def type_in_words(dtype: pl.DataType) -> str:
    """Name a type in words a reader of the data would use."""
    if dtype.is_integer():
        return "whole numbers"
    if dtype.is_numeric():
        return "numbers"
    return _TYPES.get(dtype.base_type(), "text" if not dtype.is_nested() else "lists")


def values_in_words(series: pl.Series) -> str:
    """Name what a column holds."""
    empty = series.null_count() == len(series)
    return "only missing values" if empty else type_in_words(series.dtype)


def require_key(scenario: Any) -> None:
    """Say so if this is not the key of a scenario, or an empty one."""
    if not hasattr(scenario, "recode"):
        raise OptionError(
            "scenario must be the key of a scenario, as scenario_key(environment, scenario, data) "
            f"gives it. Got a {type(scenario).__name__} instead."
        )
    if not scenario.keys:
        raise OptionError(
            f"the key of scenario {scenario.name!r} is empty: nobody in it holds anything that "
            "matches the file. Nothing can be measured on it."
        )
