"""The chapters of the report on screening, and on the protection and its ledger.

How many values a step changed may be a small count; the figures of the whole file are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.protection.ledger_result import HEADS, figure, meaning, missing_notes
from keyhole.protection.prices import FIGURES
from keyhole.results import Table, share
from keyhole.reviews.settings import Review
from keyhole.reviews.small_counts import protect_count, protect_notes, smallest_shown

__all__ = ["ProtectionChapter", "ScreenChapter", "protection_chapter", "screen_chapter"]

Figures = Mapping[str, Any]
# Of a step's columns, so that a line of the ledger stays one; the plan has them all.
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class ScreenChapter:
    """What the report shows of the screening."""

    said: str
    tables: Sequence[Table]
    warnings: Sequence[str]


def screen_chapter(records: Mapping[str, Figures]) -> ScreenChapter | None:
    """Return the chapter on screening, if there was any."""
    if "screen" not in records:
        return None
    record = records["screen"]
    result = record["result"]
    found = sum(check["status"] == "found" for check in result["safe_harbor"])
    said = (
        f"{_identifying(result)} {found:,} of {len(result['safe_harbor']):,} items of Safe Harbor "
        f"were found."
    )
    tables = [table for table in record["tables"] if table["title"] != "Mind"]
    return ScreenChapter(said, [_without_counts(table) for table in tables], result["warnings"])


def _identifying(result: Figures) -> str:
    """Say how many columns look like direct identifiers; one may do so in several ways."""
    count = len({found["column"] for found in result["identifiers"]})
    if not count:
        return f"None of {result['columns']:,} columns looks like a direct identifier."
    look = "looks" if count == 1 else "look"
    return f"{count:,} of {result['columns']:,} columns {look} like a direct identifier."


def _without_counts(table: Figures) -> Table:
    """Leave out the column that tells how many records one number has: it may be one person's."""
    dropped = [i for i, name in enumerate(table["columns"]) if name == "most records of one"]
    columns = [name for i, name in enumerate(table["columns"]) if i not in dropped]
    rows = [[cell for i, cell in enumerate(row) if i not in dropped] for row in table["rows"]]
    return Table(table["title"], columns, rows, table["notes"])


@dataclass(frozen=True, slots=True)
class ProtectionChapter:
    """What the report shows of a protection."""

    said: str
    within: bool | None
    ledger: Sequence[Table]
    variables: Table
    compared: Table | None
    next_steps: Table | None
    warnings: Sequence[str]
    notes: Sequence[str]


def protection_chapter(review: Review, records: Mapping[str, Figures]) -> ProtectionChapter | None:
    """Return the chapter on the protection, if there is one."""
    if "protection" not in records or review.protection is None:
        return None
    record, smallest = records["protection"], smallest_shown(review.exposure.cutoff)
    result = record["result"]
    found = result["ledger"]
    notes = [
        f"Step {i}: {note}."
        for i, step in enumerate(result["steps"], 1)
        for note in protect_notes(record, step["notes"], smallest)
    ]
    return ProtectionChapter(
        said=_said(result),
        within=found["meets"],
        ledger=_ledger(found, smallest),
        variables=_variables(found),
        compared=_compared(result),
        next_steps=_next_steps(found, smallest) if found["next_steps"] else None,
        warnings=[f"{text[:1].upper()}{text[1:]}." for text in found["warnings"]],
        notes=[*notes, *protect_notes(record, result["notes"], smallest)],
    )


def _said(result: Figures) -> str:
    found, after = result["ledger"], result["after"]
    start, end = found["lines"][0], found["lines"][-1]
    many = len(result["steps"])
    begin = f"The {many} steps of the plan take" if many > 1 else "The step of the plan takes"
    if after is None:
        return f"{begin} every key away: nothing is left to be matched."
    lost = "" if end["lost"] is None else f", and lose {percentage(end['lost'])} of what "
    lost += f"{_over(found['targets'])} told" if lost else ""
    lost = lost.replace("lose", "loses") if many == 1 else lost
    return (
        f"{begin} RP({found['cutoff']}) on {', '.join(found['keys'])} from "
        f"{percentage(start['rp'])} to {percentage(end['rp'])}{lost}.{_if_read_off(result)}"
    )


def _over(targets: Sequence[str]) -> str:
    few = len(targets) <= MOST_NAMED
    return ", ".join(targets) if few else f"the {len(targets)} variables named below"


def _if_read_off(result: Figures) -> str:
    """Say what RP comes to with what can be read off."""
    told = result["read_off"]
    if told is None:
        return ""
    return f" With what can be read off columns that stay it is {percentage(told['rp'])}."


