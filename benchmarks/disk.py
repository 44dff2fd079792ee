"""Files larger than memory: forward selection on disk beside a loop of DuckDB's, and the memory.

Ours begins with the file: reading and encoding it counts. The rival gets the encoded columns in a
table of its own before its clock starts. Each runs in a process of its own, whose memory is
watched from here: mapped pages, which the system takes back when it wants to, are apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyarrow import parquet

from benchmarks.clock import say, timed
from benchmarks.rivals import DuckDB
from benchmarks.walks import Step, Walk, check_same, ours, rival_walk
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.engines.choose import open_records

FULL = (10**6, 3 * 10**6, 10**7, 3 * 10**7)
QUICK = (2 * 10**5, 10**6)
MEMORY = "1GB"
PIECE = 10**6
BUDGET = 2400.0
"""After this many seconds the rival ends with the step it is in; only those are compared."""
POLL_SECONDS = 0.01


def measure_disk(sizes: Sequence[int], budget: float = BUDGET) -> list[dict[str, Any]]:
    """Measure every size; the files are removed as soon as they are done with."""
    out = []
    for records in sizes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "world.parquet")
            say(f"disk: making {records:,} records")
            write_world(file, records)
            out.append(_case(file, records, budget))
    return out


def write_world(file: Path, records: int) -> None:
    """Write so many records of the example world, each million from a fresh seed."""
    schema = veterans_sample(1_000).frame.select(KEYS).to_arrow().schema
    with parquet.ParquetWriter(file, schema) as writer:
        for seed, start in enumerate(range(0, records, PIECE), 1):
            data = veterans_sample(min(PIECE, records - start), seed)
            writer.write_table(data.frame.select(KEYS).to_arrow().cast(schema))


def _case(file: Path, records: int, budget: float) -> dict[str, Any]:
    say(f"disk: {records:,} records, ours")
    mine = _in_a_fresh_process("ours", file, budget)
    say(f"disk: {records:,} records, DuckDB")
    theirs = _in_a_fresh_process("duckdb", file, budget)
    steps = len(theirs["walk"])
    check_same(_walk(mine), _walk(theirs), "DuckDB")
    counting, rival = (sum(s["seconds"] for s in w["walk"][:steps]) for w in (mine, theirs))
    own = mine["reading"] + counting
    return {
        "records": records,
        "keys": len(KEYS),
        "memory": MEMORY,
        "file_bytes": file.stat().st_size,
        "seconds": mine["reading"] + sum(s["seconds"] for s in mine["walk"]),
        "reading_seconds": mine["reading"],
        "peak_anonymous_bytes": mine["anonymous"],
        "peak_resident_bytes": mine["resident"],
        "steps": len(mine["walk"]),
        "rival": {
            "name": "DuckDB",
            "steps": steps,
            "seconds": rival,
            "ours_on_the_same_steps": own,
            "ratio": rival / own,
            "ratio_of_counting": rival / counting,
            "peak_anonymous_bytes": theirs["anonymous"],
        },
    }


def _walk(told: dict[str, Any]) -> Walk:
    return [
        Step(s["variable"], {k: tuple(v) for k, v in s["figures"].items()}, s["seconds"])
        for s in told["walk"]
    ]


def _in_a_fresh_process(who: str, file: Path, budget: float) -> dict[str, Any]:
    """Run one side, and watch its memory from outside."""
    command = [sys.executable, "-m", "benchmarks.disk", who, str(file), str(budget)]
    peaks = {"RssAnon": 0, "VmRSS": 0}
    with (
        tempfile.TemporaryFile("w+") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True) as process,
    ):
        while process.poll() is None:
            for name, held in _held(process.pid).items():
                peaks[name] = max(peaks[name], held)
            time.sleep(POLL_SECONDS)
        if process.returncode:
            reason = process.stderr.read() if process.stderr else ""
            raise RuntimeError(f"measuring {who} failed: {reason.strip()[-500:]}")
        out.seek(0)
        told: dict[str, Any] = json.load(out)
    return told | {"anonymous": peaks["RssAnon"], "resident": peaks["VmRSS"]}


def _held(process: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    wanted = (line.split() for line in lines if line.startswith(("RssAnon", "VmRSS")))
    return {parts[0].rstrip(":"): int(parts[1]) * 1024 for parts in wanted}


def _run(who: str, file: Path, budget: float) -> tuple[float, Walk]:
    """Return how long it took to read and encode the file, and the walk."""
    ours(veterans_sample(2_000), KEYS, "forward")  # so that compiling is not measured
    data: Any = open_records(file, engine="disk", memory=MEMORY)
    data.require(KEYS)
    reading, records = timed(lambda: data.records)
    if who == "ours":
        return reading, ours(data, KEYS, "forward")
    rival = DuckDB({name: data.codes(name) for name in KEYS})
    return reading, rival_walk(rival, records, KEYS, "forward", budget)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("who", choices=("ours", "duckdb"))
    parser.add_argument("file", type=Path)
    parser.add_argument("budget", type=float)
    asked = parser.parse_args()
    seconds, walk = _run(asked.who, asked.file, asked.budget)
    print(json.dumps({"reading": seconds, "walk": [asdict(step) for step in walk]}))
