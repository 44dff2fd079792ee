"""Chapters of the report on what is made: the protection with its ledger, tables, the synthesis.

How many values a step changed may be a small count; the figures of the whole file are shown. In
the synthesis the number of a level's records by how many of their variables changed adds up to
the level's size; those unique after are unique still, laid bare, or nobody.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from keyhole.core.notes import Note
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
from keyhole.reviews.count_sheets import (
    Count,
    CountSheet,
    IfExact,
    ShownRate,
    count_alone,
    hide_counts,
    smallest_shown,
)
from keyhole.reviews.rendering import limit_percentage
from keyhole.reviews.settings import Review
from keyhole.reviews.stages.attacks import study_stage
from keyhole.reviews.stages.tables import AuditedTable, PublishedTables, Tabulations
from keyhole.reviews.study_chapters import protected_rates
from keyhole.reviews.verdict import VERDICTS
from keyhole.screening.screen import Screening
from keyhole.synthesis.changes import LevelChanges
from keyhole.synthesis.evaluation import Evaluation
from keyhole.synthesis.goals import Goal
from keyhole.synthesis.release import Synthesis
from keyhole.synthesis.remaining_risk import SelfMatch, TrueExposure, VisibleChanges
from keyhole.utility import Coefficients, Distributions
from keyhole.utility.distributions import VariableTest
from keyhole.utility.figures import amount, probability

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
    rows = [
        [one.variable, f"{one.entropy:.2f}", "" if one.share is None else share(one.share),
         "" if one.il1s is None else f"{one.il1s:.3f}"]
        for one in kept.variables
    ]  # fmt: skip
    columns = ["variable", "bits of information", "share lost", "IL1s"]
    narrow = [Table("Information lost by the whole plan", columns, rows)]
    if found.before is not None and found.after is not None:
        reading = {
            "wildcard": "A missing key matches every value, both ways: the less cautious reading.",
            "drop": "Records with a missing key are not counted.",
        }
        read = [reading[name] for name in reading if name == found.before.missing]
        narrow.insert(0, Table("Before and after", *exposure_rows(found), read))
    rows = [
        [one.words, count_alone(one.changed, smallest), share(one.rp),
         share(one.lost), share(one.price), "yes" if one.meets else "no"]
        for one in kept.next_steps
    ]  # fmt: skip
    columns = ["add", "changed", f"RP({kept.cutoff})", "lost", "price", "meets the limit"]
    added = Table("What could be added, the cheapest first", columns, rows)
    return ProtectionChapter(
        said=[_said(found, kept)],
        wide=_ledger(kept, smallest),
        narrow=narrow,
        next_steps=added if rows else None,
        warnings=[f"{text[:1].upper()}{text[1:]}." for text in kept.warnings],
        notes=[*notes, *hide_counts(found.notes, smallest)],
    )


def table_chapters(results: Mapping[str, Any]) -> list[tuple[Table, str, str]]:
    """Return the tables in the review's order, each with what is said of it and its picture."""
    made: PublishedTables | None = results.get("table")
    found = []
    for number, one in enumerate(() if made is None else made.made, 1):
        found.append(_published(number, one))
        hidden = one.published.protect == "none"
        for place, table in enumerate([] if hidden else one.published.tables()[1:], 2):
            said = f"The table is in table/release/table-{number}-{place}.csv."
            found.append((table, said, ""))
    estimated: Tabulations | None = results.get("tabulate")
    for number, estimate in enumerate(() if estimated is None else estimated.made, 1):
        said = "Estimated from the synthetic release."
        found.append((estimate.tables()[0], said, f"tabulate-{number}"))
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
        "round": f"All {every}, are rounded.",
        "cell-key": f"All {every}, have noise.",
    }[one.published.protect]
    return table, f"{how} The table is in table/release/table-{number}.csv.", f"table-{number}"


def _said(found: Protection, kept: Ledger) -> str:
    start, end, many = kept.lines[0], kept.last, len(found.steps)
    begin = f"The {many} steps of the plan take" if many > 1 else "The step of the plan takes"
    if found.after is None or start.rp is None or end.rp is None:
        return f"{begin} every key out of the file: nothing is left to match on."
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
    over = f"{HEADS['lost']}: {meaning('lost', kept.targets)}; other targets give other figures."
    risk = Table(title, columns, rows, [*notes, over])
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


# The shades of a heat map.
SHADES = 10


