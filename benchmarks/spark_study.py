"""Studies in strata and synthesis in subgroups on this machine's cores: Spark beside memory.

Both begin with the files and must give the same answers, to the last figure and value. Each is
run once before its clock starts, on a small world, so that compiling and starting Python are not
measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.clock import say, timed
from keyhole.data.examples import veterans, veterans_sample
from keyhole.reidentification.study import study
from keyhole.spark.session import open_session
from keyhole.synthesis.synthesise import synthesise

MASTER = "local[2]"
DRIVER = "--driver-memory 4g pyspark-shell"
METRICS = ("unicity", "taxicab", "euclidean")
LINK = ("sex", "age", "ms", "ethnic", "race1", "psx", "income")
STUDY: dict[str, Any] = {
    "puf_id": "puf_id",
    "eif_id": "eif_id",
    "link": LINK,
    "numeric": ["age", "income"],
    "strata": ["homstate"],
}
SYNTHESIS: dict[str, Any] = {
    "keys": ["sex", "age", "race1", "ms", "homstate"],
    "targets": ["race1", "age", "income"],
    "strata": ["sex", "ag8r"],
    "drop": ["puf_id", "household"],
    "implicates": 5,
    "seed": 1,
    "self_match": 0,
}
SMALL = 2_000


def measure_spark_study(records: int) -> list[dict[str, Any]]:
    """Attack so many records with as many, within states, by three metrics."""
    return _in_a_fresh_process("study", records)


def measure_spark_synthesis(records: int) -> list[dict[str, Any]]:
    """Draw five implicates of so many records, by sex and age group."""
    return _in_a_fresh_process("synthesis", records)


def _in_a_fresh_process(what: str, records: int) -> list[dict[str, Any]]:
    say(f"spark: {what} of {records:,} records")
    command = [sys.executable, "-m", "benchmarks.spark_study", what, str(records)]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": DRIVER}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring {what} failed: {done.stderr.strip()[-500:]}")
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _studies(records: int) -> list[dict[str, Any]]:
    session = open_session(MASTER)
    out = []
    with tempfile.TemporaryDirectory() as folder:
        small, large = _three_files(Path(folder, "s"), SMALL), _three_files(Path(folder), records)
        for metric in METRICS:
            asked = {**STUDY, "metric": metric}
            here = _after_once(lambda files, asked=asked: study(**files, **asked), small, large)
            there = _after_once(
                lambda files, asked=asked: study(**files, **asked, engine=session), small, large
            )
            if here[1].to_dict() != there[1].to_dict():
                raise AssertionError(f"Spark and memory differ in {metric}")
            figures = {"strata": len(here[1].by_stratum), "confirmed": here[1].confirmed}
            out.append(_case(metric, records, here[0], there[0]) | figures)
    return out


def _three_files(folder: Path, records: int) -> dict[str, Path]:
    """Write a world of twice as many people, half of them in each file."""
    world = veterans(2 * records, 1, fraction=0.5, external_fraction=0.5)
    folder.mkdir(exist_ok=True)
    paths = {name: folder / f"{name}.parquet" for name in ("puf", "eif", "iuf")}
    world.sample.frame.write_parquet(paths["puf"])
    world.external.frame.write_parquet(paths["eif"])
    # Without the values before perturbation, so that both engines do the same work.
    world.truth.frame.select("puf_id", "eif_id").write_parquet(paths["iuf"])
    return paths


def _syntheses(records: int) -> list[dict[str, Any]]:
    session = open_session(MASTER)
    small, large = veterans_sample(SMALL), veterans_sample(records)
    here = _after_once(lambda data: synthesise(data, **SYNTHESIS), small, large)
    there = _after_once(lambda data: synthesise(data, **SYNTHESIS, engine=session), small, large)
    for implicate in range(1, SYNTHESIS["implicates"] + 1):
        if not here[1].frame(implicate).equals(there[1].frame(implicate)):
            raise AssertionError(f"Spark and memory differ in implicate {implicate}")
    figures = {"subgroups": here[1].implicates.subgroups, "replaced": len(here[1].implicates.rows)}
    return [_case("synthesis", records, here[0], there[0]) | figures]


def _after_once(run: Callable[[Any], Any], small: Any, large: Any) -> tuple[float, Any]:
    run(small)
    return timed(lambda: run(large))


def _case(what: str, records: int, memory: float, spark: float) -> dict[str, Any]:
    return {"what": what, "records": records, "memory_seconds": memory, "spark_seconds": spark}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("study", "synthesis"))
    parser.add_argument("records", type=int)
    given = parser.parse_args()
    measured = _studies(given.records) if given.what == "study" else _syntheses(given.records)
    print(json.dumps(measured))
