"""The chapters of the report on screening, and on the protection and its ledger.

How many values a step changed may be a small count; the figures of the whole file are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.protection.ledger_result import HEADS, figure
from keyhole.protection.prices import FIGURES
from keyhole.results import share
from keyhole.reviews.chapters import Sheet
from keyhole.reviews.settings import Review
from keyhole.reviews.small_counts import protect_count, smallest_shown

__all__ = ["ProtectionChapter", "ScreenChapter", "protection_chapter", "screen_chapter"]

Figures = Mapping[str, Any]
# Counts of values and records in the notes of a step.
_COUNT = re.compile(r"(?<![\d.,])[\d,]+(?= (?:of the )?(?:values?|records?)\b)")


@dataclass(frozen=True, slots=True)
class ScreenChapter:
    """What the report shows of the screening."""

    said: str
    sheets: Sequence[Sheet]
    warnings: Sequence[str]


def screen_chapter(records: Mapping[str, Figures]) -> ScreenChapter | None:
    """Return the chapter on screening, if there was any."""
    if "screen" not in records:
        return None
    record = records["screen"]
    result = record["result"]
    found = sum(check["status"] == "found" for check in result["safe_harbor"])
    said = (
        f"{len(result['identifiers']):,} findings of direct identifiers in {result['columns']:,} "
        f"columns; {found:,} of {len(result['safe_harbor']):,} items of Safe Harbor were found."
    )
    tables = [table for table in record["tables"] if table["title"] != "Mind"]
    return ScreenChapter(said, [_without_counts(table) for table in tables], result["warnings"])


def _without_counts(table: Figures) -> Sheet:
    """Leave out the column that tells how many records one number has: it may be one person's."""
    dropped = [i for i, name in enumerate(table["columns"]) if name == "most records of one"]
    columns = [name for i, name in enumerate(table["columns"]) if i not in dropped]
    rows = [[cell for i, cell in enumerate(row) if i not in dropped] for row in table["rows"]]
    return Sheet.laid_out(table["title"], columns, rows, table["notes"])


@dataclass(frozen=True, slots=True)
class ProtectionChapter:
    """What the report shows of a protection."""

    said: str
    within: bool | None
    ledger: Sheet
    variables: Sheet
    compared: Sheet | None
    next_steps: Sheet | None
    warnings: Sequence[str]
    notes: Sequence[str]


def protection_chapter(review: Review, records: Mapping[str, Figures]) -> ProtectionChapter | None:
    """Return the chapter on the protection, if there is one."""
    if "protection" not in records or review.protection is None:
        return None
    result, smallest = records["protection"]["result"], smallest_shown(review.exposure.cutoff)
    found = result["ledger"]
    notes = [f"Step {i}: {note}." for i, step in enumerate(result["steps"], 1)
             for note in step["notes"]]  # fmt: skip
    return ProtectionChapter(
        said=_said(result),
        within=found["meets"],
        ledger=_ledger(found, smallest),
        variables=_variables(found),
        compared=_compared(result),
        next_steps=_next_steps(found, smallest) if found["next_steps"] else None,
        warnings=[f"{text}." for text in found["warnings"]],
        notes=[_without_small(note, smallest) for note in [*notes, *result["notes"]]],
    )


def _said(result: Figures) -> str:
    found, after = result["ledger"], result["after"]
    start, end = found["lines"][0], found["lines"][-1]
    many = len(result["steps"])
    begin = f"The {many} steps of the plan take" if many > 1 else "The step of the plan takes"
    if after is None:
        return f"{begin} every key away: nothing is left to be matched."
    lost = "" if end["lost"] is None else f", and lose {percentage(end['lost'])} of what the "
    lost += "variables told" if lost else ""
    lost = lost.replace("lose", "loses") if many == 1 else lost
    return (
        f"{begin} RP({found['cutoff']}) on {', '.join(found['keys'])} from "
        f"{percentage(start['rp'])} to {percentage(end['rp'])}{lost}."
    )


def _ledger(found: Figures, smallest: int) -> Sheet:
    lines = found["lines"]
    heads = {
        name: head
        for name, head in HEADS.items()
        if any(line[name] is not None for line in lines[1:])
    }
    people = any(line["population_uniques"] is not None for line in lines)
    rows = [
        [_words(line), protect_count(line["changed"], smallest) if line["step"] else "",
         share(line["rp"]), share(line["cr"]),
         "" if line["uniques"] is None else f"{line['uniques']:,}",
         *([_people(line)] if people else []),
         *(figure(name, line[name]) for name in heads)]
        for line in lines
    ]  # fmt: skip
    columns = ["after", "changed", f"RP({found['cutoff']})", "CR", "uniques",
               *(["in population"] if people else []), *heads.values()]  # fmt: skip
    notes = ["; ".join(f"{head}: {FIGURES[name]}" for name, head in heads.items()) + "."]
    return Sheet.laid_out("The ledger: risk and price after each step", columns, rows, notes)


def _words(line: Figures) -> str:
    if not line["step"]:
        return "the file as it is"
    return f"{line['step']} {line['method']} {', '.join(line['columns'])}".strip()


def _people(line: Figures) -> str:
    expected = line["population_uniques"]
    return "not estimable" if expected is None else f"{expected:,.0f}"


def _variables(found: Figures) -> Sheet:
    rows = [
        [one["variable"], f"{one['entropy']:.2f}",
         "" if one["share"] is None else f"{one['share']:.3f}",
         "" if one["il1s"] is None else f"{one['il1s']:.3f}"]
        for one in found["variables"]
    ]  # fmt: skip
    columns = ["variable", "bits told", "share lost", "IL1s"]
    return Sheet.laid_out("Information lost by the whole plan", columns, rows)


def _compared(result: Figures) -> Sheet | None:
    before, after = result["before"], result["after"]
    if after is None:
        return None
    rows = [
        ["records", *(f"{one['records']:,}" for one in (before, after))],
        ["cells", *(f"{one['cells']:,}" for one in (before, after))],
        ["uniques", *(f"{one['uniques']:,}" for one in (before, after))],
        [f"RP({before['cutoff']})", *(share(one["rp"]) for one in (before, after))],
        ["CR", *(share(one["cr"]) for one in (before, after))],
    ]
    reading = {
        "wildcard": ["A missing key matches every value, both ways: the less cautious reading."],
        "drop": ["Records with a missing key are not counted."],
    }
    notes = reading.get(before["missing"], [])
    return Sheet.laid_out("Before and after", ["figure", "before", "after"], rows, notes)


def _next_steps(found: Figures, smallest: int) -> Sheet:
    rows = [
        [one["words"], protect_count(one["changed"], smallest), share(one["rp"]),
         f"{one['lost']:.3f}", f"{one['price']:+.3f}", "yes" if one["meets"] else "no"]
        for one in found["next_steps"]
    ]  # fmt: skip
    columns = ["add", "changed", f"RP({found['cutoff']})", "lost", "price", "meets the limit"]
    return Sheet.laid_out("What could be added, the cheapest first", columns, rows)


def _without_small(note: str, smallest: int) -> str:
    """Write small counts of values or records in a note as small."""

    def told(match: re.Match[str]) -> str:
        count = int(match[0].replace(",", ""))
        return f"fewer than {smallest}" if 0 < count < smallest else match[0]

    return _COUNT.sub(told, note)
