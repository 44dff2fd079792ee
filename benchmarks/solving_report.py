"""The measurements of the best release as tables, and what they must show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import SPREAD, Target, spread_cells

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
LEAST = 10.0
"""At 10⁵ records and 10⁴ combinations, against everybody."""
MOST_SECONDS = 60.0


def solving_sections(found: Mapping[str, Any] | None, table: Table) -> Iterator[str]:
    """Yield the sections of the page; `table` lays a table out."""
    if not found:
        return
    rows = []
    for case in [*found["cases"], *found["larger"]]:
        counted = [f"{case[name]:,}" for name in ("combinations", "evaluated", "points")]
        rows.append([f"{case['records']:,}", *counted, *spread_cells(case)])
        rows += [
            [f"… {one['name']}", "", "", "", *spread_cells(one)] for one in case.get("rivals", ())
        ]
    yield (
        f"## The best release, RP within {found['limit']:.0%}\n\n"
        "All Pareto points of risk and utility, the same from all.\n\n"
        + table(["records", "combinations", "counted", "points", *SPREAD], rows)
    )
    acs = found.get("acs")
    if acs:
        plans = [
            [name, *(f"{one[x]:.4f}" for x in ("rp", "utility")), f"{one['treated']:,}",
             f"{one['kept_utility']:.4f}"]
            for name, one in acs["plans"].items() if one is not None
        ]  # fmt: skip
        yield (
            f"## The best release of {acs['records']:,} American veterans, ten keys\n\n"
            f"{acs['combinations']:,} combinations, {acs['evaluated']:,} counted, "
            f"{acs['seconds']:.1f} s with everything `keyhole solve` reports.\n\n"
            + table(["plan", "RP", "utility", "records treated", "after losses"], plans)
        )


def solving_targets(found: Mapping[str, Any] | None) -> Iterator[Target]:
    """Yield what the measurements must show."""
    if not found:
        return
    case = found["cases"][-1]
    if case["records"] >= 10**5 and case["combinations"] >= 10**4:
        for rival in case["rivals"]:
            what = f"best release, 10⁵ records, 10⁴ combinations, against {rival['name']}"
            yield Target(what, rival["ratio"], LEAST, "times", True)
    acs = found.get("acs")
    if acs and acs["complete"]:
        what = f"best release of American veterans, {acs['combinations']:,} combinations"
        yield Target(what, acs["seconds"], MOST_SECONDS, "s")
