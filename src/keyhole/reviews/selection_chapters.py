"""Chapters of the report on selection: the paths as the paper prints them, and the frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keyhole.core.tables import Table
from keyhole.results import share
from keyhole.reviews.count_sheets import CountSheet
from keyhole.reviews.group_tables import enter_groups
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import selection_stage

if TYPE_CHECKING:
    from keyhole.exposure.cells import Exposure
    from keyhole.reviews.stages.selection import Paths
    from keyhole.selection.result import CandidateRow, Selection, Step


Results = Mapping[str, Any]


def selection_paths(review: Review, results: Results, sheet: CountSheet) -> list[dict[str, Any]]:
    """Return the path of each method: its steps, and all candidates of each."""
    if review.selection is None:
        return []
    named = review.selection.named_groups
    chosen = [results[selection_stage(method)] for method in review.selection.methods]
    return [_path(found, named, sheet) for found in chosen]


def _path(found: Selection, named: Sequence[str], sheet: CountSheet) -> dict[str, Any]:
    criterion = "α" if found.criterion == "ratio" else found.criterion.upper()
    heads = [criterion, "RP", "CR", "RP/CR"]
    return {
        "found": found,
        "heads": heads,
        "steps": [_step(step) for step in found.steps],
        "candidates": [
            Table(
                f"Step {table.step}",
                ["added" if table.step.startswith("F") else "removed", *heads],
                [[row.variable, *_figures(row)] for row in table.rows],
            )
            for table in found.step_tables
        ],
        "groups": _groups(found, named, sheet) if found.groups else None,
    }


def _step(step: Step) -> dict[str, Any]:
    """Return a row of a path: the step, what it let in and took out, and its figures."""
    # A removal may put a coarser alternative in the place of a variable: "age → age10".
    old, _, new = step.variable.partition(" → ")
    entered, removed = (step.variable, None) if step.step.startswith("F") else (new or None, old)
    return {"step": step, "entered": entered, "removed": removed, "figures": _figures(step)}


def _figures(row: CandidateRow | Step) -> list[str]:
    shown = (row.alpha, row.rp, row.cr, row.ratio)
    return ["" if figure is None else f"{figure:.3f}" for figure in shown]


def _groups(found: Selection, named: Sequence[str], sheet: CountSheet) -> Table:
    """Return the set of each group; of a small one that was asked for only the name is told."""
    sizes = [(group.label, group.selection.records or 0) for group in found.groups]
    groups = enter_groups(sheet, found.by or "", sizes, named)
    sets = [" ".join(group.selection.within_limit or ["nothing"]) for group in found.groups]
    rows = [[words if groups.is_described(i, 1) else ""] for i, words in enumerate(sets)]
    return groups.table(f"By {found.by}", ["group", "records", "within the limit"], rows)


def ends_table(found: Paths) -> Table:
    """Return the sets within the limit side by side."""
    columns = ["found by", "variables", "RP", "CR", "which"]
    title = "Sets within the limit, side by side"
    return replace(found.tables()[0], title=title, columns=columns)


def before_after(results: Results) -> Table | None:
    """Set exposure on the keys beside that on the variables proposed, and on the better set."""
    on_keys: Exposure = results["exposure"]
    sets: dict[str, Exposure | None] = {
        "on the keys": on_keys,
        "on the variables proposed": results.get("proposal"),
        "on the frontier’s better set": results.get("alternative"),
    }
    chosen = {name: found for name, found in sets.items() if found is not None}
    if len(chosen) == 1:
        return None
    found = chosen.values()
    rows = [
        ["variables", *(str(len(one.keys)) for one in found)],
        ["cells", *(f"{one.cells:,}" for one in found)],
        ["uniques", *(f"{one.uniques:,}" for one in found)],
        [f"RP({on_keys.cutoff})", *(share(one.rp) for one in found)],
        ["CR", *(share(one.cr) for one in found)],
    ]
    if on_keys.population is not None:
        risks = [None if one.population is None else one.population.global_risk for one in found]
        rows.append(["global risk", *map(share, risks)])
    notes = []
    if on_keys.missing != "own":
        notes.append("The sets count a missing value as a category of its own.")
    return Table("Exposure, side by side", ["", *chosen], rows, notes)
