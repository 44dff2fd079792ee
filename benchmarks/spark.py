"""Spark on this machine's cores: forward selection beside memory and beside a loop of PySpark's.

Ours begins with the file: reading and encoding it counts. The loop is what a user would write,
one `groupBy` a candidate over the file's columns, which Spark has cached before its clock starts.
Each runs in a process of its own, and must find what memory finds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from benchmarks.clock import say, timed
from benchmarks.disk import write_world
from benchmarks.rivals import CUTOFF, Count, Key, Kind
from benchmarks.spark_study import DRIVER, MASTER, measure_spark_study, measure_spark_synthesis
from benchmarks.walks import Step, Walk, check_same, ours, rival_walk
from keyhole.data.examples import KEYS, veterans_sample
from keyhole.engines.choose import open_records
from keyhole.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


BUDGET = 20.0
"""After this many seconds the loop ends with the step it is in; only those are compared."""
SIDES = ("memory", "spark", "loop")


def measure_spark(records: int, budget: float = BUDGET) -> dict[str, Any]:
    """Measure everything that runs on Spark."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "world.parquet")
        say(f"spark: making {records:,} records")
        write_world(file, records)
        selection = _selection(file, records, budget)
    return {
        "master": MASTER,
        "selection": selection,
        "study": measure_spark_study(records // 10),
        "synthesis": measure_spark_synthesis(records // 10),
    }


def _selection(file: Path, records: int, budget: float) -> dict[str, Any]:
    told = {}
    for who in SIDES:
        say(f"spark: {records:,} records, {who}")
        told[who] = _in_a_fresh_process(who, file, budget)
    walks = {who: _walk(one) for who, one in told.items()}
    for who in ("spark", "loop"):
        check_same(walks["memory"], walks[who], who)
    steps = len(walks["loop"])
    own, loop = (sum(s.seconds for s in walks[who][:steps]) for who in ("spark", "loop"))
    jobs = np.diff(told["spark"]["jobs"]).tolist()
    return {
        "records": records,
        "keys": len(KEYS),
        "steps": len(walks["spark"]),
        "most_jobs_a_step": max(jobs),
        "loop_jobs": told["loop"]["jobs"][-1] / steps,
        "seconds": told["spark"]["reading"] + sum(s.seconds for s in walks["spark"]),
        "reading_seconds": told["spark"]["reading"],
        "memory_seconds": told["memory"]["reading"] + sum(s.seconds for s in walks["memory"]),
        "loop_steps": steps,
        "loop_seconds": loop,
        "ratio": loop / (told["spark"]["reading"] + own),
        "ratio_of_counting": loop / own,
    }


def _walk(told: dict[str, Any]) -> Walk:
    return [
        Step(s["variable"], {k: tuple(v) for k, v in s["figures"].items()}, s["seconds"])
        for s in told["walk"]
    ]


def _in_a_fresh_process(who: str, file: Path, budget: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.spark", who, str(file), str(budget)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": DRIVER},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"measuring {who} failed: {done.stderr.strip()[-500:]}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


class Loop:
    """One `groupBy(...).count()` a key."""

    name: ClassVar[str] = "PySpark"
    kind: ClassVar[Kind] = "loop"

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame.select(*KEYS).cache()
        self._frame.count()

    def start(self) -> None:
        """There is nothing to forget."""

    def count(self, base: Key, keys: Sequence[Key]) -> list[Count]:  # noqa: ARG002
        return [self._one(key) for key in keys]

    def _one(self, key: Key) -> Count:
        from pyspark.sql import functions as F  # noqa: N812

        sizes = self._frame.groupBy(*key).count()
        few = F.sum(F.when(F.col("count") < CUTOFF, F.col("count")).otherwise(0))
        cells, at_risk = sizes.agg(F.count("*"), few).first()
        return int(cells), int(at_risk)


def _run(who: str, file: Path, budget: float) -> dict[str, Any]:
    """Return how long it took to read and encode the file, the walk, and Spark's jobs."""
    if who == "memory":
        ours(veterans_sample(2_000), KEYS, "forward")  # so that compiling is not measured
        reading, data = timed(lambda: _opened(file, "memory"))
        return _told(reading, ours(data, KEYS, "forward"), [])
    session = open_session(MASTER)
    _warm(session)
    tracker = session.sparkContext.statusTracker()
    session.sparkContext.setJobGroup("walk", "measured")
    if who == "loop":
        loop = Loop(session.read.parquet(str(file)))
        session.sparkContext.setJobGroup("steps", "measured")
        walk = rival_walk(loop, _records(file), KEYS, "forward", budget)
        return _told(0.0, walk, [len(tracker.getJobIdsForGroup("steps"))])
    reading, data = timed(lambda: _opened(file, "spark"))
    jobs: list[int] = []

    def note(_: str) -> None:
        jobs.append(len(tracker.getJobIdsForGroup("walk")))

    walk = ours(data, KEYS, "forward", note)
    note("")
    return _told(reading, walk, jobs)


def _opened(file: Path, engine: str) -> Any:
    """Open the file and encode it."""
    from keyhole.engines.choose import engine_of

    data: Any = open_records(file, engine=engine)
    data.require(KEYS)
    engine_of(data, KEYS).tally((), cutoff=CUTOFF)
    return data


def _records(file: Path) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(file).num_rows)


def _warm(session: Any) -> None:
    """Start what Spark starts with the first query, the workers' Python too."""

    def same(batches: Any) -> Any:
        yield from batches

    session.range(1_000).mapInArrow(same, "id long").groupBy("id").count().count()


def _told(reading: float, walk: Walk, jobs: list[int]) -> dict[str, Any]:
    return {"reading": reading, "walk": [asdict(step) for step in walk], "jobs": jobs}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("who", choices=SIDES)
    parser.add_argument("file", type=Path)
    parser.add_argument("budget", type=float)
    asked = parser.parse_args()
    print(json.dumps(_run(asked.who, asked.file, asked.budget)))
