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
from keyhole.reviews.stages import selection_stage
from keyhole.reviews.stages.attributes import ATTRIBUTES, RELEASED_ATTRIBUTES, hidden_share

if TYPE_CHECKING:
    from keyhole.exposure.attributes import Attributes
    from keyhole.exposure.cells import Exposure
    from keyhole.exposure.drivers import Drivers
    from keyhole.exposure.fix import Fixes
    from keyhole.exposure.population import PopulationRisk
    from keyhole.exposure.uniques import MinimalUniques
    from keyhole.reviews.stages.exposure import ScenarioStories
    from keyhole.reviews.stages.selection import Paths
    from keyhole.selection.result import CandidateRow, Selection, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """What a chapter of the report shows: sentences, tables, warnings and notes."""

    said: Sequence[str] = ()
    wide: Sequence[Table] = ()
    narrow: Sequence[Table] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()


def exposure_tables(review: Review, found: Exposure, sheet: CountSheet) -> list[Table]:
    """Return exposure in the file, in the population, and by group."""
    rows = [
        [f"in cells smaller than {c}" if c != 2 else "unique (alone in their cell)",
         f"{found.at_risk[c]:,}", share(rate)]
        for c, rate in found.at_risk_shares.items()
    ]  # fmt: skip
    tables = [Table("Records by exposure", ["records", "count", "share"], rows)]
    told = found.measures
    more = [[m.label, share(told[m.name])] for m in MEASURES.values() if m.name in told]
    tables.append(Table("Other measures of the risk", ["measure", "value"], more))
    if found.population is not None:
        tables += [_population_table(found.population), *tables_of(found.population.model)]
    if found.groups:
        tables.append(exposure_by_group(sheet, found, review.exposure.named_groups))
    return tables


_POPULATION = {
    "sampling_fraction": "sampling fraction",
    "expected_reidentifications": "expected re-identifications, all records attacked",
    "global_risk": "global risk (mean individual risk)",
    "max_individual_risk": "highest individual risk",
    "household_global_risk": "mean household risk",
    "dis_probability": "probability that a unique match is right",
}


def _population_table(population: PopulationRisk) -> Table:
    rows = []
    for name, words in _POPULATION.items():
        value = getattr(population, name)
        text = share(value)
        if name == "expected_reidentifications" and value is not None:
            text = f"{value:,.0f}" if value >= 10 else f"{value:.2f}"
        if name != "household_global_risk" or population.of_households:
            rows.append([words, text])
    return Table("In the population", ["figure", "value"], rows, population.notes)


LEVELS = (
    "A record’s level says how little an intruder must know to single it out. High: one or two "
    "variables are enough. Medium: it takes three. Low: it takes more, or a few others share all "
    "its keys. None: it is not at risk."
)


def uniques_tables(found: MinimalUniques) -> list[Table]:
    """Return minimal uniques by size, by variable, and the risk levels."""
    by_size = [[str(size), f"{count:,}"] for size, count in found.by_size.items()]
    shares = found.level_summary.risk_set or {}
    by_level = [
        [level, f"{count:,}", share(shares[level]) if level in shares else ""]
        for level, count in found.level_summary.levels.items()
    ]
    return [
        Table("Minimal uniques by size", ["variables", "minimal uniques"], by_size),
        Table("Risk levels", ["level", "records", "share of those at risk"], by_level, [LEVELS]),
        _variable_table(found),
    ]


def _variable_table(found: MinimalUniques) -> Table:
    parts, flags = found.contributions, found.level_summary.flags
    smallest = smallest_shown(found.cutoff)
    rows = []
    for name, count in sorted(found.by_variable.items(), key=lambda item: -item[1]):
        percent = parts[name].percent if name in parts else None
        mean = "" if percent is None else f"{percent / 100:.4f}"
        # A variable in few minimal uniques flags few records.
        hidden = 0 < count < smallest
        rows.append(
            [name, count_alone(count, smallest), "" if hidden else mean,
             count_alone(flags[name], smallest)]
        )  # fmt: skip
    columns = ["variable", "in minimal uniques", "mean share of the score", "records it flags"]
    return Table("By variable", columns, rows, _worst(found))