@dataclass(frozen=True, slots=True)
class GoalShown:
    """A goal as the report shows it."""

    what: str
    measured: object
    wanted: str
    state: str
    verdict: str
    remedy: object

    @property
    def said(self) -> str:
        """What was measured beside what is wanted."""
        return f"{self.measured}; wanted: {self.wanted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisChapter(Chapter):
    """What the report shows of a synthesis; `missed` counts the goals that are not met."""

    goals: Sequence[GoalShown]
    missed: int
    heats: Sequence[Heat]
    protection: Sequence[Table]


def synthesis_chapter(
    review: Review, results: Mapping[str, Any], sheet: CountSheet
) -> SynthesisChapter | None:
    """Return the chapter on the synthesis, if there is one."""
    if "synthesis" not in results:
        return None
    made: Synthesis = results["synthesis"]
    found = made.evaluation
    many, levels, count = found.implicates, found.changed.average, len(found.changed.variables)
    caption = "In the implicate" if many == 1 else f"In the implicates (mean of {many})"
    heats = [heat_map(caption, levels, count, many, sheet)]
    if many > 1:
        caption = "After an attack (mean or mode of the implicates)"
        heats.append(heat_map(caption, found.mean_mode.rows, count, 1, sheet))
    exposed = true_exposures(found.exposure, made.at_risk, sheet)
    columns = ["file", "unique before", "still, own key", "true exposure", "unique after",
               "with another key", "newly unique"]  # fmt: skip
    meaning = (
        "Of those unique after: with another key than their own, so that a match on it is false, "
        "and newly unique on their own key, which others shared before."
    )
    title = "True exposure: unique on the key, before and after"
    true_exposure = Table(title, columns, [one.cells for one in exposed], [meaning])
    goals = [
        _goal(goal, _measured(goal, goal.goal.code, found, heats[0], exposed, sheet))
        for goal in found.goals
        if isinstance(goal.goal, Note)
    ]
    goals += _attack_goals(review, results)
    told = "Ratio: 1 or less where original and synthetic records cannot be told apart."
    propensity = [replace(one, notes=[*one.notes, told]) for one in found.propensity.tables()]
    wide = [*found.moments.tables(), *found.correlations.tables()]
    wide += [_coefficients(found.coefficients)] if found.coefficients else []
    decoys = f" and of {made.decoys:,} decoys" if made.decoys else ""
    done = (
        f"Values of {', '.join(made.targets)} of {made.at_risk:,} records at risk on the key "
        f"{', '.join(made.keys)}{decoys}, of {made.records:,}, were replaced by those of similar "
        f"records, {'once' if many == 1 else f'{many} times over'}. The protection holds for this "
        f"key."
    )
    return SynthesisChapter(
        said=[done],
        goals=goals,
        missed=sum(goal.state == "unmet" for goal in goals),
        heats=heats,
        protection=[
            true_exposure,
            _matches(found.self_match, sheet),
            _visible(found.visible, sheet),
        ],
        narrow=[_homogeneity(found.homogeneity), *propensity],
        wide=wide,
        notes=_sentences(made.notes, sheet.smallest),
    )


def _attack_goals(review: Review, results: Mapping[str, Any]) -> list[GoalShown]:
    """Judge the first implicate by the attack of the study, if that has a limit."""
    limit = None if review.study is None else review.study.limit
    if limit is None:
        return []
    found = []
    for metric, before, after in protected_rates(review, results):
        met = (after or 0.0) <= limit
        # A truth without pairs confirms nobody, and says nothing.
        judged = after is None or results[study_stage(metric)].overlap.records
        state, verdict = VERDICTS[met if judged else None]
        then, now = ("nobody is suspected" if x is None else share(x) for x in (before, after))
        measured = f"{now} (before the synthesis {then})"
        name = f"Conditional rate of the study by {metric}, on implicate 1"
        advice = "" if met else "The chapter on the study names the linking variables."
        wanted = f"{limit_percentage(limit)} or less"
        found.append(GoalShown(name, measured, wanted, state, verdict, advice))
    return found


