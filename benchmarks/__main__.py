"""Run the measurements: `python -m benchmarks [--quick] [--only PART] [--write]`."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from benchmarks.clock import processor_seconds, say
from benchmarks.report import render

HERE = Path(__file__).parent
PAGE = HERE / "RESULTS.md"
LIBRARIES = (
    "keyhole",
    "numpy",
    "numba",
    "polars",
    "pandas",
    "duckdb",
    "pyspark",
    "splink",
    "statsmodels",
    "miceforest",
    "scikit-learn",
)
PARTS = {
    "selection": 320,
    "bandwidth": 20,
    "frontier": 120,
    "uniques": 40,
    "solving": 140,
    "attributes": 20,
    "sources": 110,
    "command": 80,
    "first hour": 90,
    "world": 15,
    "recognition": 120,
    "workbench": 120,
    "releases": 100,
    "whole release": 50,
    "synthesis": 160,
    "coverage": 130,
    "population": 70,
    "disk": 280,
    "spark": 180,
    "study": 150,
    "environment": 65,
    "memory": 40,
    "screening": 75,
    "protection": 150,
    "attacks": 50,
}
"""The parts, in the order in which they are measured, and how many seconds each takes on two
quiet cores; it is ended after twice as many. The last are those whose figures move least.
"""
MINUTES = 45.0
"""A whole run ends by then: what has not been measured is named on the page."""
Store = dict[str, dict[str, Any]]
"""`run`: when and on what; `parts`: by part its figures; `failures`: by part why; `seconds`."""


def file_of(quick: bool) -> Path:
    """Return where the figures of the last measurement of each part are kept."""
    return HERE / "results" / ("quick.json" if quick else "latest.json")


def parts_of(quick: bool) -> dict[str, Callable[[], Any]]:
    """Return what each part measures; imports are late so that a bad option costs nothing."""
    from benchmarks import (
        attacks,
        attributes,
        bandwidth,
        command,
        coverage,
        disk,
        environment,
        memory,
        population,
        protection,
        recognition,
        screening,
        selection,
        solving,
        sources,
        spark,
        study,
        subsets,
        synthesis,
        synthesis_rivals,
        workbench,
    )

    if quick:
        return {
            "world": lambda: command.measure_world(10**5),
            "command": lambda: command.measure_command(10**5, 2),
            "first hour": lambda: command.measure_first_hour(20_000),
            "memory": lambda: memory.measure_memory(10**5, 16),
            "bandwidth": lambda: bandwidth.measure_bandwidth(10**5),
            "frontier": lambda: subsets.measure_frontier(10**4, (10,)),
            "uniques": lambda: subsets.measure_uniques(10**4, 16, 3),
            "solving": lambda: solving.measure_solving(10**4, 10**3, 1),
            "attributes": lambda: attributes.measure_attributes(10**4),
            "sources": lambda: sources.measure_sources((10**3, 10**4, 10**5)),
            "population": lambda: population.measure_population(5),
            "study": lambda: study.measure_study(study.QUICK),
            "attacks": lambda: attacks.measure_attacks((5_000,), 2),
            "synthesis": lambda: synthesis.measure_synthesis((10**4,)),
            "releases": lambda: synthesis_rivals.measure_releases(5_000),
            "whole release": synthesis_rivals.measure_whole_release,
            "coverage": lambda: coverage.measure_coverage(20),
            "environment": lambda: environment.measure_environment((100, 200), (600, 1_200)),
            "recognition": recognition.measure_recognition,
            "screening": lambda: screening.measure_screening(
                (5_000, 10_000), (500, 1_000), (1_000,), 1
            ),
            "protection": lambda: protection.measure_protection((2_000, 4_000), 1, hierarchies=5),
            "disk": lambda: disk.measure_disk(disk.QUICK, 20.0),
            "spark": lambda: spark.measure_spark(10**5, 20.0),
            "workbench": lambda: workbench.measure_workbench(10**5, 8, 20_000),
            "selection": lambda: selection.measure_selection(selection.QUICK),
        }
    return {
        "world": lambda: command.measure_world(10**6),
        "command": lambda: command.measure_command(10**5, 5),
        "first hour": lambda: command.measure_first_hour(20_000),
        "memory": lambda: [
            case for keys in (16, 24) for case in memory.measure_memory(10**6, keys)
        ],
        "bandwidth": lambda: bandwidth.measure_bandwidth(10**6),
        "frontier": lambda: subsets.measure_frontier(10**5, (14, 20)),
        "uniques": lambda: subsets.measure_uniques(10**5, 16, 4),
        "solving": lambda: solving.measure_solving(10**5, 10**4, 5),
        "attributes": lambda: attributes.measure_attributes(10**6),
        "sources": lambda: sources.measure_sources((10**3, 10**4, 10**5, 10**6)),
        "population": population.measure_population,
        "study": lambda: study.measure_study(study.FULL),
        "attacks": lambda: attacks.measure_attacks((10**5,), 5),
        "synthesis": lambda: synthesis.measure_synthesis((10**4, 10**5, 10**6)),
        "releases": lambda: synthesis_rivals.measure_releases(20_000),
        "whole release": synthesis_rivals.measure_whole_release,
        "coverage": lambda: coverage.measure_coverage(500),
        "environment": lambda: environment.measure_environment(
            (1_000, 2_000), (6_000, 12_000, 24_000)
        ),
        "recognition": recognition.measure_recognition,
        "screening": screening.measure_screening,
        "protection": protection.measure_protection,
        "disk": lambda: disk.measure_disk(disk.FULL),
        "spark": lambda: spark.measure_spark(10**6),
        "workbench": lambda: workbench.measure_workbench(10**6, 40, 200_000),
        "selection": lambda: selection.measure_selection(selection.FULL),
    }


def measure(quick: bool, only: Collection[str], minutes: float) -> Store:
    """Measure the parts asked for that this run has not measured yet, each in a fresh process.

    A part that fails, or is ended because its time is over, is named, and does not stop the others.
    """
    store, end = stored(quick), time.monotonic() + 60 * minutes
    for name in (name for name in PARTS if name in only):
        if store["parts"].get(name) and not quick:  # what was left out is tried again
            say(f"{name}: measured in this run already; remove {file_of(quick)} to begin anew")
            continue
        begun, worked = time.monotonic(), processor_seconds()
        try:
            store["parts"][name] = _apart(
                name, quick, min(PARTS[name] * (20 if quick else 2), end - begun)
            )
            store["failures"].pop(name, None)
        except subprocess.TimeoutExpired as error:
            store["failures"][name] = f"ended after {error.timeout:.0f} s"
        except RuntimeError as error:
            store["failures"][name] = str(error)
        store["seconds"][name] = round(time.monotonic() - begun)
        used = f"{processor_seconds() - worked:.0f} s of the processor"
        say(f"{name}: {store['seconds'][name]} s, {used} {store['failures'].get(name, '')}")
        keep(store, quick)
    return store


def _apart(name: str, quick: bool, seconds: float) -> Any:
    """Return what a part measures in a process of its own, with all that it starts and writes."""
    # A browser that is being ended may still write.
    room = tempfile.TemporaryDirectory(prefix="keyhole-benchmarks-", ignore_cleanup_errors=True)
    with room as folder:
        file = Path(folder, "figures.json")
        command = [sys.executable, "-m", "benchmarks", "--part", name, str(file)]
        environment = {**os.environ, "TMPDIR": folder}
        words = [*command, *["--quick"] * quick]
        process = subprocess.Popen(words, env=environment, start_new_session=True)
        try:
            code = process.wait(max(seconds, 1.0))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if code:
            raise RuntimeError(file.read_text() if file.exists() else f"ended with code {code}")
        return json.loads(file.read_text())


def _measure_part(name: str, file: Path, quick: bool) -> int:
    """Measure one part and write its figures, or why it failed."""
    try:
        file.write_text(json.dumps(parts_of(quick)[name]()))
    except Exception as error:
        traceback.print_exc()
        file.write_text(f"{type(error).__name__}: {error}".splitlines()[0])
        return 1
    return 0


def setting() -> dict[str, Any]:
    """Return on what is measured: another commit, machine or library is another run."""
    versions = {"Python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    asked = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    machine = platform.processor() or platform.machine()
    about = {"commit": commit or "unknown", "cores": os.cpu_count(), "machine": machine}
    return {**about, "versions": versions}


def stored(quick: bool) -> Store:
    """Return what this run has measured so far: part by part, but of one commit and machine."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    empty: Store = {"run": {"date": date, **setting()}}
    empty |= {kind: {} for kind in ("parts", "failures", "seconds")}
    file = file_of(quick)
    held = json.loads(file.read_text()) if file.exists() else empty
    same = held.get("run") == {**empty["run"], "date": held["run"]["date"]}
    return {**empty, **held} if same else empty


