"""Files larger than memory: five verbs on disk, and forward selection beside a loop of DuckDB's.

Ours begins with the file: reading and encoding it counts. The rival gets the encoded columns in a
database file of its own before its clock starts, and as much memory as ours may take at most. Each
runs in a process of its own, whose memory is watched from here: mapped pages, which the system
takes back when it wants to, are apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import duckdb
from pyarrow import Table, parquet

from benchmarks.clock import say, timed
from benchmarks.rivals import CORES, DuckDB
from benchmarks.walks import Step, Walk, check_same, ours, rival_walk
from keyhole.data import Codes
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.engines.choose import open_records
from keyhole.exposure.attributes import attributes
from keyhole.exposure.cells import risk
from keyhole.selection.frontier import frontier
from keyhole.selection.solve import solve

FULL = (10**6, 10**7, 10**8)
QUICK = (2 * 10**5, 10**6)
MEMORY, MOST_MEMORY = "1GB", "2GB"
PIECE, SEEDS, HALF = 10**6, 10, len(KEYS) // 2
BUDGET = 25.0
"""After this many seconds the rival ends with the step it is in; only those are compared."""
POLL_SECONDS, LIMIT, LONGEST = 0.01, 0.05, 120.0


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
    """Write so many records of the example world, each million from a fresh seed.

    After ten millions each has half of the columns of one seed beside the other half of another.
    """
    schema = veterans_sample(1_000).frame.select(KEYS).to_arrow().schema
    made: list[Table] = []
    with parquet.ParquetWriter(file, schema) as writer:
        for number, start in enumerate(range(0, records, PIECE)):
            if number < SEEDS:
                data = veterans_sample(min(PIECE, records - start), number + 1)
                made.append(data.frame.select(KEYS).to_arrow().cast(schema))
            one, other = made[number % SEEDS], made[(number + number // SEEDS) % SEEDS]
            columns = [*one.columns[:HALF], *other.columns[HALF:]]
            table = Table.from_arrays(columns, schema=schema)
            writer.write_table(table.slice(0, min(PIECE, records - start)))


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
        "verbs": {
            name: {"seconds": seconds, "peak_anonymous_bytes": mine["peaks"].get(name, 0)}
            for name, seconds in mine["verbs"].items()
        },
        "steps": len(mine["walk"]),
        "rival": {
            "name": "DuckDB",
            "steps": steps,
            "seconds": rival,
            "ours_on_the_same_steps": own,
            "ratio": rival / own,
            "ratio_of_counting": rival / counting,
            "peak_anonymous_bytes": max(theirs["peaks"].values()),
        },
    }


def _walk(told: dict[str, Any]) -> Walk:
    return [
        Step(s["variable"], {k: tuple(v) for k, v in s["figures"].items()}, s["seconds"])
        for s in told["walk"]
    ]


def _in_a_fresh_process(who: str, file: Path, budget: float) -> dict[str, Any]:
    """Run one side, and watch its memory from outside, verb by verb."""
    command = [sys.executable, "-m", "benchmarks.disk", who, str(file), str(budget)]
    peaks: dict[str, int] = {}
    with (
        tempfile.TemporaryFile("w+") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True) as process,
    ):
        while process.poll() is None:
            stage = _stage(file).read_text() if _stage(file).exists() else ""
            peaks[stage] = max(peaks.get(stage, 0), _anonymous(process.pid))
            time.sleep(POLL_SECONDS)
        if process.returncode:
            reason = process.stderr.read() if process.stderr else ""
            raise RuntimeError(f"measuring {who} failed: {reason.strip()[-500:]}")
        out.seek(0)
        told: dict[str, Any] = json.load(out)
    return told | {"peaks": peaks}


def _anonymous(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def _stage(file: Path) -> Path:
    """Where a process writes what it is about."""
    return file.with_suffix(".stage")


class OutOfCore(DuckDB):
    """As `DuckDB`, in a database file and within the memory that ours may take."""

    name: ClassVar[str] = "DuckDB, out of core"

    def __init__(self, columns: Mapping[str, Codes], folder: Path) -> None:
        self._folder = folder
        super().__init__(columns)

    def connect(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(
            self._folder / "rival.duckdb", config={"threads": CORES, "memory_limit": MOST_MEMORY}
        )


def _run(who: str, file: Path, budget: float) -> dict[str, Any]:
    """Return how long reading and encoding the file, each verb and each step took."""
    ours(veterans_sample(2_000), KEYS, "forward")  # so that compiling is not measured
    data: Any = open_records(file, engine="disk", memory=MEMORY)
    data.require(KEYS)
    _stage(file).write_text("reading")
    reading, records = timed(lambda: data.records)
    if who == "duckdb":
        rival = OutOfCore({name: data.codes(name) for name in KEYS}, file.parent)
        _stage(file).write_text("select")
        return _told(reading, rival_walk(rival, records, KEYS, "forward", budget), {})
    walk: Walk = []
    verbs: dict[str, Callable[[Any], Any]] = {
        "select": lambda one: walk.extend(ours(one, KEYS, "forward")),
        "risk": lambda one: risk(one, keys=KEYS[:8]),
        "frontier": lambda one: frontier(
            one, keep=KEYS[:2], candidates=KEYS[2:8], limit=LIMIT, seconds=LONGEST
        ),
        "attributes": lambda one: attributes(one, keys=KEYS[:8], sensitive=KEYS[8:10]),
        "solve": lambda one: solve(one, keys=KEYS[:5], limit=LIMIT, seconds=LONGEST),
    }
    seconds = {}
    for name, run in verbs.items():
        run(veterans_sample(2_000)) if name != "select" else None
        _stage(file).write_text(name)
        seconds[name] = timed(partial(run, data))[0]
    return _told(reading, walk, seconds)


def _told(reading: float, walk: Walk, verbs: dict[str, float]) -> dict[str, Any]:
    return {"reading": reading, "walk": [asdict(step) for step in walk], "verbs": verbs}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("who", choices=("ours", "duckdb"))
    parser.add_argument("file", type=Path)
    parser.add_argument("budget", type=float)
    asked = parser.parse_args()
    print(json.dumps(_run(asked.who, asked.file, asked.budget)))
