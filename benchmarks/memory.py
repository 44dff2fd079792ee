"""The highest memory of a selection, each measured in a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.clock import say
from benchmarks.files import keys_of, sample
from keyhole.data import load
from keyhole.data.examples import veterans_sample
from keyhole.selection.select import select

ALLOWED = 6
"""How many times the encoded table a selection may take, on top of its input."""
STATUS = Path("/proc/self/status")
LIMITS = {"forward": 1.0, "backward": 0.0}


def measure_memory(records: int, keys: int) -> list[dict[str, Any]]:
    """Measure forward and backward selection over a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sample.parquet")
        sample(records).frame.select(keys_of(keys)).write_parquet(file)
        return [_in_a_fresh_process(file, method) for method in LIMITS]


def _in_a_fresh_process(file: Path, method: str) -> dict[str, Any]:
    say(f"memory: {method}")
    command = [sys.executable, "-m", "benchmarks.memory", str(file), method]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring memory failed: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure(file: Path, method: str) -> dict[str, Any]:
    """Measure in this process: what importing and compiling take is not counted."""
    small = veterans_sample(2_000)
    select(small, method=method, candidates=keys_of(16), limit=LIMITS[method])
    before = held("VmRSS")
    frame = pl.read_parquet(file)
    given = held("VmRSS") - before
    forget_the_highest()
    select(load(frame), method=method, candidates=frame.columns, limit=LIMITS[method])
    encoded, peak = frame.height * frame.width, held("VmHWM") - before
    return {
        "method": method,
        "records": frame.height,
        "keys": frame.width,
        "encoded_bytes": encoded,
        "input_bytes": given,
        "peak_bytes": peak,
        "times_encoded_beyond_input": (peak - given) / encoded,
        "allowed": ALLOWED,
    }


def held(which: str) -> int:
    """Return the bytes that this process holds (VmRSS) or the most it held (VmHWM).

    Not `ru_maxrss` where it can be helped: a child begins with its parent's.
    """
    if not STATUS.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) * 1024


def forget_the_highest() -> None:
    """Begin VmHWM anew, so that reading the file is not taken for part of the selection."""
    with contextlib.suppress(OSError):
        STATUS.with_name("clear_refs").write_text("5")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("method", choices=LIMITS)
    asked = parser.parse_args()
    print(json.dumps(_measure(asked.file, asked.method)))
