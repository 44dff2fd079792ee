"""Linking without rivals, each in a process of its own: seconds and the highest memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.clock import say, timed
from benchmarks.memory import forget_the_highest, held
from benchmarks.study_files import CAP, Files, make_files, variables_of
from keyhole.reidentification.neighbours import find_nearest

MOST_SECONDS = 1800.0
"""Whoever takes longer is stopped, and the page says so."""
SMALL = 500


@dataclass(frozen=True, slots=True)
class Alone:
    """Files of so many records and variables to link; against a plain tree too, if asked."""

    metric: str
    records: int
    variables: int
    plain: bool = False


def measure_alone(case: Alone) -> dict[str, Any]:
    """Measure in a fresh process that reads two Parquet files."""
    say(f"study alone: {case.metric}, {case.records:,} records x {case.variables}")
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(case.records, variables_of(case.variables))
        files.puf.write_parquet(Path(folder, "puf.parquet"))
        files.eif.write_parquet(Path(folder, "eif.parquet"))
        del files
        return {**asdict(case), **_in_a_fresh_process(folder, case)}


def _in_a_fresh_process(folder: str, case: Alone) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.study_alone", folder, case.metric]
    if case.plain:
        command.append("--plain")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"seconds": None, "most_seconds": MOST_SECONDS}
    if done.returncode:
        raise RuntimeError(f"linking alone failed: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure(folder: Path, metric: str) -> dict[str, Any]:
    """Measure in this process: what importing and compiling take is not counted."""
    names = ("puf", "eif")
    width = pl.read_parquet_schema(folder / "puf.parquet")
    make_files(SMALL, list(width)).link(metric)
    before = held("VmRSS")
    files = Files(*(pl.read_parquet(folder / f"{name}.parquet") for name in names))
    given = held("VmRSS") - before
    forget_the_highest()
    seconds, pairs = timed(lambda: files.link(metric))
    return {
        "seconds": seconds,
        "input_bytes": given,
        "peak_bytes": held("VmHWM") - before,
        "pairs": pairs.pairs,
        "suspected": pairs.suspected,
    }


def _measure_plain(folder: Path, metric: str) -> dict[str, float]:
    """Measure the search itself, as it is and as a plain tree; both must find the same."""
    files = Files(*(pl.read_parquet(folder / f"{name}.parquet") for name in ("puf", "eif")))
    costs = files.costs(metric)
    ours, found = timed(lambda: find_nearest(costs, None, CAP))
    plain, theirs = timed(lambda: find_nearest(costs, None, CAP, trees=1, scans=False))
    for name in ("puf", "eif", "keys", "ranks"):
        if not np.array_equal(getattr(found, name), getattr(theirs, name)):
            raise AssertionError(f"a plain tree finds other {name} than two trees and scans")
    return {"search_seconds": ours, "plain_seconds": plain, "plain_ratio": plain / ours}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("metric")
    parser.add_argument("--plain", action="store_true")
    asked = parser.parse_args()
    measured = _measure(asked.folder, asked.metric)
    if asked.plain:
        measured |= _measure_plain(asked.folder, asked.metric)
    print(json.dumps(measured))
