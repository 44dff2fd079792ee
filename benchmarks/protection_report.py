"""The measurements of protection as tables, and what they must show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def protection_sections(found: Mapping[str, Any] | None, table: Table) -> Iterator[str]:
    """Yield the sections of the page; `table` lays a table out."""
    if not found:
        return
    yield (
        "## Local suppression to k = 3\n\n"
        "Seven keys. Seconds, and values taken away; a missing value matches every other, or is a "
        "category of its own. The loop in pandas is greedy, counts as the second, and leaves some "
        "records rare (RP).\n\n"
        + table(
            ["records", "wildcard s", "values", "own s", "values", "pandas s", "values", "RP"],
            [_suppression(case) for case in found["suppression"]],
        )
    )
    yield (
        "## Microaggregation (MDAV), k = 3\n\n"
        "Four columns. Plain NumPy finds the same groups.\n\n"
        + table(["records", "seconds", "NumPy s", "times"], [_mdav(case) for case in found["mdav"]])
    )


def _suppression(case: Mapping[str, Any]) -> list[str]:
    cells = [f"{case['records']:,}"]
    for name in ("wildcard", "own", "pandas"):
        cells += [f"{case[name]['seconds']:.2f}", f"{case[name]['values']:,}"]
    return [*cells, f"{case['pandas']['rp']:.4f}"]


def _mdav(case: Mapping[str, Any]) -> list[str]:
    plain = case.get("plain")
    beside = ["", ""] if plain is None else [f"{plain:.2f}", f"{plain / case['seconds']:.0f}"]
    return [f"{case['records']:,}", f"{case['seconds']:.2f}", *beside]


def protection_targets(found: Mapping[str, Any] | None) -> Iterator[Target]:
    """Yield what the measurements must show."""
    for name, words in (("suppression", "local suppression"), ("mdav", "MDAV")):
        sizes = [(case["records"], _seconds(case)) for case in (found or {}).get(name, ())]
        if not sizes or sizes[-1][0] < 10**5:
            continue
        yield Target(f"{words} to k = 3, 10⁵ records", sizes[-1][1], 20, "s")
        (small, before), (large, after) = sizes[0], sizes[-1]
        exponent = math.log(after / before) / math.log(large / small)
        yield Target(f"{words}, exponent of records", exponent, 2.0, "")


def _seconds(case: Mapping[str, Any]) -> float:
    """Return the slower reading of suppression, or the time of MDAV."""
    if "seconds" in case:
        return float(case["seconds"])
    return max(float(case[name]["seconds"]) for name in ("wildcard", "own"))
