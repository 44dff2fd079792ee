"""One key counted, and forward selection from the file: reading and encoding count for everybody.

The rivals' loops read with Polars, text becomes its physical codes, and the answers are compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from benchmarks.clock import interleaved, say, spread
from benchmarks.files import encoded_alone, keys_of, sample
from benchmarks.rivals import CUTOFF, DuckDB, Key, PackedNumpy, Polars, Rival
from benchmarks.targets import SPREAD, Target, spread_cells
from benchmarks.walks import Walk, check_same, ours, rival_walk
from keyhole.data import Codes, Microdata, load
from keyhole.exposure.cells import risk

OURS, METHOD, LONGEST = "keyhole", "forward", 60.0
BUDGET = 8.0
"""Seconds for all turns of who reads a file."""
RIVALS: tuple[type[Rival], ...] = (DuckDB, Polars, PackedNumpy)
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def measure_sources(sizes: Sequence[int]) -> dict[str, Any]:
    """Measure RP on keys of several sizes, and the whole path from a Parquet and a CSV file."""
    found: dict[str, Any] = {"keys": [], "files": []}
    for records in sizes:
        data = sample(records)
        found["keys"] += [_one_key(data, keys_of(count)) for count in (1, 8, 16)]
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, f"sample.{kind}") for kind in ("parquet", "csv")]
            frame = data.frame.select(keys_of(16))
            frame.write_parquet(files[0])
            frame.write_csv(files[1])
            found["files"] += [_from_file(file, records, keys_of(16)) for file in files]
    return found


def _one_key(data: Microdata, keys: Key) -> dict[str, Any]:
    say(f"sources: one key of {len(keys)}, {data.records:,} records")
    held = encoded_alone(data, keys)
    codes = {name: held.codes(name) for name in keys}

    def count() -> tuple[int, int]:
        found = risk(held, keys=keys, cutoff=CUTOFF)
        return found.cells, round(found.rp * found.records)

    ways: dict[str, Callable[[], Any]] = {OURS: count}
    for make in RIVALS:
        ways[make.name] = partial(_count, make(codes), keys)
    for run in ways.values():
        run()
    runs = interleaved(ways)
    if len({found for _, found in runs.values()}) > 1:
        raise AssertionError("the cells of a key are counted differently")
    return {"records": data.records, "keys": len(keys), **_beside(runs)}


def _count(rival: Rival, keys: Key) -> tuple[int, int]:
    rival.start()  # who packs the columns does so for this key
    return rival.count((), [keys])[0]


def _from_file(file: Path, records: int, keys: Key) -> dict[str, Any]:
    say(f"sources: forward selection from {file.suffix[1:]}, {records:,} x {len(keys)}")
    ways: dict[str, Callable[[], Any]] = {OURS: lambda: ours(load(file), keys, METHOD)}
    for make in RIVALS:
        ways[make.name] = partial(_walk, make, file, keys)
    runs = interleaved(ways, budget=BUDGET)
    for name, (_, walk) in runs.items():
        check_same(runs[OURS][1], walk, name)
    times = interleaved({"": partial(_encode, file, keys)})[""][0]
    reading = median(times) / median(runs[OURS][0])
    about = {"kind": file.suffix[1:], "records": records, "keys": len(keys), "reading": reading}
    return {**about, **_beside(runs)}


def _walk(make: type[Rival], file: Path, keys: Key) -> Walk:
    read = pl.read_parquet if file.suffix == ".parquet" else pl.read_csv
    frame = read(file)
    codes = {name: _as_codes(frame[name]) for name in keys}
    return rival_walk(make(codes), frame.height, keys, METHOD, LONGEST)


def _as_codes(column: pl.Series) -> Codes:
    """Return a column as small numbers, the missing values as one more."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical).to_physical()
    column = column.cast(pl.Int64)
    if column.has_nulls():
        column = column.fill_null(int(column.max() or 0) + 1)  # type: ignore[call-overload]
    values = (column - column.min()).to_numpy()
    most = int(values.max())
    return Codes(values.astype(np.min_scalar_type(most)), tuple(map(str, range(most + 1))), False)


def _encode(file: Path, keys: Key) -> None:
    data = load(file)
    for name in keys:
        data.codes(name)


def _beside(runs: Mapping[str, tuple[list[float], Any]]) -> dict[str, Any]:
    own = runs[OURS][0]
    others = [(name, times) for name, (times, _) in runs.items() if name != OURS]
    return {**spread(own), "rivals": [{"name": n, **spread(times, own)} for n, times in others]}


def sources_sections(found: Mapping[str, Any] | None, table: Table) -> Iterator[str]:
    """Yield the sections of the page; `table` lays a table out."""
    if not found:
        return
    rows = []
    for case in (*found["keys"], *found["files"]):
        reading = f"{case['reading']:.0%}" if "reading" in case else ""
        rows.append([_said(case), *spread_cells(case), reading])
        rows += [[f"… {one['name']}", *spread_cells(one), ""] for one in case["rivals"]]
    yield (
        "## One key, and selection from the file\n\nCells, RP and CR of one key from encoded "
        "columns; then the whole path of forward selection, reading and encoding included, and "
        "what share of ours that is.\n\n" + table(["what", *SPREAD, "of it reading"], rows)
    )


def _said(case: Mapping[str, Any]) -> str:
    size = f"{case['records']:,} x {case['keys']}"
    return f"forward from {case['kind']}, {size}" if "kind" in case else f"one key, {size}"


def sources_targets(found: Mapping[str, Any] | None) -> Iterator[Target]:
    """Yield that nobody is quicker."""
    for case in (*found["keys"], *found["files"]) if found else ():
        worst = min(case["rivals"], key=lambda rival: rival["ratio"])
        yield Target(f"{_said(case)}, against {worst['name']}", worst["ratio"], 1.0, "times", True)
