"""The measurements of protection as tables, and what they must show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.protection_tables import THRESHOLD
from benchmarks.targets import Target

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def protection_sections(found: Mapping[str, Any] | None, table: Table) -> Iterator[str]:
    """Yield the sections of the page; `table` lays a table out."""
    if not found:
        return
    yield (
        "## Local suppression to k = 3\n\n"
        "Seven keys. Seconds, and values suppressed; a missing value matches every other, or is a "
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
    yield from _tables(found["tables"], table)


def _tables(found: Mapping[str, Any], table: Table) -> Iterator[str]:
    rows = [
        [words, *(f"{figure:.3f}" for figure in _ratios(found["small"], name)), more]
        for name, words, more in (
            ("exact", "keyhole", ""),
            ("large", "keyhole, as for large tables", ""),
            ("greedy_value", "greedy", f"{sum(one['greedy_open'] for one in found['small']):,}"),
        )
    ]
    yield (
        f"## Hierarchical tables beside their optimum\n\n"
        f"{len(found['small'])} small hierarchies of counts, threshold {THRESHOLD}: the value "
        f"suppressed besides unsafe cells, as a multiple of the least there is. The greedy rule is "
        f"not safe.\n\n" + table(["rule", "mean", "largest", "unsafe cells left open"], rows)
    )
    large = found["large"]
    if large is None:
        return
    said = (
        ("areas", "areas"), ("table", "cells"), ("unsafe", "unsafe cells"),
        ("seconds", "seconds from file to audited table"), ("processor", "of processor time"),
        ("cells", "suppressed cells"), ("value", "value suppressed besides unsafe cells"),
        ("narrow", "unsafe cells left open"), ("greedy_cells", "greedy: suppressed cells"),
        ("greedy_value", "greedy: value besides unsafe cells"),
        ("greedy_open", "greedy: unsafe cells left open"),
    )  # fmt: skip
    yield (
        "## A hierarchical table of American veterans\n\n"
        "STATE > PUMA x SEX x 7 bands of income, counts, threshold 3, suppressed and audited.\n\n"
        + table(["figure", "value"], [[words, f"{large[name]:,.0f}"] for name, words in said])
    )


def _ratios(small: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float]:
    """Return the mean and the largest multiple of the optimum."""
    ratios = [case[name] / case["optimum"] for case in small]
    return sum(ratios) / len(ratios), max(ratios)


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
    tables = (found or {}).get("tables")
    if tables:
        for name, words in (("exact", "small hierarchies"), ("large", "the same as large tables")):
            mean, largest = _ratios(tables["small"], name)
            yield Target(f"{words}, mean multiple of the optimum", mean, 1.05, "")
            yield Target(f"{words}, largest multiple of the optimum", largest, 1.05, "")
        if tables["large"]:
            seconds = tables["large"]["seconds"]
            yield Target("hierarchy of 2,000 areas from file to table", seconds, 60, "s")
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
