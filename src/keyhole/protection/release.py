"""Release of a protected file: the secrets of its draws, its order, and what it must not tell.

The secrets of a step depend on the seed, on its options, and on the values it treats. So two
releases with one seed do not have the same noise, which would cancel out; and who guesses a seed
still lacks the values. They do not depend on other steps: leaving a line out of a plan changes
nothing in others. What an outsider can derive from the columns that stay is recoverable.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from keyhole.data.columns import encode
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.exposure import recoverable
from keyhole.kernels.arrays import Ints
from keyhole.protection.method import METHODS, Protected
from keyhole.protection.options import forms_of, raised
from keyhole.protection.plan import PlanStep
from keyhole.protection.writeback import as_text
from keyhole.utility.information import at_detail_of

# Seeds below are tried out in no time.
SMALL = 1 << 32


class Secret:
    """What is drawn from a seed for one file."""

    def __init__(self, seed: int | None, data: Microdata) -> None:
        self._entropy = np.random.SeedSequence(seed).entropy
        self._data = data
        self._seeded = seed is not None  # else the order depends on the file alone
        self._seen: dict[int, int] = {}

    def of(self, step: PlanStep) -> np.random.SeedSequence:
        """Return the secret of a step's draws; of the same step again, another one."""
        options = json.dumps(step.effective, sort_keys=True, default=str)
        named = step.definition.columns(step.options)
        treated = _of_columns(self._data, named) if named else _of_file(self._data)
        what = hashlib.sha256(f"{step.method} {options} {treated}".encode())
        number = int.from_bytes(what.digest()[:16], "big")
        self._seen[number] = self._seen.get(number, 0) + 1
        return np.random.SeedSequence(self._entropy, spawn_key=(number, self._seen[number]))

    def order(self, records: int) -> Ints:
        """Return the order in which so many records go out."""
        number = int.from_bytes(hashlib.sha256(_of_file(self._data).encode()).digest()[:16], "big")
        entropy = self._entropy if self._seeded else 0
        sequence = np.random.SeedSequence(entropy, spawn_key=(number,))
        return np.random.default_rng(sequence).permutation(records)


def _of_columns(data: Microdata, names: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        codes = data.codes(name)
        levels = "\0".join(map(str, codes.levels.to_list()))
        digest.update(f"{name}\0{levels}\0".encode(errors="replace"))
        digest.update(codes.values.tobytes())
    return digest.hexdigest()


def _of_file(data: Microdata) -> str:
    """Hash all columns; by their bytes, which is quicker than by their values."""
    frame = data.frame.select(pl.exclude(pl.Object)).rechunk()
    held = io.BytesIO()
    try:
        frame.write_ipc(held, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    except pl.exceptions.PolarsError:
        columns = {name: partial(data.column, name) for name in data.names}
        return _of_columns(data, [name for name, read in columns.items() if not raised(read)])
    return hashlib.sha256(held.getbuffer()).hexdigest()


def trimmed(data: Microdata) -> tuple[Microdata, list[str]]:
    """Return the file without what it knows of values that no record has any more; and say so."""
    origin, notes = data.origin, []
    if origin.file_label or origin.notes:
        notes.append("the file's own label and notes are left out")
    frame, variables = data.frame.with_columns(_cut(series) for series in data.frame), []
    for one in data.variables:
        labels = one.value_labels
        there = forms_of(frame[one.name].drop_nulls().unique().to_list()) if labels else set()
        kept = {value: text for value, text in labels.items() if there & forms_of([value])}
        fewer = len(kept) < len(labels)
        variables.append(dataclasses.replace(one, value_labels=kept) if fewer else one)
    if any(new is not old for new, old in zip(variables, data.variables, strict=True)):
        notes.append("labels of values that no record has are left out")
    types = origin.types
    if isinstance(types, dict) and "category" in map(str, types.values()):
        # Those of a pandas frame carry categories of their own.
        types = {name: dtype for name, dtype in types.items() if str(dtype) != "category"}
    if not notes and frame.schema == data.frame.schema and types is origin.types:
        return data, []
    origin = dataclasses.replace(origin, file_label="", notes=(), types=types)
    return Microdata(frame, tuple(variables), name=data.name, origin=origin), notes


def _cut(series: pl.Series) -> pl.Series:
    """Cut a dictionary to the categories that occur."""
    if series.dtype == pl.Categorical:
        return series.cast(pl.String).cast(series.dtype)
    if not isinstance(series.dtype, pl.Enum):
        return series
    there = set(series.drop_nulls().unique().to_list())
    kept = [one for one in series.dtype.categories.to_list() if one in there]
    return series.cast(pl.String).cast(pl.Enum(kept))


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
) -> dict[recoverable.Treated, pl.Series]:
    """Return what was done to which column, with its values before.

    It is its first suppression, and its first other step.
    """
    found: dict[tuple[str, bool], tuple[recoverable.Treated, pl.Series]] = {}
    rows, before = rows_before(steps, final.records), original
    for place, step in enumerate(steps):
        for name, count in step.by_column.items():
            effect = METHODS[step.method].effect
            where = name, effect == "suppresses"
            if not count or where in found or effect == "samples":
                continue
            old = before.select([name]).replace(frame=before.frame[[name]][rows[place]])
            truth, file = old.column(name), final if where[1] else step.data
            if name in file.names:
                after = pl.Series(rows[-1 if where[1] else place + 1], dtype=pl.UInt32)
                seen = file.column(name).gather(after)
                codes, shown = _coded(truth, seen)
                if where[1] and ((codes != shown) & (shown >= 0)).any():
                    # A later step made it coarser, or changed it.
                    truth = at_detail_of(old, final, [name]).column(name)
                    codes, shown = _coded(truth, seen)
            elif where[1]:
                continue
            else:
                codes, _ = _coded(truth, truth)
                shown = np.full(len(codes), -1)
            hidden = (shown < 0 if where[1] else codes != shown) & (codes >= 0)
            found[where] = recoverable.Treated(name, effect, codes, shown, hidden), truth
        before = step.data
    return {one: values for one, values in found.values() if one.hidden.any()}


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

    findings: tuple[recoverable.RecoveredValues, ...]
    values: Mapping[recoverable.Treated, pl.Series]
    final: Microdata

    def warnings(self) -> list[str]:
        """Say which columns tell which others."""
        return recoverable.say_told(self.findings)

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
    values, codes = treated(original, steps, final), dict[str, Ints]()
    for name in final.names if values else ():
        with suppress(ColumnError):  # one that holds lists or objects tells nothing here
            codes[name] = final.codes(name).values.astype(np.int64)
    groups = recoverable.group_records(codes)
    kinds = {name: final.column(name).dtype for name in groups}
    numbering = [n for n, kind in kinds.items() if kind.is_numeric() or kind.is_temporal()]
    found = recoverable.find_told(list(values), groups, numbering, keep_order=keep_order)
    return Recoverable(found, values, final)
