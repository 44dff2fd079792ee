"""The chapters of the report on selection: the paths as the paper prints them, and the frontier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.notes import restore_notes
from keyhole.results import Table, share
from keyhole.reviews.groups import Grouping, group_records, like_exposure
from keyhole.reviews.settings import Review
from keyhole.reviews.small_counts import smallest_shown
from keyhole.reviews.stages import selection_stage

__all__ = ["Path", "Step", "before_after", "ends_table", "frontier_table", "selection_paths"]

Figures = Mapping[str, Any]
SHOWN = 15
STOPPED = "selection.stopped"


@dataclass(frozen=True, slots=True)
class Step:
    """A row of a path: the variables with the one that changed, and the figures as text."""

    step: str
    variables: Sequence[str]
    entered: str | None
    removed: str | None
    figures: Sequence[str]


@dataclass(frozen=True, slots=True)
class Path:
    """A method's way: its steps, where it stopped, and all candidates of each step."""

    method: str
    heads: Sequence[str]
    steps: Sequence[Step]
    stopped: str
    within: Sequence[str] | None
    warnings: Sequence[str]
    candidates: Sequence[Table]
    groups: Table | None


def selection_paths(review: Review, records: Mapping[str, Figures]) -> list[Path]:
    """Return the path of each method, in the order the review names them."""
    if review.selection is None:
        return []
    named, exposure = review.selection.named_groups, records["exposure"]["result"]
    chosen = [records[selection_stage(method)] for method in review.selection.methods]
    return [_path(record, named, exposure) for record in chosen]


def _path(record: Figures, named: Sequence[str], exposure: Figures) -> Path:
    result, printed = record["result"], record["tables"][0]
    heads = ["α" if head == "alpha" else head.upper() for head in printed["columns"][2:]]
    heads = ["RP/CR" if head == "RATIO" else head for head in heads]
    steps = [_step(step, row) for step, row in zip(result["steps"], printed["rows"], strict=True)]
    return Path(
        method=result["method"],
        heads=heads,
        steps=steps,
        stopped=" ".join(t for t, note in restore_notes(record).items() if note.code == STOPPED),
        within=result["within_limit"],
        warnings=result["warnings"],
        candidates=[_candidates(table, heads) for table in result["tables"]],
        groups=_groups(result, named, exposure) if result.get("groups") else None,
    )


def _step(step: Figures, row: Sequence[str]) -> Step:
    name = step["variable"]
    if step["step"].startswith("F"):
        return Step(step["step"], step["variables"], name, None, row[2:])
    # A removal may put a coarser alternative in the place of a variable: "age → age10".
    old, _, new = name.partition(" → ")
    return Step(step["step"], step["variables"], new or None, old, row[2:])


def _candidates(table: Figures, heads: Sequence[str]) -> Table:
    forward = table["step"].startswith("F")
    names = ("alpha", "rp", "cr", "ratio")
    rows = [
        [row["variable"], *("" if row[name] is None else f"{row[name]:.3f}" for name in names)]
        for row in table["rows"]
    ]
    what = "added" if forward else "removed"
    return Table(f"Step {table['step']}", [what, *heads], rows)


def _groups(result: Figures, named: Sequence[str], exposure: Figures) -> Table:
    groups = result["groups"]
    measured = like_exposure(groups, result["by"], exposure)
    grouping = group_records(measured, smallest_shown(result["cutoff"]), named)
    rows = [
        [groups[i]["group"], grouping.sizes[i].text,
         " ".join(groups[i]["within_limit"] or ["nothing"]) if _told(grouping, i) else ""]
        for i in grouping.named
    ]  # fmt: skip
    columns = ["group", "records", "within the limit"]
    rows += grouping.pool(len(columns))
    return Table(f"By {result['by']}", columns, rows, grouping.notes)


def _told(grouping: Grouping, place: int) -> bool:
    """Nothing but the name is told of a small group that was asked for by name."""
    size = grouping.sizes[place]
    return size.exact or size.kept_back


def ends_table(record: Figures) -> Table:
    """Return the sets within the limit side by side."""
    ends = record["result"]["ends"]
    rows = [
        [e["found_by"], str(len(e["variables"] or [])), share(e["rp"]), share(e["cr"]),
         " ".join(e["variables"] or ["nothing"])]
        for e in ends
    ]  # fmt: skip
    columns = ["found by", "variables", "RP", "CR", "which"]
    return Table("Sets within the limit, side by side", columns, rows)


def frontier_table(result: Figures) -> Table:
    """Return the maximal sets with the largest CR."""
    sets = result["sets"]
    rows = [
        [str(place), share(s["rp"]), share(s["cr"]), str(s["size"]), " ".join(s["variables"])]
        for place, s in enumerate(sets[:SHOWN], 1)
    ]
    notes = [f"And {len(sets) - SHOWN:,} more, in results.json."] if len(sets) > SHOWN else []
    title = f"Maximal sets with RP({result['cutoff']}) within {percentage(result['limit'])}"
    columns = ["", "RP", "CR", "variables", "which"]
    return Table(f"{title}, the largest CR first", columns, rows, notes)


def before_after(results: Mapping[str, Figures]) -> Table | None:
    """Set exposure on the keys beside that on the variables proposed, and on the better set."""
    sets = {
        "on the keys": results["exposure"],
        "on the variables proposed": results.get("proposal"),
        "on the frontier’s better set": results.get("alternative"),
    }
    chosen = {name: found for name, found in sets.items() if found is not None}
    if len(chosen) == 1:
        return None
    cutoff = results["exposure"]["cutoff"]
    figures: list[tuple[str, Callable[[Figures], str]]] = [
        ("variables", lambda found: str(len(found["keys"]))),
        ("cells", lambda found: f"{found['cells']:,}"),
        ("uniques", lambda found: f"{found['uniques']:,}"),
        (f"RP({cutoff})", lambda found: share(found["rp"])),
        ("CR", lambda found: share(found["cr"])),
    ]
    if results["exposure"].get("population"):
        figures.append(("global risk", lambda found: share(found["population"]["global_risk"])))
    rows = [[name, *map(text, chosen.values())] for name, text in figures]
    notes = []
    if results["exposure"]["missing"] != "own":
        notes.append("The sets count a missing value as a category of its own.")
    return Table("Exposure, side by side", ["", *chosen], rows, notes)
