"""Release of a protected file: the secrets of its draws, its order, and what it must not tell.

The secrets of a step depend on the seed, on its options, and on the values it treats. So two
releases with one seed do not have the same noise, which would cancel out; and who guesses a seed
still lacks the values. They do not depend on other steps: leaving a line out of a plan changes
nothing in others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from keyhole.data.columns import Variable
from keyhole.data.microdata import Microdata
from keyhole.kernels.arrays import Ints
from keyhole.protection.options import forms_of, raised
from keyhole.protection.plan import PlanStep

# Seeds below are tried out in no time.
SMALL = 1 << 32


def small_seed(seed: int | None) -> list[str]:
    """Warn of a seed that is guessed by trying."""
    if seed is None or seed >= SMALL:
        return []
    return [
        "the seed is below 2**32, and can be guessed by trying: draw one, as by "
        "python -c 'import secrets; print(secrets.randbelow(2**63))', and never use it twice"
    ]


class Secret:
    """What is drawn from a seed for one file.

    Without a seed it is drawn from the system's entropy, but for the order of the records, which
    then depends on the file alone.
    """

    def __init__(self, seed: int | None, data: Microdata) -> None:
        self._entropy = np.random.SeedSequence(seed).entropy
        self._data = data
        self._seeded = seed is not None
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
    """Return the file without what it knows of values that no record has any more; and say so.

    Categories of a dictionary and value labels are cut to those that occur. The label and the
    notes that a statistical file has of itself are left out.
    """
    origin, notes = data.origin, []
    if origin.file_label or origin.notes:
        notes.append("the label and the notes that the file had of itself are left out")
    frame = data.frame.with_columns(_cut(series) for series in data.frame)
    variables = [_labelled(frame[one.name], one) for one in data.variables]
    if any(new != old for new, old in zip(variables, data.variables, strict=True)):
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


def _labelled(series: pl.Series, variable: Variable) -> Variable:
    """Cut value labels to the values that occur."""
    labels = variable.value_labels
    there = forms_of(series.drop_nulls().unique().to_list()) if labels else set()
    kept = {value: text for value, text in labels.items() if there & forms_of([value])}
    same = len(kept) == len(labels)
    return variable if same else dataclasses.replace(variable, value_labels=kept)