def _worst(found: MinimalUniques) -> list[str]:
    """Name the category that flags most records, where it flags enough of them."""
    summary = found.level_summary
    flags = summary.worst_category_flags or 0
    if flags < smallest_shown(found.cutoff) or summary.worst_category is None:
        return []
    return [
        f"The category that flags most records is {summary.worst_category} of "
        f"{summary.worst_variable}: {flags:,} of them."
    ]


def driver_tables(review: Review, found: Drivers) -> list[Table]:
    """Return the levels that stand out, and what regrouping or setting apart would do.

    The stage left out what is small.
    """
    levels, *moves = found.tables()
    smallest = smallest_shown(review.exposure.cutoff)
    left_out = (
        f"Left out are levels of which a count below {smallest} could be worked out: of their "
        f"records, of those at risk, or of those that are not."
    )
    named = ", ".join(review.tabulated)
    elsewhere = [f"The levels of {named} are in tables of their own."] if named else []
    return [replace(levels, notes=[*levels.notes, left_out, *elsewhere]), *moves]


def fix_table(found: Fixes) -> Table:
    """Return the changes of one variable that help most."""
    return replace(found.tables()[0], title="Changes of one variable, the best first")


def attributes_chapter(review: Review, results: Mapping[str, Any]) -> Chapter | None:
    """Return the chapter on attribute disclosure, if columns are sensitive."""
    if ATTRIBUTES not in results:
        return None
    found: Attributes = results[ATTRIBUTES]
    smallest = smallest_shown(review.exposure.cutoff)
    tables = [_attributes_table(found, smallest)]
    levels = [
        [level.column, level.level, name, f"{level.homogeneous:,}", f"{level.records:,}"]
        for name, one in found.sensitive.items()
        for level in (one.levels if one.disclosed else ())
        # Tables tell of their levels, and withhold others than this one would.
        if level.column not in review.tabulated
    ]
    if levels:
        head = ["key", "level", "tells", "records in such cells", "of"]
        note = f"Records in homogeneous cells of {found.cutoff} or more, by level of each key."
        tables.append(Table("Levels that tell most", head, levels, [note]))
    if RELEASED_ATTRIBUTES in results:
        tables += results[RELEASED_ATTRIBUTES].tables()
    said = [learnt_said(found, name, smallest) for name in found.sensitive]
    return Chapter(said=said, wide=tables)


def learnt_said(found: Attributes, name: str, smallest: int) -> str:
    """Say in a sentence what the key tells of one sensitive column."""
    one, least = found.sensitive[name], NUMERALS.get(found.cutoff, f"{found.cutoff}")
    if not one.disclosed and one.homogeneous:
        return f"All records have one value of {name}: it is no secret, and nothing is learnt."
    if not one.hidden_by_rp:
        return f"No cell of {least} or more shares one value of {name}."
    guess = (
        f"A value drawn at random from the cell is right for {percentage(one.cap)} of the records; "
        f"one drawn from the whole file, for {percentage(one.base_rate)}."
    )
    few = one.uncommon_records < smallest
    uncommon = f"fewer than {smallest}" if few else f"{one.uncommon_records:,}"
    return (
        f"{one.hidden_by_rp:,} records lie in cells of {least} or more that all share one value "
        f"of {name}: whoever knows the key learns it without finding anybody. RP({found.cutoff}) "
        f"does not count them. Of the {one.homogeneous_records:,} records in homogeneous cells of "
        f"any size, {uncommon} have another value than the most frequent one. {guess}"
    )


NUMERALS = {2: "two", 3: "three", 4: "four", 5: "five", 10: "ten"}


def _attributes_table(found: Attributes, smallest: int) -> Table:
    head = ["column", "records in homogeneous cells", "share", "not the commonest value",
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
    return Table("The file under review", head, rows, notes)


def scenario_chapter(
    review: Review, records: Mapping[str, Mapping[str, Any]], results: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the scenarios: the worst of them, side by side, then one by one, if there are any."""
    if "scenarios" not in results or review.scenarios is None:
        return None
    found: ScenarioStories = results["scenarios"]
    return {
        "worst": found.comparison.worst,
        "tables": [Table.from_plain(table) for table in records["scenarios"]["tables"]],
        "stories": found.stories,
        "chosen": review.scenarios.chosen,
    }


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
