"""Files larger than memory, as sections of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

Cases = Sequence[Mapping[str, Any]]
LEAST_RATIO = 5.0
"""At thirty million records, against a loop of DuckDB's."""
LARGEST = 3 * 10**7


def disk_targets(cases: Cases) -> Iterator[Target]:
    """Give what the measurement of the largest file must show."""
    for case in cases:
        if case["records"] == LARGEST:
            what = f"forward on disk, {case['records']:,} x {case['keys']}"
            ratio = case["rival"]["ratio"]
            yield Target(f"{what}, against DuckDB", ratio, LEAST_RATIO, "times", True)
            held = case["peak_anonymous_bytes"] / 10**9
            yield Target(f"{what}, memory but mapped pages", held, 1.0, "GB")


def disk_sections(
    cases: Cases, table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]
) -> Iterator[str]:
    """Give the table of sizes."""
    if not cases:
        return
    columns = ["records", "file MB", "ours s", "of it reading", "memory MB", "steps"]
    columns += ["DuckDB / ours", "counting alone"]
    yield (
        f"## Files larger than memory\n\nForward selection with `--engine disk --memory "
        f"{cases[0]['memory']}`, the whole path on {cases[0]['keys']} keys, reading and encoding "
        "included. Memory is the most the process held apart from "
        "mapped pages. DuckDB counts encoded columns in a table of its own, one `GROUP BY` a set "
        "on all cores; where its time ran out, both are compared on the steps that it took. "
        "Counting alone leaves our reading and encoding out, as they are for DuckDB.\n\n"
        + table(columns, [_row(case) for case in cases])
    )


def _row(case: Mapping[str, Any]) -> list[str]:
    rival = case["rival"]
    return [
        f"{case['records']:,}",
        f"{case['file_bytes'] / 1e6:.0f}",
        f"{case['seconds']:.1f}",
        f"{case['reading_seconds']:.1f}",
        f"{case['peak_anonymous_bytes'] / 1e6:.0f}",
        f"{rival['steps']}/{case['steps']}",
        f"{rival['ratio']:.1f}",
        f"{rival['ratio_of_counting']:.1f}",
    ]