def _goal(goal: Goal, measured: object) -> GoalShown:
    advice: object = goal.advice
    unique = isinstance(goal.goal, Note) and goal.goal.code == "goal.unique"
    if unique and isinstance(measured, ShownRate) and goal.met is False:
        # How many would tell what is hidden.
        advice = IfExact([measured], goal.advice, "Ask for more decoys.")
    name = goal.goal[0].upper() + goal.goal[1:]
    wanted = goal.wanted
    if isinstance(measured, ShownRate):  # a share and its limit are both in percent
        wanted = re.sub(r"\d+(\.\d+)?", lambda found: limit_percentage(float(found[0])), wanted)
    return GoalShown(name, measured, wanted, *VERDICTS[goal.met], advice)


def _measured(
    goal: Goal,
    code: str,
    found: Evaluation,
    heat: Heat,
    exposed: Sequence[ExposureShown],
    sheet: CountSheet,
) -> object:
    """Write what a goal measured, as far as the tables below tell it."""
    value, worst, seen = goal.measured, found.self_match.worst, found.visible.records
    if isinstance(value, tuple):
        return _Listed([row.mean for row in heat.rows])
    if value is None or code == "goal.homogeneity":
        return probability(value)
    if code == "goal.exposure.attacked":
        return exposed[-1].counted
    if code == "goal.exposure":
        return max(exposed[:-1], key=lambda one: one.rate or 0).counted
    if code == "goal.self-match.metric" and worst is not None:
        return _share(worst.matched, worst.records, sheet)
    if code == "goal.unique" and seen is not None:
        return _share(round(value * seen), seen, sheet)
    if code == "goal.constant" and found.constancy is not None:
        return _share(found.constancy.right, found.constancy.claims, sheet)
    if code == "goal.rules":  # how many records is told to the owner of the file alone
        return "more than 0" if value else "0"
    return f"{value:g}" if code == "goal.constant.values" else f"{value:.4f}"


@dataclass(frozen=True, slots=True)
class _Listed:
    """Figures in a row, the absent ones as "none"."""

    figures: Sequence[object]

    def __str__(self) -> str:
        return ", ".join(str(figure) or "none" for figure in self.figures)


def _share(count: int, total: int, sheet: CountSheet) -> ShownRate:
    whole = sheet.total(total)
    return sheet.rate(sheet.unshown(count, of=whole), whole)


def _matches(found: SelfMatch, sheet: CountSheet) -> Table:
    rows: list[list[object]] = []
    for one in found.metrics:
        tried, before, bounds = one.records, one.baseline.unchanged or 0.0, one.interval
        rate = _share(one.matched, tried, sheet)
        unchanged = _share(round(before * tried), tried, sheet)
        own = IfExact([rate], f"{share(bounds[0])} to {share(bounds[1])}" if bounds else "")
        rows.append([one.metric, f"{tried:,}", rate, own, unchanged, share(one.baseline.chance)])
    columns = ["metric", "records tried", "linked to itself", "95% interval", "if unchanged",
               "by chance"]  # fmt: skip
    notes = _sentences(found.notes, sheet.smallest)
    title = "Self-match: protected records that link to themselves in the original"
    return Table(title, columns if rows else [], rows, notes)


def _visible(found: VisibleChanges, sheet: CountSheet) -> Table:
    rows: list[list[object]] = [["records replaced", f"{found.replaced:,}"]]
    if found.records is not None:
        seen = sheet.count(found.records, of=sheet.total(found.replaced))
        rows.append(["visibly changed", seen])
        for what, part in (("unique", found.p_unique), ("at risk", found.p_at_risk)):
            count = sheet.unshown(round((part or 0.0) * seen.value), of=seen)
            rows.append([f"P({what} | visibly changed)", sheet.rate(count, seen)])
    notes = _sentences(found.notes, sheet.smallest)
    return Table("What differences between implicates reveal", ["figure", "value"], rows, notes)


def _sentences(notes: Sequence[str], smallest: int) -> list[str]:
    """Write notes as sentences, small counts in them hidden."""
    return [f"{t[:1].upper()}{t[1:].rstrip('.')}." for t in hide_counts(notes, smallest)]


@dataclass(frozen=True, slots=True)
class Cell:
    """A share, and how dark it is drawn, from 0 to 10; what is hidden is light."""

    text: object
    part: float = 0.0
    rate: ShownRate | None = None

    @property
    def shade(self) -> int:
        """How dark it is."""
        return round(SHADES * self.part) if self.rate is not None and self.rate.exact else 0


class HeatRow(NamedTuple):
    """A level of risk."""

    level: str
    records: Count
    cells: Sequence[Cell]
    mean: object