def keep(store: Store, quick: bool) -> None:
    """Write down what has been measured, the parts in their usual order."""
    for kind in ("parts", "failures", "seconds"):
        store[kind] = {name: store[kind][name] for name in PARTS if name in store[kind]}
    file = file_of(quick)
    file.parent.mkdir(exist_ok=True)
    write_whole(file, json.dumps(store, indent=2) + "\n")


def write_whole(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = file.with_name(f"{file.name}.part")
    beside.write_text(text)
    beside.replace(file)


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, some minutes")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(PARTS),
        default=list(PARTS),
        metavar="PART",
        help=f"only these parts: {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--write", action="store_true", help="write RESULTS.md from all parts of this run"
    )
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="end by then (default: %(default)g)"
    )
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.write and asked.quick:
        parser.error("--write is for the sizes that count: leave --quick out.")
    return asked


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the page of the parts asked for, and write that of all if asked to."""
    asked = options(argv)
    if asked.part:
        return _measure_part(asked.part[0], Path(asked.part[1]), asked.quick)
    store = measure(asked.quick, asked.only, asked.minutes)
    run = {**store["run"], "seconds": store["seconds"]}

    def page(names: Collection[str]) -> str:
        """Lay out some parts, and say of the others of these why they are not there."""
        measured = {name: figures for name, figures in store["parts"].items() if name in names}
        absent = {name: missing(store, name) for name in names if not measured.get(name)}
        return render(run, measured, absent, quick=asked.quick)

    print(page(asked.only))
    if asked.write:
        write_whole(PAGE, page(PARTS))
        say(f"written to {PAGE.relative_to(HERE.parent)}")
    wanted = PARTS if asked.write else asked.only
    return 1 if any(name not in store["parts"] for name in wanted) else 0


def missing(store: Store, name: str) -> str:
    """Say why a part has no figures."""
    if name in store["parts"]:
        return "left out: what it needs is not on this machine"
    return str(store["failures"].get(name, "not measured in this run"))


if __name__ == "__main__":
    sys.exit(main())
