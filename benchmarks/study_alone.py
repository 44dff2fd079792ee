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

import polars as pl

from benchmarks.clock import say, timed
from benchmarks.memory import forget_the_highest, held
from benchmarks.study_files import Files, make_files, variables_of

MOST_SECONDS = 1800.0
"""Whoever takes longer is stopped, and the page says so."""
SMALL = 500


@dataclass(frozen=True, slots=True)
class Alone:
    """Files of so many records and variables to link."""

    metric: str
    records: int
    variables: int


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("metric")
    asked = parser.parse_args()
    print(json.dumps(_measure(asked.folder, asked.metric)))