class Heat(NamedTuple):
    """Shares of each level's records by the number of their variables changed."""

    caption: str
    numbers: Sequence[int]
    rows: Sequence[HeatRow]


def heat_map(
    caption: str, levels: Sequence[LevelChanges], variables: int, files: int, sheet: CountSheet
) -> Heat:
    """Lay out changes by level; shares are over so many files."""
    sizes = [sheet.count(level.records) for level in levels]
    sheet.add_up(sizes, sum(size.value for size in sizes))
    pairs = zip(levels, sizes, strict=True)
    rows = [_row(level, size, variables, files, sheet) for level, size in pairs]
    return Heat(caption, range(variables + 1), rows)


def _row(
    level: LevelChanges, size: Count, variables: int, files: int, sheet: CountSheet
) -> HeatRow:
    """Enter how many of a level's records, over all files, have how many variables changed."""
    if not level.records or level.shares is None or level.mean is None:
        return HeatRow(level.level, size, [Cell("")] * (variables + 1), "")
    whole = sheet.unshown(level.records * files, guarded=False)
    sheet.weigh_up([(size, files)], whole)
    counts = [sheet.unshown(round(part * whole.value), of=whole) for part in level.shares]
    sheet.add_up(counts, whole)
    rates = [sheet.rate(count, whole) for count in counts]
    changes = sheet.unshown(
        sum(number * count.value for number, count in enumerate(counts)), guarded=False
    )
    sheet.weigh_up([(count, number) for number, count in enumerate(counts)], changes)
    cells = [
        Cell(IfExact([size], rate), part, rate)
        for rate, part in zip(rates, level.shares, strict=True)
    ]
    return HeatRow(level.level, size, cells, IfExact([size], sheet.rate(changes, whole, 2)))


class ExposureShown(NamedTuple):
    """The true exposure of a file as cells of a row, and the figure that counts for the goals."""

    cells: Sequence[object]
    counted: ShownRate
    rate: float | None


def true_exposures(found: TrueExposure, at_risk: int, sheet: CountSheet) -> list[ExposureShown]:
    """Return the true exposure of each implicate, then after the attack."""
    shown = []
    for one in (*found.implicates, found.reconstruction):
        # Those unique after are still so, laid bare, or nobody, and add up.
        before, after = sheet.total(one.unique_before), sheet.total(one.unique_after)
        still = sheet.count(one.still, of=before)
        others = [
            sheet.unshown(round((part or 0.0) * after.value), of=after)
            for part in (one.nobody, one.laid_bare)
        ]
        sheet.add_up([still, *others], sum(count.value for count in (still, *others)))
        counted, rate = sheet.rate(still, before), one.exposure
        cells = [one.name, before, still, counted, after]
        cells += [sheet.rate(count, after) for count in others]
        if found.designated_only:
            rate = one.designated_exposure
            counted = _share(round((rate or 0.0) * at_risk), at_risk, sheet)
        shown.append(ExposureShown(cells, counted, rate))
    return shown


def _coefficients(fit: Coefficients) -> Table:
    rows = [
        [one.name, amount(one.original), _interval(one.original_low, one.original_high),
         amount(one.estimate), _interval(one.low, one.high), share(one.overlap, 2)]
        for one in fit.coefficients
    ]  # fmt: skip
    columns = ["term", "original", "95% interval", "combined", "95% interval", "overlap"]
    notes = ["Overlap: the mean share of the two intervals that lies in both."]
    notes += _sentences(fit.notes, 0)
    return Table(f"Regression: {fit.formula}", columns, rows, notes)


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"{amount(low)} to {amount(high)}"


def _homogeneity(found: Distributions) -> Table:
    tests: dict[str, list[VariableTest]] = {}
    for test in found.tests:
        tests.setdefault(test.name, []).append(test)
    rows = [
        [name, f"{mine[0].test.categories:,}", _least(one.test.p for one in mine),
         _least(one.adjusted for one in mine)]
        for name, mine in tests.items()
    ]  # fmt: skip
    columns = ["variable", "categories or bins", "smallest p", "adjusted"]
    notes = ["Stuart-Maxwell tests of all implicates; p adjusted after Holm."]
    return Table("Homogeneity of distributions", columns, rows, notes)


def _least(found: Iterable[float]) -> str:
    return probability(min((p for p in found if not math.isnan(p)), default=None))
