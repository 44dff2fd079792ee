"""The measurements of re-identification studies as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.targets import SPREAD, spread_cells

Case = Mapping[str, Any]
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def study_sections(found: Mapping[str, Any] | None, table: Table) -> Iterator[str]:
    """Yield the sections of the page; `table` lays a table out."""
    if not found:
        return
    if found["compared"]:
        yield _compared(found["compared"], table)
    if found["alone"]:
        yield _alone(found["alone"], table)
    rows = [row for row in map(_growth, _by_metric(found)) if row]
    if rows:
        yield (
            "## Linking, how our time grows with records\n\n"
            "Exponents of a power law, 8 variables, both files growing: the product grows "
            "with 2.\n\n" + table(["metric", "records", "all sizes", "the last two sizes"], rows)
        )


def _compared(cases: Sequence[Case], table: Table) -> str:
    rows = [row for case in cases for row in _rivals(case)]
    columns = [
        "metric, records x records",
        "rival",
        "queries",
        "ours s",
        *SPREAD,
        "from frames s",
    ]
    return (
        "## Linking, every rival\n\n"
        "The suspected pairs of two files, 8 variables; everybody finds the same pairs, ranks and "
        "scores. Where `queries` says so a rival had no time for all PUF records: its seconds "
        "are those of a block of them, scaled. All start from encoded columns; what `link` takes "
        "from frames stands beside.\n\n" + table(columns, rows)
    )


def _rivals(case: Case) -> Iterator[list[str]]:
    for rival in case["rivals"]:
        whole = rival["queries"] == case["records"]
        yield [
            f"{case['metric']}, {case['records']:,} x {case['records']:,}",
            rival["name"],
            "all" if whole else f"{rival['queries']:,}, scaled",
            f"{rival['ours']:.3f}",
            *spread_cells(rival),
            f"{case['from_frames']:.3f}",
        ]


def _alone(cases: Sequence[Case], table: Table) -> str:
    rows = [
        [
            f"{case['metric']}, {case['records']:,} x {case['records']:,}",
            str(case["variables"]),
            *(_figures(case) if case["seconds"] is not None else _stopped(case)),
        ]
        for case in cases
    ]
    columns = [
        "metric, records",
        "variables",
        "seconds",
        "input MB",
        "peak MB",
        "pairs",
        "suspected",
    ]
    return (
        "## Linking alone\n\n"
        "`link` on frames in memory, in a fresh process, without what importing takes. The peak "
        "includes the input.\n\n" + table(columns, rows)
    )


def _figures(case: Case) -> list[str]:
    return [
        f"{case['seconds']:.2f}",
        f"{case['input_bytes'] / 1e6:.0f}",
        f"{case['peak_bytes'] / 1e6:.0f}",
        f"{case['pairs']:,}",
        f"{case['suspected'] / case['records']:.1%}",
    ]


def _stopped(case: Case) -> list[str]:
    return [f"over {case['most_seconds']:.0f}", "", "", "", ""]


def _by_metric(found: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    """Yield each metric's seconds by records; of two measurements of a size the lower."""
    points: dict[str, dict[int, float]] = {}
    for case in (*found["compared"], *found["alone"]):
        if case["variables"] == 8 and case["seconds"] is not None:
            known = points.setdefault(case["metric"], {})
            seconds = min(case["seconds"], known.get(case["records"], case["seconds"]))
            known[case["records"]] = seconds
    for metric, known in points.items():
        yield metric, sorted(known.items())


def _growth(measured: tuple[str, list[tuple[int, float]]]) -> list[str]:
    metric, points = measured
    if len(points) < 2:
        return []
    sizes = f"{points[0][0]:,} to {points[-1][0]:,}"
    return [metric, sizes, f"{_slope(points):.2f}", f"{_slope(points[-2:]):.2f}"]


def _slope(points: Sequence[tuple[int, float]]) -> float:
    size, seconds = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(size, seconds, 1)[0])
