"""What perturbing the public file bought: the study again, with the values as they were.

The internal file may carry the linking values before they were perturbed (Singer & Dajani,
section 1.1). They replace the PUF's for the records that the internal file names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from keyhole.data.microdata import Microdata
from keyhole.reidentification.files import WIDE
from keyhole.reidentification.rates import Rates
from keyhole.reidentification.truth import Truth
from keyhole.results import Table, share

__all__ = ["Perturbation", "Restored", "restore"]


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
class Perturbation:
    """The rates with the values as they were, beside what was changed.

    Parameters
    ----------
    records
        PUF records whose values the internal file carries.
    changed
        By linking variable, how many of their values were perturbed.
    without
        The rates without the perturbation.
    """

    records: int
    changed: Mapping[str, int]
    without: Rates

    def to_dict(self, with_it: Rates) -> dict[str, Any]:
        """Return the figures as plain values, beside the rates with the perturbation."""
        return {
            "records": self.records,
            "changed": dict(self.changed),
            "without": self.without.to_dict(),
            "bought": {
                "confirmed": self.without.confirmed - with_it.confirmed,
                "confirmed_rate": _less(self.without.confirmed_rate.value, with_it.confirmed_rate),
                "conditional_rate": _less(self.without.conditional.value, with_it.conditional),
            },
        }

    def table(self, with_it: Rates) -> Table:
        """Set the rates with and without the perturbation side by side."""
        pairs = [
            ("suspected", self.without.putative, with_it.putative),
            ("confirmed", self.without.confirmed_rate, with_it.confirmed_rate),
            ("conditional", self.without.conditional, with_it.conditional),
            ("pairs that are true", self.without.pair_precision, with_it.pair_precision),
        ]
        rows = [[name, share(one.value), share(two.value)] for name, one, two in pairs]
        changed = ", ".join(f"{name} {count:,}" for name, count in self.changed.items())
        notes = [f"Values perturbed, in {self.records:,} records of the IUF: {changed}."]
        columns = ["rate", "without it", "with it"]
        return Table("What the perturbation bought", columns, rows, notes)


def _less(before: float | None, after: Any) -> float | None:
    return None if before is None or after.value is None else before - after.value


def restore(puf: Microdata, iuf: Microdata, truth: Truth, link: Sequence[str]) -> Restored | None:
    """Put the values that the internal file carries in place of the PUF's own.

    Parameters
    ----------
    puf, iuf
        The two files.
    truth
        Which PUF record each row of the IUF names.
    link
        The linking variables; those that the IUF has are restored.

    Returns
    -------
    Restored
        Or nothing if the internal file has none of the linking variables.
    """
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
