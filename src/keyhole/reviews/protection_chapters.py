"""Chapters of the report on screening, on the protection with its ledger, and on tables.

How many values a step changed may be a small count; the figures of the whole file are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.core.tables import Table
from keyhole.protection.prices import FIGURES
from keyhole.protection.results import (
    HEADS,
    Ledger,
    LedgerLine,
    Protection,
    exposure_rows,
    meaning,
    risk_columns,
    utility_figure,
)
from keyhole.results import share
from keyhole.reviews.chapters import Chapter
from keyhole.reviews.count_sheets import count_alone, hide_counts, smallest_shown
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.tables import AuditedTable, PublishedTables, Tabulations
from keyhole.screening.screen import Screening

# Of a step's columns, so that a line of the ledger stays one; the plan has them all.
MOST_NAMED = 3


def screen_said(screening: Screening) -> str:
    """Say how many columns look like identifiers, and what of Safe Harbor was found."""
    # A column may look like a direct identifier in several ways.
    count = len({found.column for found in screening.identifiers})
    many, look = f"{count:,}" if count else "None", "look" if count > 1 else "looks"
    found = sum(check.status == "found" for check in screening.safe_harbor)
    return (
        f"{many} of {screening.columns:,} columns {look} like a direct identifier. {found:,} of "
        f"{len(screening.safe_harbor):,} items of Safe Harbor were found."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionChapter(Chapter):
    """What the report shows of a protection, and what could be added to it."""

    next_steps: Table | None


def protection_chapter(review: Review, results: Mapping[str, Any]) -> ProtectionChapter | None:
    """Return the chapter on the protection, if there is one."""
    found: Protection | None = results.get("protection")
    if found is None or found.ledger is None or review.protection is None:
        return None
    kept, smallest = found.ledger, smallest_shown(review.exposure.cutoff)
    notes = [
        f"Step {i}: {note}."
        for i, step in enumerate(found.steps, 1)
        for note in hide_counts(step.notes, smallest)
    ]
    return ProtectionChapter(
        said=[_said(found, kept)],
        wide=_ledger(kept, smallest),
        narrow=[*_compared(found), _variables(kept)],
        next_steps=_next_steps(kept, smallest) if kept.next_steps else None,
        warnings=[f"{text[:1].upper()}{text[1:]}." for text in kept.warnings],
        notes=[*notes, *hide_counts(found.notes, smallest)],
    )


def table_chapters(results: Mapping[str, Any]) -> list[tuple[Table, str, str]]:
    """Return the protected tables, then those of the synthetic release, in the review's order.

    Beside each stands what is said of it, and the name of its picture.
    """
    made: PublishedTables | None = results.get("table")
    found = [] if made is None else [_published(n, one) for n, one in enumerate(made.made, 1)]
    estimated: Tabulations | None = results.get("tabulate")
    for number, one in enumerate(() if estimated is None else estimated.made, 1):
        said = "Estimated from the synthetic release."
        found.append((one.tables()[0], said, f"tabulate-{number}"))
    return found


def _published(number: int, one: AuditedTable) -> tuple[Table, str, str]:
    table, audit = one.published.tables()[0], one.audit
    # How many are unsafe by themselves would tell which, where few are suppressed.
    every = f"of {len(one.published.cells):,} cells, totals included"
    if one.published.protect == "none":
        hidden = Table(table.title, [], [], ["It is not protected: its cells are not shown here."])
        return hidden, "", ""
    how = {
        "suppress": f"{audit.suppressed:,} {every}, are suppressed.",
        "round": f"All {every} are rounded.",
        "cell-key": f"All {every} have noise.",
    }[one.published.protect]
    return table, f"{how} The table is in table/release/table-{number}.csv.", f"table-{number}"


def _said(found: Protection, kept: Ledger) -> str:
    start, end, many = kept.lines[0], kept.last, len(found.steps)
    begin = f"The {many} steps of the plan take" if many > 1 else "The step of the plan takes"
    if found.after is None or start.rp is None or end.rp is None:
        return f"{begin} every key out of the file: nothing is left to be matched."
    few = len(kept.targets) <= MOST_NAMED
    over = ", ".join(kept.targets) if few else f"the {len(kept.targets)} variables named below"
    lost = "" if end.price.lost is None else (
        f", and {'lose' if many > 1 else 'loses'} {share(end.price.lost)} of the information in "
        f"{over}"
    )  # fmt: skip
    read_off = "" if found.read_off is None else (
        f" Including values recoverable from retained columns it is {share(found.read_off.rp)}."
    )  # fmt: skip
    return (
        f"{begin} RP({kept.cutoff}) on {', '.join(kept.keys)} from {share(start.rp)} to "
        f"{share(end.rp)}{lost}.{read_off}"
    )


def _ledger(kept: Ledger, smallest: int) -> list[Table]:
    """Lay out the ledger: risk beside what is lost, then the other figures of utility."""
    people = any(line.population_uniques is not None for line in kept.lines)
    heads, cells, notes = risk_columns(kept.lines, kept.cutoff, kept.missing, people=people)
    rows = [
        [_words(line), count_alone(line.changed, smallest) if line.step else "", *own,
         "" if line.price.lost is None else share(line.price.lost)]
        for line, own in zip(kept.lines, cells, strict=True)
    ]  # fmt: skip
    columns = ["after", "changed", *heads, HEADS["lost"]]
    title = "The ledger: risk and price after each step"
    over = f"{HEADS['lost']}: {meaning('lost', kept.targets)}; with other targets it is another "
    risk = Table(title, columns, rows, [*notes, f"{over}figure."])
    return [risk, *_utility(kept.lines, smallest)]


def _utility(lines: Sequence[LedgerLine], smallest: int) -> list[Table]:
    # A file that is still the original is not compared: it has no test, and no difference.
    compared = [line for line in lines[1:] if line.price.p is not None] or lines[1:]
    names = [
        name
        for name in HEADS
        if name != "lost" and any(getattr(line.price, name) is not None for line in compared)
    ]
    if not names:
        return []
    rows = [
        [_words(line), *("few" if name == "moved" and line.step and 0 < line.changed < smallest
                         else utility_figure(name, getattr(line.price, name)) for name in names)]
        for line in lines
    ]  # fmt: skip
    columns = ["after", *(HEADS[name] for name in names)]
    meanings = "; ".join(f"{HEADS[name]}: {FIGURES[name]}" for name in names)
    return [Table("What else the analyst loses, after each step", columns, rows, [f"{meanings}."])]


def _words(line: LedgerLine) -> str:
    if not line.step:
        return line.words
    few = len(line.columns) <= MOST_NAMED
    named = ", ".join(line.columns) if few else f"{len(line.columns)} columns"
    return f"{line.step} {line.method} {named}".strip()


def _variables(kept: Ledger) -> Table:
    rows = [
        [one.variable, f"{one.entropy:.2f}", "" if one.share is None else share(one.share),
         "" if one.il1s is None else f"{one.il1s:.3f}"]
        for one in kept.variables
    ]  # fmt: skip
    columns = ["variable", "bits told", "share lost", "IL1s"]
    return Table("Information lost by the whole plan", columns, rows)


def _compared(found: Protection) -> list[Table]:
    if found.before is None or found.after is None:
        return []
    reading = {
        "wildcard": ["A missing key matches every value, both ways: the less cautious reading."],
        "drop": ["Records with a missing key are not counted."],
    }
    notes = reading.get(found.before.missing, [])
    return [Table("Before and after", *exposure_rows(found), notes)]


def _next_steps(kept: Ledger, smallest: int) -> Table:
    rows = [
        [one.words, count_alone(one.changed, smallest), share(one.rp),
         share(one.lost), share(one.price), "yes" if one.meets else "no"]
        for one in kept.next_steps
    ]  # fmt: skip
    columns = ["add", "changed", f"RP({kept.cutoff})", "lost", "price", "meets the limit"]
    return Table("What could be added, the cheapest first", columns, rows)
