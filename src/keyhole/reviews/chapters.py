"""Chapters of the report on the data, exposure, uniques, drivers and scenarios.

Other subjects have modules of their own. Chapters are made from the stages' dictionaries, never
from the data: a stored result and a fresh one give the same page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.exposure.measures import MEASURES
from keyhole.results import Table, share
from keyhole.reviews.groups import NONE_FIT, group_records, hide_exposure
from keyhole.reviews.settings import Review
from keyhole.reviews.small_counts import protect_count, protect_notes, smallest_shown

__all__ = [
    "Glance",
    "ScenarioChapter",
    "Story",
    "data_table",
    "driver_tables",
    "exposure_notes",
    "exposure_tables",
    "fix_table",
    "scenario_chapter",
    "uniques_tables",
]

Figures = Mapping[str, Any]


def data_table(review: Review, result: Figures) -> Table:
    """Return the columns the review is about; a missing value is a category."""
    rows = [
        [c["name"], c["label"], c["kind"], c["role"] or "", f"{c['categories']:,}",
         protect_count(c["missing"], smallest_shown(review.exposure.cutoff))]
        for c in result["described"]
    ]  # fmt: skip
    columns = ["column", "meaning", "kind", "role", "categories", "missing"]
    return Table("The columns this review is about", columns, rows)


def exposure_notes(record: Figures) -> list[str]:
    """Return the notes on exposure; that a record or two are left out is told as "few"."""
    result = record["result"]
    return protect_notes(record, result["notes"], smallest_shown(result["cutoff"]))


def exposure_tables(review: Review, result: Figures) -> list[Table]:
    """Return exposure in the file, in the population, and by group."""
    counted = result["at_risk_records"]
    rows = [
        [f"in cells smaller than {c}" if c != "2" else "unique (alone in their cell)",
         f"{counted[c]:,}", share(rate)]
        for c, rate in result["at_risk"].items()
    ]  # fmt: skip
    tables = [Table("Records by exposure", ["records", "count", "share"], rows)]
    more = [[m.label, share(result[m.name])] for m in MEASURES.values() if m.name in result]
    tables.append(Table("Other measures of the risk", ["measure", "value"], more))
    population = result.get("population")
    if population:
        tables.append(_population_table(population))
    if result.get("groups"):
        tables.append(_group_table(review, result))
    return tables


_POPULATION = {
    "sampling_fraction": "sampling fraction",
    "expected_reidentifications": "expected re-identifications, all records attacked",
    "global_risk": "global risk (mean individual risk)",
    "max_individual_risk": "highest individual risk",
    "household_global_risk": "mean household risk",
    "dis_probability": "probability that a unique match is right",
}


def _population_table(population: Figures) -> Table:
    rows = [
        [words, _amount(name, population[name])]
        for name, words in _POPULATION.items()
        if name in population
    ]
    notes = population["notes"]
    return Table("In the population", ["figure", "value"], rows, notes)


def _amount(name: str, value: float | None) -> str:
    if name == "expected_reidentifications" and value is not None:
        return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"
    return share(value)


def _group_table(review: Review, result: Figures) -> Table:
    groups, smallest = result["groups"], smallest_shown(result["cutoff"])
    columns = ["group", "records", "uniques", f"RP({result['cutoff']})", "CR"]
    grouping = group_records(groups, smallest, review.exposure.named_groups)
    told = hide_exposure(groups, grouping)
    title = f"By {result['by']}"
    if told is None:
        return Table(title, columns, [], [NONE_FIT])
    rows = []
    for i in grouping.named:
        size, row = grouping.sizes[i], told[i]
        small = not size.exact and not size.kept_back
        figures = [""] * 3 if small else [row.uniques.text, row.rp, row.cr]
        rows.append([groups[i]["group"], size.text, *figures])
    rows += grouping.pool(len(columns))
    return Table(title, columns, rows, grouping.notes)


LEVELS = (
    "A record’s level says how little an intruder must know to single it out. High: one or two "
    "variables are enough. Medium: it takes three. Low: it takes more, or a few others share all "
    "its keys. None: it is not at risk."
)


def uniques_tables(result: Figures) -> list[Table]:
    """Return minimal uniques by size, by variable, and the risk levels."""
    by_size = [[size, f"{count:,}"] for size, count in result["by_size"].items()]
    shares = result["risk_set"] or {}
    by_level = [
        [level, f"{count:,}", share(shares[level]) if level in shares else ""]
        for level, count in result["levels"].items()
    ]
    return [
        Table("Minimal uniques by size", ["variables", "minimal uniques"], by_size),
        Table("Risk levels", ["level", "records", "share of those at risk"], by_level, [LEVELS]),
        _variable_table(result),
    ]


def _variable_table(result: Figures) -> Table:
    parts, flags = result["contributions"], result["flags"]
    smallest = smallest_shown(result["cutoff"])
    ordered = sorted(result["by_variable"].items(), key=lambda item: -item[1])
    rows = []
    for name, count in ordered:
        percent = parts[name]["percent"] if name in parts else None
        mean = "" if percent is None else f"{percent / 100:.4f}"
        # A variable in few minimal uniques flags few records.
        hidden = 0 < count < smallest
        rows.append(
            [name, protect_count(count, smallest), "" if hidden else mean,
             protect_count(flags[name], smallest)]
        )  # fmt: skip
    columns = ["variable", "in minimal uniques", "mean share of the score", "records it flags"]
    return Table("By variable", columns, rows, _worst(result))


def _worst(result: Figures) -> list[str]:
    """Name the category that flags most records, where it flags enough of them."""
    flags = result.get("worst_category_flags") or 0
    if flags < smallest_shown(result["cutoff"]) or result["worst_category"] is None:
        return []
    return [
        f"The category that flags most records is {result['worst_category']} of "
        f"{result['worst_variable']}: {flags:,} of them."
    ]


def driver_tables(review: Review, record: Figures) -> list[Table]:
    """Return the levels that stand out, and what regrouping or setting apart would do.

    The stage left out what is small.
    """
    levels, *moves = [Table.from_plain(table) for table in record["tables"]]
    smallest = smallest_shown(review.exposure.cutoff)
    left_out = (
        f"Left out are levels of which a count below {smallest} could be worked out: of their "
        f"records, of those at risk, or of those that are not."
    )
    elsewhere = record["asked"]["told_elsewhere"]
    by = [f"The levels of {elsewhere} are in the table by group."] if elsewhere else []
    return [dataclasses.replace(levels, notes=[*levels.notes, left_out, *by]), *moves]


def fix_table(record: Figures) -> Table:
    """Return the changes of one variable that help most."""
    return Table.from_plain(record["tables"][0], "Changes of one variable, the best first")


@dataclass(frozen=True, slots=True)
class Story:
    """One scenario: its points in words, its key, and how the key was derived."""

    title: str
    points: Sequence[tuple[str, str]]
    notes: Sequence[str]
    key: Table
    derived: Sequence[Table]


@dataclass(frozen=True, slots=True)
class Glance:
    """The worst case at the head of the report."""

    name: str
    rp: float
    probability: str


@dataclass(frozen=True, slots=True)
class ScenarioChapter:
    """All scenarios: the worst of them, side by side, then one by one."""

    glance: Glance | None
    tables: Sequence[Table]
    stories: Sequence[Story]
    chosen: str | None


def scenario_chapter(
    review: Review, records: Mapping[str, Mapping[str, Any]]
) -> ScenarioChapter | None:
    """Return the chapter, if the review has scenarios."""
    if "scenarios" not in records or review.scenarios is None:
        return None
    record = records["scenarios"]
    result = record["result"]
    return ScenarioChapter(
        _glance(result),
        [Table.from_plain(table) for table in record["tables"]],
        [_story(story) for story in result["stories"]],
        review.scenarios.chosen,
    )


def _glance(result: Figures) -> Glance | None:
    found = [part for part in result["scenarios"] if part["scenario"] == result["worst"]]
    if not found:
        return None
    bounds = found[0]["identification"]["p_identification"]
    ends = [] if bounds is None else list(dict.fromkeys(map(percentage, bounds)))
    return Glance(
        found[0]["scenario"], found[0]["exposure"]["rp"], " to ".join(ends) or "not estimable"
    )


def _story(story: Figures) -> Story:
    points, key, *rest = story["tables"]
    return Story(
        story["title"],
        [(row[0], row[1]) for row in points["rows"]],
        points["notes"],
        Table.from_plain(key),
        [Table.from_plain(table) for table in rest],
    )
