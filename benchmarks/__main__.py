"""Run the measurements: `python -m benchmarks [--quick] [--only PART] [--write]`."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.clock import say
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
PARTS = (
    *("world", "command", "memory", "frontier", "uniques", "study", "synthesis", "coverage"),
    "solving",
    "attributes",
    "population",
    "attacks",
    "environment",
    "recognition",
    "screening",
    "protection",
    "disk",
    "spark",
    "workbench",
    "selection",
)
Store = dict[str, dict[str, Any]]
"""`parts`: by part its figures, when and on what they were measured; `failures`: by part why."""


def file_of(quick: bool) -> Path:
    """Return where the figures of the last measurement of each part are kept."""
    return HERE / "results" / ("quick.json" if quick else "latest.json")


def parts_of(quick: bool) -> dict[str, Callable[[], Any]]:
    """Return what each part measures; imports are late so that a bad option costs nothing."""
    from benchmarks import (
        attacks,
        attributes,
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
        spark,
        study,
        subsets,
        synthesis,
        workbench,
    )

    if quick:
        return {
            "world": lambda: command.measure_world(10**5),
            "command": lambda: command.measure_command(10**5, 2),
            "memory": lambda: memory.measure_memory(10**5, 16),
            "frontier": lambda: subsets.measure_frontier(10**4, 10, 2),
            "uniques": lambda: subsets.measure_uniques(10**4, 16, 3, 2),
            "solving": lambda: solving.measure_solving(10**4, 10**3, 1),
            "attributes": lambda: attributes.measure_attributes(10**4, 2),
            "population": lambda: population.measure_population(5),
            "study": lambda: study.measure_study(study.QUICK),
            "attacks": lambda: attacks.measure_attacks((5_000,), 1),
            "synthesis": lambda: synthesis.measure_synthesis((10**4,)),
            "coverage": lambda: coverage.measure_coverage(20),
            "environment": lambda: environment.measure_environment((100, 200), (600, 1_200)),
            "recognition": recognition.measure_recognition,
            "screening": lambda: screening.measure_screening((5_000, 10_000), (500, 1_000), 1),
            "protection": lambda: protection.measure_protection((2_000, 4_000), 1),
            "disk": lambda: disk.measure_disk(disk.QUICK, 20.0),
            "spark": lambda: spark.measure_spark(10**5, 20.0),
            "workbench": lambda: workbench.measure_workbench(10**5, 8),
            "selection": lambda: selection.measure_selection(selection.QUICK),
        }
    return {
        "world": lambda: command.measure_world(10**6),
        "command": lambda: command.measure_command(10**5, 5),
        "memory": lambda: [
            case for keys in (16, 24) for case in memory.measure_memory(10**6, keys)
        ],
        "frontier": lambda: subsets.measure_frontier(10**5, 14, 2),
        "uniques": lambda: subsets.measure_uniques(10**5, 16, 4, 2),
        "solving": lambda: solving.measure_solving(10**5, 10**4, 2),
        "attributes": lambda: attributes.measure_attributes(10**6, 3),
        "population": population.measure_population,
        "study": lambda: study.measure_study(study.FULL),
        "attacks": lambda: attacks.measure_attacks((10**4, 10**5), 2),
        "synthesis": lambda: synthesis.measure_synthesis((10**4, 10**5, 10**6)),
        "coverage": lambda: coverage.measure_coverage(500),
        "environment": lambda: environment.measure_environment(
            (500, 1_000, 2_000), (6_000, 12_000, 24_000)
        ),
        "recognition": recognition.measure_recognition,
        "screening": screening.measure_screening,
        "protection": protection.measure_protection,
        "disk": lambda: disk.measure_disk(disk.FULL),
        "spark": lambda: spark.measure_spark(10**6),
        "workbench": lambda: workbench.measure_workbench(10**6, 40),
        "selection": lambda: selection.measure_selection(selection.FULL),
    }


def measure(quick: bool, only: Sequence[str]) -> Store:
    """Measure the parts asked for, and keep each with those measured before.

    A part that fails is told of; it does not stop the others, nor is what it had forgotten.
    """
    store = stored(quick)
    for name, run in parts_of(quick).items():
        if name not in only:
            continue
        try:
            store["parts"][name] = {**setting(), "figures": run()}
            store["failures"].pop(name, None)
        except Exception as error:
            traceback.print_exc()
            store["failures"][name] = f"{type(error).__name__}: {error}".splitlines()[0]
        keep(store, quick)
    return store


def setting() -> dict[str, Any]:
    """Return when and on what is measured."""
    versions = {"Python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": date, "cores": os.cpu_count(), "versions": versions}


def stored(quick: bool) -> Store:
    """Return what has been measured here so far."""
    file = file_of(quick)
    empty: Store = {"parts": {}, "failures": {}}
    return empty | json.loads(file.read_text()) if file.exists() else empty


def keep(store: Store, quick: bool) -> None:
    """Write down what has been measured, the parts in their usual order."""
    for kind in ("parts", "failures"):
        store[kind] = {name: store[kind][name] for name in PARTS if name in store[kind]}
    file = file_of(quick)
    file.parent.mkdir(exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(store, indent=2) + "\n")
    beside.replace(file)


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, about two minutes")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        metavar="PART",
        help=f"only these parts: {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write RESULTS.md: what is measured now, the other parts as measured last",
    )
    parser.add_argument(
        "--latest",
        action="store_true",
        help="measure nothing: show each part as measured last, and write it if asked to",
    )
    asked = parser.parse_args(argv)
    if asked.write and asked.quick:
        parser.error("--write is for the sizes that count: leave --quick out.")
    if asked.latest and not stored(asked.quick)["parts"]:
        parser.error("nothing has been measured yet: leave --latest out.")
    return asked


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the page of the parts asked for, and write that of all if asked to."""
    asked = options(argv)
    store = stored(asked.quick) if asked.latest else measure(asked.quick, asked.only)
    shown = {kind: _some(store[kind], asked.only) for kind in ("parts", "failures")}
    print(render(**shown, quick=asked.quick))
    if asked.write:
        write(store)
    return 1 if shown["failures"] else 0


def _some(by_part: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: about for name, about in by_part.items() if name in names}


def write(store: Store) -> None:
    """Write the page of all parts; it says which have not been measured here yet."""
    absent = {name: "not measured yet" for name in PARTS if name not in store["parts"]}
    PAGE.write_text(render(store["parts"], absent | store["failures"], quick=False))
    say(f"written to {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    sys.exit(main())
