"""Chapters of the report on exposure, uniques, drivers, attributes, scenarios and selection.

Other subjects have modules of their own. Chapters are made from the stages' results as they are
stored, never from the data: a stored result and a fresh one give the same page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keyhole.charts import percentage
from keyhole.core.tables import Table
from keyhole.exposure.attributes_cells import DRAWN
from keyhole.exposure.measures import MEASURES
from keyhole.results import share, tables_of
from keyhole.reviews.count_sheets import CountSheet, count_alone, smallest_shown
from keyhole.reviews.group_tables import enter_groups, exposure_by_group
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.exposure import ATTRIBUTES, hidden_share
from keyhole.reviews.stages.outgoing import RELEASED_ATTRIBUTES
from keyhole.reviews.stages.selection import selection_stage

if TYPE_CHECKING:
    from keyhole.exposure.attributes import Attributes
    from keyhole.exposure.cells import Exposure
    from keyhole.exposure.drivers import Drivers
    from keyhole.exposure.uniques import MinimalUniques
    from keyhole.selection.result import CandidateRow, Selection, Step


Results = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """What a chapter of the report shows: sentences, tables, warnings and notes."""

    said: Sequence[str] = ()
    wide: Sequence[Table] = ()
    narrow: Sequence[Table] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()


_POPULATION = {
    "sampling_fraction": "sampling fraction",
    "expected_reidentifications": "expected re-identifications, all records attacked",
    "global_risk": "global risk (mean individual risk)",
    "max_individual_risk": "highest individual risk",
    "household_global_risk": "mean household risk",
    "dis_probability": "probability that a unique match is correct",
}
LEVELS = (
    "A record’s level shows how little an intruder must know to single it out. High: one or two "
    "variables are enough. Medium: it takes three. Low: it takes more, or a few others share all "
    "its keys. None: it is not at risk."
)
NUMERALS = {2: "two", 3: "three", 4: "four", 5: "five", 10: "ten"}


def exposure_tables(review: Review, found: Exposure, sheet: CountSheet) -> list[Table]:
    """Return exposure in the file, in the population, and by group."""
    rows = [
        [f"in cells smaller than {c}" if c != 2 else "unique (alone in their cell)",
         f"{found.at_risk[c]:,}", share(rate)]
        for c, rate in found.at_risk_shares.items()
    ]  # fmt: skip
    told, people = found.measures, found.population
    more = [[m.label, share(told[m.name])] for m in MEASURES.values() if m.name in told]
    tables = [
        Table("Records by exposure", ["records", "count", "share"], rows),
        Table("Other measures of the risk", ["measure", "value"], more),
    ]
    if people is not None:
        rows = []
        for name, words in _POPULATION.items():
            value = getattr(people, name)
            text = share(value)
            if name == "expected_reidentifications" and value is not None:
                text = f"{value:,.0f}" if value >= 10 else f"{value:.2f}"
            if name != "household_global_risk" or people.of_households:
                rows.append([words, text])
        in_population = Table("In the population", ["figure", "value"], rows, people.notes)
        tables += [in_population, *tables_of(people.model)]
    if found.groups:
        tables.append(exposure_by_group(sheet, found, review.exposure.named_groups))
    return tables


def uniques_tables(found: MinimalUniques) -> list[Table]:
    """Return minimal uniques by size, by variable, and the risk levels."""
    summary, smallest = found.level_summary, smallest_shown(found.cutoff)
    by_size = [[str(size), f"{count:,}"] for size, count in found.by_size.items()]
    shares = summary.risk_set or {}
    by_level = [
        [level, f"{count:,}", share(shares[level]) if level in shares else ""]
        for level, count in summary.levels.items()
    ]
    rows = []
    for name, count in sorted(found.by_variable.items(), key=lambda item: -item[1]):
        part = found.contributions.get(name)
        # A variable in few minimal uniques flags few records.
        untold = part is None or part.percent is None or 0 < count < smallest
        mean = "" if untold or part is None else share((part.percent or 0.0) / 100)
        flags = count_alone(summary.flags[name], smallest)
        rows.append([name, count_alone(count, smallest), mean, flags])
    worst, flags_most = summary.worst_category, summary.worst_category_flags or 0
    notes = ["The score of a record grows with the number of its minimal uniques."]
    if worst is not None and flags_most >= smallest:
        notes.append(
            f"The category that flags most records is {worst} of {summary.worst_variable}: "
            f"{flags_most:,} of them."
        )
    heads = ["variable", "in minimal uniques", "mean share of the score", "records it flags"]
    return [
        Table("Minimal uniques by size", ["variables", "minimal uniques"], by_size),
        Table("Risk levels", ["level", "records", "share of those at risk"], by_level, [LEVELS]),
        Table("By variable", heads, rows, notes),
    ]


def driver_tables(review: Review, found: Drivers) -> list[Table]:
    """Return the levels that stand out, small ones aside, and what regrouping them would do."""
    levels, *moves = found.tables()
    smallest = smallest_shown(review.exposure.cutoff)
    left_out = (
        f"Levels are left out where a count below {smallest} could be derived: of all their "
        f"records, of those at risk, or of those not at risk."
    )
    named = ", ".join(review.tabulated)
    elsewhere = [f"The levels of {named} are in tables of their own."] if named else []
    return [replace(levels, notes=[*levels.notes, left_out, *elsewhere]), *moves]


def attributes_chapter(review: Review, results: Results) -> Chapter | None:
    """Return the chapter on attribute disclosure, if columns are sensitive."""
    if ATTRIBUTES not in results:
        return None
    found: Attributes = results[ATTRIBUTES]
    smallest = smallest_shown(review.exposure.cutoff)
    head = ["column", "records in homogeneous cells", "share", "not the most frequent value",
            "hidden by RP", "CAP", "base rate"]  # fmt: skip
    rows = [
        [name, *hidden_share(one.homogeneous_records, one.homogeneous, smallest),
         count_alone(one.uncommon_records, smallest), f"{one.hidden_by_rp:,}",
         share(one.cap), share(one.base_rate)]
        for name, one in found.sensitive.items()
    ]  # fmt: skip
    notes = [
        "Homogeneous: all records of the cell have one value.",
        f"Hidden by RP: those of them in cells of {found.cutoff} or more.",
        DRAWN,
    ]
    tables = [Table("The file under review", head, rows, notes)]
    levels = [
        [level.column, level.level, name, f"{level.homogeneous:,}", f"{level.records:,}"]
        for name, one in found.sensitive.items()
        for level in (one.levels if one.disclosed else ())
        # Tables have their levels, and withhold others than this one would.
        if level.column not in review.tabulated
    ]
    if levels:
        head = ["key", "level", "discloses", "records in such cells", "of"]
        note = f"Records in homogeneous cells of {found.cutoff} or more, by level of each key."
        tables.append(Table("Levels that disclose most", head, levels, [note]))
    if RELEASED_ATTRIBUTES in results:
        tables += results[RELEASED_ATTRIBUTES].tables()
    said = [learnt_said(found, name, smallest) for name in found.sensitive]
    return Chapter(said=said, wide=tables)


def learnt_said(found: Attributes, name: str, smallest: int) -> str:
    """Say in a sentence what the key discloses of one sensitive column."""
    one, least = found.sensitive[name], NUMERALS.get(found.cutoff, f"{found.cutoff}")
    if not one.disclosed and one.homogeneous:
        return f"All records have one value of {name}: it is not a secret, so nothing is learnt."
    if not one.hidden_by_rp:
        return f"No cell of {least} or more shares one value of {name}."
    few = one.uncommon_records < smallest
    uncommon = f"fewer than {smallest}" if few else f"{one.uncommon_records:,}"
    return (
        f"{one.hidden_by_rp:,} records are in cells of {least} or more that all share one value of "
        f"{name}: anybody who knows the key learns it without identifying a record. "
        f"RP({found.cutoff}) does not count them. Of the {one.homogeneous_records:,} records in "
        f"homogeneous cells of any size, {uncommon} have a value other than the most frequent one. "
        f"A value drawn at random from the cell is correct for {percentage(one.cap)} of the "
        f"records; one drawn from the whole file, for {percentage(one.base_rate)}."
    )


def selection_paths(review: Review, results: Results, sheet: CountSheet) -> list[dict[str, Any]]:
    """Return the path of each method: its steps, and all candidates of each."""
    chosen = review.selection
    methods = () if chosen is None else chosen.methods
    named = () if chosen is None else chosen.named_groups
    return [_path(results[selection_stage(method)], named, sheet) for method in methods]


def _path(found: Selection, named: Sequence[str], sheet: CountSheet) -> dict[str, Any]:
    heads = ["α" if found.criterion == "ratio" else found.criterion.upper(), "RP", "CR", "RP/CR"]
    steps = []
    for step in found.steps:
        # A removal may put a coarser alternative in the place of a variable: "age → age10".
        old, _, new = step.variable.partition(" → ")
        added = step.step.startswith("F")
        entered, removed = (step.variable, None) if added else (new or None, old)
        names = {"entered": entered, "removed": removed}
        steps.append({"step": step, "figures": _figures(step), **names})
    groups = None
    if found.groups:  # of a small one that was asked for only the name is shown
        sizes = [(group.label, group.selection.records or 0) for group in found.groups]
        shown = enter_groups(sheet, found.by or "", sizes, named)
        sets = [" ".join(group.selection.within_limit or ["nothing"]) for group in found.groups]
        rows = [[words if shown.is_described(i, 1) else ""] for i, words in enumerate(sets)]
        groups = shown.table(f"By {found.by}", ["group", "records", "within the limit"], rows)
    tables = [
        Table(
            f"Step {table.step}",
            ["added" if table.step.startswith("F") else "removed", *heads],
            [[row.variable, *_figures(row)] for row in table.rows],
        )
        for table in found.step_tables
    ]
    return {"found": found, "heads": heads, "steps": steps, "candidates": tables, "groups": groups}


def _figures(row: CandidateRow | Step) -> list[str]:
    """Write the figures of a step: RP and CR in percent, α and RP/CR as ratios."""
    alpha, ratio = ("" if x is None else f"{x:.3f}" for x in (row.alpha, row.ratio))
    return [alpha, share(row.rp), share(row.cr), ratio]


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
    own = ["The sets count a missing value as a category of its own."]
    return Table("Exposure, side by side", ["", *chosen], rows, own * (on_keys.missing != "own"))