def _ledger(found: Figures, smallest: int) -> list[Table]:
    """Lay out the ledger: risk beside what is lost, then the other figures of utility."""
    lines = found["lines"]
    people = any(line["population_uniques"] is not None for line in lines)
    missing = found["missing"]
    other = "rp_own" if missing == "wildcard" else "rp_wildcard"
    other = other if any(line[other] != line["rp"] for line in lines) else ""
    rows = [
        [_words(line), protect_count(line["changed"], smallest) if line["step"] else "",
         share(line["rp"]), *([share(line[other])] if other else []), share(line["cr"]),
         "" if line["uniques"] is None else f"{line['uniques']:,}",
         *([_people(line)] if people else []), figure("lost", line["lost"])]
        for line in lines
    ]  # fmt: skip
    also = {"rp_own": ["RP own"], "rp_wildcard": ["RP wild"]}.get(other or "", [])
    columns = ["after", "changed", f"RP({found['cutoff']})", *also, "CR", "uniques",
               *(["in population"] if people else []), HEADS["lost"]]  # fmt: skip
    title = "The ledger: risk and price after each step"
    risk = Table(title, columns, rows, [*missing_notes(missing, other), _lost(found)])
    return [risk, *_utility(lines, [False, *_few(found, smallest)])]


def _few(found: Figures, smallest: int) -> list[bool]:
    """Tell of each step whether it changed so few values that nobody is told how many."""
    return [0 < line["changed"] < smallest for line in found["lines"] if line["step"]]


def _utility(lines: Sequence[Figures], few: Sequence[bool]) -> list[Table]:
    # A file that is still the original is not compared: it has no test, and no difference.
    compared = [line for line in lines[1:] if line["p"] is not None] or lines[1:]
    names = [
        name
        for name in HEADS
        if name != "lost" and any(line[name] is not None for line in compared)
    ]
    if not names:
        return []
    rows = [
        [_words(line), *("few" if hidden and name == "moved" else figure(name, line[name])
                         for name in names)]
        for line, hidden in zip(lines, few, strict=True)
    ]  # fmt: skip
    columns = ["after", *(HEADS[name] for name in names)]
    title = "What else the analyst loses, after each step"
    return [Table(title, columns, rows, _meanings(names))]


def _lost(found: Figures) -> str:
    """Say over which columns the loss is taken, and that others would give another figure."""
    told = meaning("lost", found["targets"])
    return f"{HEADS['lost']}: {told}; with other targets it is another figure."


def _meanings(names: Sequence[str]) -> list[str]:
    return ["; ".join(f"{HEADS[name]}: {FIGURES[name]}" for name in names) + "."]


def _words(line: Figures) -> str:
    if not line["step"]:
        return "the file as it is"
    columns = line["columns"]
    named = ", ".join(columns) if len(columns) <= MOST_NAMED else f"{len(columns)} columns"
    return f"{line['step']} {line['method']} {named}".strip()


def _people(line: Figures) -> str:
    expected = line["population_uniques"]
    return "not estimable" if expected is None else f"{expected:,.0f}"


def _variables(found: Figures) -> Table:
    rows = [
        [one["variable"], f"{one['entropy']:.2f}",
         "" if one["share"] is None else f"{one['share']:.3f}",
         "" if one["il1s"] is None else f"{one['il1s']:.3f}"]
        for one in found["variables"]
    ]  # fmt: skip
    columns = ["variable", "bits told", "share lost", "IL1s"]
    return Table("Information lost by the whole plan", columns, rows)


def _compared(result: Figures) -> Table | None:
    before, after, told = result["before"], result["after"], result["read_off"]
    if after is None:
        return None
    shown = [before, after, *([] if told is None else [told])]
    cr = "CR (mean of 1/f)" if before["missing"] == "wildcard" else "CR"
    rows = [
        ["records", *(f"{one['records']:,}" for one in shown)],
        ["cells", *(f"{one['cells']:,}" for one in shown)],
        ["uniques", *(f"{one['uniques']:,}" for one in shown)],
        [f"RP({before['cutoff']})", *(share(one["rp"]) for one in shown)],
        [cr, *(share(one["cr"]) for one in shown)],
    ]
    reading = {
        "wildcard": ["A missing key matches every value, both ways: the less cautious reading."],
        "drop": ["Records with a missing key are not counted."],
    }
    notes = reading.get(before["missing"], [])
    columns = ["figure", "before", "after", "read off"][: len(shown) + 1]
    return Table("Before and after", columns, rows, notes)


def _next_steps(found: Figures, smallest: int) -> Table:
    rows = [
        [one["words"], protect_count(one["changed"], smallest), share(one["rp"]),
         f"{one['lost']:.3f}", f"{one['price']:+.3f}", "yes" if one["meets"] else "no"]
        for one in found["next_steps"]
    ]  # fmt: skip
    columns = ["add", "changed", f"RP({found['cutoff']})", "lost", "price", "meets the limit"]
    return Table("What could be added, the cheapest first", columns, rows)
