"""Run the measurements: `python -m benchmarks [--quick] [--only PART] [--write]`."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.clock import say
from benchmarks.report import render

HERE = Path(__file__).parent
LATEST = HERE / "results" / "latest.json"
PAGE = HERE / "RESULTS.md"
LIBRARIES = ("keyhole", "numpy", "numba", "polars", "pandas", "duckdb")
PARTS = ("world", "command", "memory", "frontier", "uniques", "selection")


def parts_of(quick: bool) -> dict[str, Callable[[], Any]]:
    """Return what each part measures; imports are late so that a bad option costs nothing."""
    from benchmarks import command, memory, selection, subsets

    if quick:
        return {
            "world": lambda: command.measure_world(10**5),
            "command": lambda: command.measure_command(10**5, 2),
            "memory": lambda: memory.measure_memory(10**5, 16),
            "frontier": lambda: subsets.measure_frontier(10**4, 10, 2),
            "uniques": lambda: subsets.measure_uniques(10**4, 16, 3, 2),
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
        "selection": lambda: selection.measure_selection(selection.FULL),
    }


def measure(quick: bool, only: Sequence[str]) -> dict[str, Any]:
    """Measure the parts asked for; one that fails is told of and does not stop the others."""
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "quick": quick,
        "cores": os.cpu_count(),
        "versions": {
            "Python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in LIBRARIES},
        },
        "failures": {},
    }
    for name, run in parts_of(quick).items():
        if name not in only:
            continue
        try:
            found[name] = run()
        except Exception as error:
            traceback.print_exc()
            found["failures"][name] = f"{type(error).__name__}: {error}".splitlines()[0]
        if name == "selection" and name in found:
            from benchmarks.selection import growth

            found["growth"] = growth(found[name])
        LATEST.parent.mkdir(exist_ok=True)
        LATEST.write_text(json.dumps(found, indent=2) + "\n")
    return found


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
    parser.add_argument("--write", action="store_true", help="write RESULTS.md, of a whole run")
    parser.add_argument(
        "--latest",
        action="store_true",
        help="measure nothing: show the last run again, and write it if asked to",
    )
    asked = parser.parse_args(argv)
    if asked.write and (asked.quick or set(asked.only) != set(PARTS)):
        parser.error("--write is for a whole run: leave --quick and --only out.")
    if asked.latest and not LATEST.exists():
        parser.error("there is no last run: leave --latest out.")
    return asked


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the page, and write it if asked to."""
    asked = options(argv)
    found = json.loads(LATEST.read_text()) if asked.latest else measure(asked.quick, asked.only)
    page = render(found)
    print(page)
    if asked.write and (found["quick"] or not found.keys() >= set(PARTS)):
        say("the last run was quick or not whole: RESULTS.md is left as it was")
        return 1
    if asked.write:
        PAGE.write_text(page)
        say(f"written to {PAGE.relative_to(HERE.parent)}")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
