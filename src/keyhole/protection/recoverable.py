"""Recoverable values of a plan: what an outsider can derive from the columns that stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import polars as pl

from keyhole.data.columns import encode
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.exposure.recoverable import (
    Finding,
    RecordGroups,
    Treated,
    find_told,
    group_records,
    say_told,
)
from keyhole.kernels.arrays import Ints
from keyhole.protection.method import METHODS, Protected
from keyhole.protection.writeback import as_text
from keyhole.utility.information import at_detail_of


def rows_before(steps: Sequence[Protected], records: int) -> list[Ints]:
    """Return for each step which records before it are those after all steps; then all of these."""
    rows = np.arange(records)
    found = [rows]
    for step in reversed(steps):
        rows = rows if step.kept is None else step.kept[rows]
        found.append(rows)
    return found[::-1]


def rows_after(records: int, steps: Sequence[Protected]) -> list[Ints]:
    """Return after each step which records of the original are left."""
    rows, found = np.arange(records), []
    for step in steps:
        rows = rows if step.kept is None else rows[step.kept]
        found.append(rows)
    return found


def treated(
    original: Microdata, steps: Sequence[Protected], final: Microdata
) -> dict[Treated, pl.Series]:
    """Return what was done to which column, with its values before.

    It is its first suppression, and its first other step.
    """
    found: dict[tuple[str, bool], tuple[Treated, pl.Series]] = {}
    rows, before = rows_before(steps, final.records), original
    for place, step in enumerate(steps):
        for name, count in step.by_column.items():
            effect = METHODS[step.method].effect
            where = name, effect == "suppresses"
            if not count or where in found or effect == "samples":
                continue
            old = before.select([name]).replace(frame=before.frame[[name]][rows[place]])
            if not where[1]:
                found[where] = _changed(old, step, name, rows[place + 1])
            elif name in final.names:
                found[where] = _suppressed(old, final, name)
        before = step.data
    return {one: values for one, values in found.values() if one.hidden.any()}


def _suppressed(old: Microdata, final: Microdata, name: str) -> tuple[Treated, pl.Series]:
    truth, seen = old.column(name), final.column(name)
    codes, shown = _coded(truth, seen)
    if ((codes != shown) & (shown >= 0)).any():  # a later step made it coarser, or changed it
        truth = at_detail_of(old, final, [name]).column(name)
        codes, shown = _coded(truth, seen)
    hidden = (shown < 0) & (codes >= 0)
    return Treated(name, "suppresses", codes, shown, hidden), truth


def _changed(old: Microdata, step: Protected, name: str, rows: Ints) -> tuple[Treated, pl.Series]:
    truth, effect = old.column(name), METHODS[step.method].effect
    if name not in step.data.names:
        codes, _ = _coded(truth, truth)
        return Treated(name, effect, codes, np.full(len(codes), -1), codes >= 0), truth
    codes, shown = _coded(truth, step.data.column(name).gather(pl.Series(rows, dtype=pl.UInt32)))
    return Treated(name, effect, codes, shown, (codes != shown) & (codes >= 0)), truth


def _coded(one: pl.Series, other: pl.Series) -> tuple[Ints, Ints]:
    """Number the values of two columns alike; -1 is missing."""
    if one.dtype != other.dtype:
        numbers = one.dtype.is_numeric() and other.dtype.is_numeric()
        one, other = (x.cast(pl.Float64) if numbers else as_text(x) for x in (one, other))
    codes = encode(pl.concat([one.alias("value"), other.alias("value")]))
    values = codes.values.astype(np.int64)
    values = np.where(values == len(codes.levels), -1, values)
    return values[: len(one)], values[len(one) :]


@dataclass(frozen=True, slots=True, eq=False)
class Recoverable:
    """What can be read off a release: what is to be said of it, and the file with it put back."""

    findings: tuple[Finding, ...]
    values: Mapping[Treated, pl.Series]
    final: Microdata

    def warnings(self) -> list[str]:
        """Say which columns tell which others."""
        return say_told(self.findings)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of which values can be read off."""
        return tuple(dict.fromkeys(finding.one.name for finding in self.findings))

    def put_back(self) -> Microdata:
        """Return the file as an outsider can make it: with what can be read off."""
        data = self.final
        # What was suppressed first: what stood there before the other steps is told by others.
        for finding in sorted(self.findings, key=lambda one: not one.one.is_suppressed):
            one, told = finding.one, pl.Series(finding.told)
            name, truth = one.name, self.values[one]
            seen = data.column(name) if name in data.names else truth.clear(data.records)
            if seen.dtype != truth.dtype:
                seen, truth = as_text(seen), as_text(truth)
            put = pl.select(pl.when(told).then(truth).otherwise(seen).alias(name)).to_series()
            # Afresh: its cells are no longer the file's, with missing codes among them.
            rest = data.select([other for other in data.names if other != name])
            data = rest.replace(frame=rest.frame.with_columns(put))
        return data


def find_recoverable(
    original: Microdata, steps: Sequence[Protected], final: Microdata, *, keep_order: bool = False
) -> Recoverable:
    """Find what an outsider can read off a release, if need be in the order of the records."""
    values = treated(original, steps, final)
    groups = _grouped(final) if values else {}
    kinds = {name: final.column(name).dtype for name in groups}
    numbering = [n for n, kind in kinds.items() if kind.is_numeric() or kind.is_temporal()]
    found = find_told(list(values), groups, numbering, keep_order=keep_order)
    return Recoverable(found, values, final)


def _grouped(final: Microdata) -> dict[str, RecordGroups]:
    """Group the records by every column; one that holds lists or objects tells nothing here."""
    found = {}
    for name in final.names:
        with suppress(ColumnError):
            found[name] = final.codes(name).values.astype(np.int64)
    return group_records(found)
