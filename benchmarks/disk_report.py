"""Files larger than memory, as sections of the page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

Cases = Sequence[Mapping[str, Any]]
LARGE, LARGEST, LEAST_RATIO, MOST_GIGABYTES, MOST_EXPONENT = 10**7, 10**8, 5.0, 2.0, 1.1


def disk_targets(cases: Cases) -> Iterator[Target]:
    """Give what the measurement of the largest file must show, and how time grows to it."""
    for before, case in itertools.pairwise(cases):
        if case["records"] < LARGE:
            continue
        size = f"on disk, {case['records']:,} records"
        if case["records"] == LARGEST:
            ratio, name = case["rival"]["ratio"], case["rival"]["name"]
            what = f"forward {size} x {case['keys']}, against {name}"
            yield Target(what, ratio, LEAST_RATIO, "times", True)
        for verb, one in case["verbs"].items():
            held = one["peak_anonymous_bytes"] / 10**9
            yield Target(f"{verb} {size}, memory but mapped pages", held, MOST_GIGABYTES, "GB")
            exponent = _exponent(before, case, verb)
            yield Target(f"{verb} {size}, exponent of records", exponent, MOST_EXPONENT, "")


def _exponent(before: Mapping[str, Any], case: Mapping[str, Any], verb: str) -> float:
    seconds = case["verbs"][verb]["seconds"] / before["verbs"][verb]["seconds"]
    return math.log(seconds) / math.log(case["records"] / before["records"])


def disk_sections(
    cases: Cases, table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]
) -> Iterator[str]:
    """Give the table of sizes."""
    if not cases:
        return
    columns = ["records", "file MB", "ours s", "of it reading", "steps"]
    columns += ["DuckDB / ours", "counting alone"]
    yield (
        f"## Files larger than memory\n\nForward selection with `--engine disk --memory "
        f"{cases[0]['memory']}`, the whole path on {cases[0]['keys']} keys, reading and encoding "
        "included; one run. DuckDB counts encoded columns in a database file of its own within "
        "2 GB of memory, one `GROUP BY` a set on all cores; where its time ran out, both are "
        "compared on the steps that it took. "
        "Counting alone leaves our reading and encoding out, as they are for DuckDB.\n\n"
        + table(columns, [_row(case) for case in cases])
    )
    rows = [
        [f"{case['records']:,}", verb, f"{one['seconds']:.1f}",
         f"{one['peak_anonymous_bytes'] / 1e6:.0f}",
         f"{_exponent(before, case, verb):.2f}" if before else ""]
        for before, case in zip([None, *cases], cases, strict=False)
        for verb, one in case["verbs"].items()
    ]  # fmt: skip
    yield (
        "Every verb on the same encoded file: select as above; risk and attributes of two columns "
        "on eight keys; frontier of six free keys beside two kept ones; solve on five keys. Memory "
        "is the most the process held apart from mapped pages; the exponent is that of the seconds "
        "since the size before.\n\n"
        + table(["records", "verb", "seconds", "memory MB", "exponent"], rows)
    )


def _row(case: Mapping[str, Any]) -> list[str]:
    rival = case["rival"]
    return [
        f"{case['records']:,}",
        f"{case['file_bytes'] / 1e6:.0f}",
        f"{case['seconds']:.1f}",
        f"{case['reading_seconds']:.1f}",
        f"{rival['steps']}/{case['steps']}",
        f"{rival['ratio']:.1f}",
        f"{rival['ratio_of_counting']:.1f}",
    ]
