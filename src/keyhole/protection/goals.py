"""What a step promised, held against the file that goes out after all steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keyhole.core.names import plural
from keyhole.data.microdata import Microdata
from keyhole.errors import ColumnError
from keyhole.exposure.cells import risk
from keyhole.kernels.arrays import Floats, Ints
from keyhole.protection.checks import by_form
from keyhole.protection.plan import Plan, Step
from keyhole.protection.protected import Protected
from keyhole.protection.recoverable import Groups, Treated, read_by_groups, rows_before

__all__ = ["hold_against"]

Held = tuple[Protected, list[str]]

CUTOFF = 3


def hold_against(
    original: Microdata, plan: Plan, steps: Sequence[Protected], final: Microdata
) -> tuple[list[Protected], list[str]]:
    """Return the steps with what is left of their goals in the notes, and what is to be minded.

    Parameters
    ----------
    original, plan, steps
        The file, and what was done to it.
    final
        The file that goes out.
    """
    rows, befores = rows_before(steps, final.records), [original, *(one.data for one in steps)]
    out, warnings = [], []
    for place, (line, step) in enumerate(zip(plan.steps, steps, strict=True)):
        found: list[str] = []
        if line.method == "suppress" and _touched(line.columns, steps[place + 1 :]):
            step, found = _suppression(line, step, final)
        elif line.method == "geographic-threshold" and line.options["column"] in final.names:
            found = _areas(line, step, befores[place], rows[place], final)
        out.append(step)
        warnings += [f"step {place + 1} ({line.method}): {text}" for text in found]
    return out, warnings


def _touched(columns: Sequence[str], later: Sequence[Protected]) -> bool:
    """Tell whether later steps changed any of these columns, or left records out."""
    return any(step.left_out or any(step.by_column.get(name) for name in columns) for step in later)


def _suppression(line: Step, step: Protected, final: Microdata) -> Held:
    options = line.effective
    keys = [name for name in line.columns if name in final.names]
    if not keys:
        return step, []
    cutoff = options.get("k", options.get("cutoff", CUTOFF))
    found = risk(final, keys=keys, cutoff=cutoff, missing=options.get("missing", "wildcard"))
    limit = options.get("limit", 0.0)
    step = dataclasses.replace(
        step, notes=(*step.notes, f"in the file that goes out RP({cutoff}) is {found.rp:.4f}")
    )
    if found.rp <= limit + 1e-12:
        return step, []
    goal = f"k = {cutoff}" if "k" in options else f"RP at most {limit:g}"
    return step, [
        f"its goal {goal} no longer holds: RP({cutoff}) is {found.rp:.4f} in the file that goes "
        f"out, because of later steps. Put it after them"
    ]


def _areas(
    line: Step, step: Protected, before: Microdata, rows: Ints, final: Microdata
) -> list[str]:
    """Say which areas of the file that goes out are below the threshold, alone or crossed."""
    options = line.effective
    name, least = options["column"], options["threshold"]
    area = _codes(final, name)
    people = _people(options.get("population"), before, rows, final)
    if people is None:
        by_area = _by_table(options["population"], step.fitted["areas"], final, name)
    else:
        by_area = np.bincount(area[area >= 0], weights=people[area >= 0]).astype(np.float64)
    found = []
    small = int((by_area[by_area > 0] < least).sum())
    if small:
        found.append(
            f"{plural(small, 'area')} of the file that goes out {'is' if small == 1 else 'are'} "
            f"below the threshold of {least:,}: merge anew, on the records that go out"
        )
    if people is None:
        return found
    small_areas = by_area < least
    crossed = {
        other: count
        for other in final.names
        if other != name
        and (count := _split(before, rows, name, final, other, people, least, small_areas))
    }
    return found + [
        f"{other!r}, which stays, splits {count:,} of the areas into parts below the threshold: "
        f"merge within it (within), or drop it"
        for other, count in crossed.items()
    ]


def _people(given: Any, before: Microdata, rows: Ints, final: Microdata) -> Floats | None:
    """Return how many people each record stands for; None if a table gives them by area."""
    if isinstance(given, Mapping):
        return None
    if given is None:
        return np.ones(final.records)
    return final.weights(given) if given in final.names else before.weights(given)[rows]


def _by_table(
    people: Mapping[Any, float], areas: Mapping[str, str], final: Microdata, name: str
) -> Floats:
    by_text, total = by_form(people), dict[str, float]()
    for old, new in areas.items():
        total[str(new)] = total.get(str(new), 0.0) + float(by_text.get(old, 0.0))
    # An area that was recoded since has no figure, and is not judged.
    levels = final.codes(name).levels.to_list()
    return np.array([total.get(str(level), 0.0) for level in levels])


def _split(
    before: Microdata,
    rows: Ints,
    name: str,
    final: Microdata,
    other: str,
    people: Floats,
    least: float,
    small: npt.NDArray[np.bool_],
) -> int:
    """Count the areas that another column of places splits into parts that are too small."""
    try:
        place = _codes(final, other)
    except ColumnError:
        return 0
    old = before.codes(name).values.astype(np.int64)[rows]
    known = place >= 0
    # It is a column of places if the areas as they were determine it.
    one = Treated(other, "drop", before.column(name), place, np.full(len(place), -1), known)
    if len(np.unique(place[known])) < 2 or read_by_groups(one, Groups.of(old), wholly=True) is None:
        return 0
    area = _codes(final, name)
    both = (area >= 0) & known & ~small[np.maximum(area, 0)]
    size = int(place.max()) + 1
    cells, parts = np.unique(area[both] * size + place[both], return_inverse=True)
    counts = np.bincount(parts, weights=people[both])
    return len(np.unique(cells[counts < least] // size))


def _codes(data: Microdata, name: str) -> Ints:
    codes = data.codes(name)
    values = codes.values.astype(np.int64)
    return np.where(values == len(codes.levels), -1, values)
