"""The chapter of the report on the synthesis: goals, what is protected, what the analyst gets.

Counts of records by level, and of those that are still exposed, are hidden like others. The
number of a level's records by how many of their variables changed adds up to the level's size;
those unique after are unique still, laid bare, or nobody. The seed is not in the stored result,
and so not here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keyhole.core.notes import Note
from keyhole.core.tables import Table
from keyhole.results import share
from keyhole.reviews.chapters import Chapter
from keyhole.reviews.count_sheets import Count, CountSheet, IfExact, ShownRate, hide_counts
from keyhole.reviews.digits import limit_percentage
from keyhole.reviews.limits import VERDICTS
from keyhole.reviews.settings import Review
from keyhole.reviews.stages import study_stage
from keyhole.reviews.study_chapters import protected_rates
from keyhole.synthesis.changes import LevelChanges
from keyhole.synthesis.evaluation import Evaluation
from keyhole.synthesis.goals import Goal
from keyhole.synthesis.release import Synthesis
from keyhole.synthesis.remaining_risk import FileExposure, SelfMatch, TrueExposure, VisibleChanges
from keyhole.utility import Coefficients, Distributions
from keyhole.utility.distributions import VariableTest
from keyhole.utility.figures import amount, probability

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
    heats = _heats(found, sheet)
    exposed = true_exposures(found.exposure, made.at_risk, sheet)
    goals = [
        _goal(goal, _measured(goal, goal.goal.code, found, heats[0], exposed, sheet))
        for goal in found.goals
        if isinstance(goal.goal, Note)
    ]
    goals += _attack_goals(review, results)
    narrow, wide = utility_tables(found)
    return SynthesisChapter(
        said=[_done(made)],
        goals=goals,
        missed=sum(goal.state == "unmet" for goal in goals),
        heats=heats,
        protection=[
            _exposure_table(exposed),
            _matches(found.self_match, sheet),
            _visible(found.visible, sheet),
        ],
        narrow=narrow,
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
        advice = "" if met else "See the study’s own chapter for what it links on."
        wanted = f"{limit_percentage(limit)} or less"
        found.append(GoalShown(name, measured, wanted, state, verdict, advice))
    return found


def _done(made: Synthesis) -> str:
    many = made.evaluation.implicates
    decoys = f" and of {made.decoys:,} decoys" if made.decoys else ""
    times = "once" if many == 1 else f"{many} times over"
    return (
        f"Values of {', '.join(made.targets)} of {made.at_risk:,} records at risk on the key "
        f"{', '.join(made.keys)}{decoys}, of {made.records:,}, were replaced by those of records "
        f"like them, {times}. What is protected is protected on this key."
    )


def _heats(found: Evaluation, sheet: CountSheet) -> list[Heat]:
    """Return the changes by level, and what is left of them after an attack."""
    many, levels, count = found.implicates, found.changed.average, len(found.changed.variables)
    if many == 1:
        return [heat_map("In the implicate", levels, count, 1, sheet)]
    first, attacked = f"In the implicates (mean of {many})", found.mean_mode.rows
    caption = "After an attack (mean or mode of the implicates)"
    return [
        heat_map(first, levels, count, many, sheet),
        heat_map(caption, attacked, count, 1, sheet),
    ]


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


def _exposure_table(exposed: Sequence[ExposureShown]) -> Table:
    columns = ["file", "unique before", "still, own key", "true exposure", "unique after",
               "with another key", "newly alone"]  # fmt: skip
    rows = [one.cells for one in exposed]
    notes = [
        "Of those unique after: with another key than their own, so that who finds one has found "
        "nobody; and newly alone with their own key, which others shared before."
    ]
    return Table("True exposure: unique on the key, before and after", columns, rows, notes)


def _matches(found: SelfMatch, sheet: CountSheet) -> Table:
    rows: list[list[object]] = []
    for one in found.metrics:
        tried, before, bounds = one.records, one.baseline.unchanged or 0.0, one.interval
        rate = _share(one.matched, tried, sheet)
        unchanged = _share(round(before * tried), tried, sheet)
        interval = f"{share(bounds[0])} to {share(bounds[1])}" if bounds else ""
        chance = share(one.baseline.chance)
        own = IfExact([rate], interval)
        rows.append([one.metric, f"{tried:,}", rate, own, unchanged, chance])
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
    return Table("What differences between implicates tell", ["figure", "value"], rows, notes)


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


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A level of risk."""

    level: str
    records: Count
    cells: Sequence[Cell]
    mean: object


@dataclass(frozen=True, slots=True)
class Heat:
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
    rows = [
        _row(level, size, variables, files, sheet)
        for level, size in zip(levels, sizes, strict=True)
    ]
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


@dataclass(frozen=True, slots=True)
class ExposureShown:
    """The true exposure of a file as the cells of a row.

    `counted` is the figure that counts for the goals, and `rate` that figure itself, to find the
    largest by.
    """

    cells: Sequence[object]
    counted: ShownRate
    rate: float | None


def true_exposures(found: TrueExposure, at_risk: int, sheet: CountSheet) -> list[ExposureShown]:
    """Return the true exposure of each implicate, then after the attack."""
    designated = at_risk if found.designated_only else None
    return [_exposed(one, designated, sheet) for one in (*found.implicates, found.reconstruction)]


def _exposed(one: FileExposure, designated: int | None, sheet: CountSheet) -> ExposureShown:
    """Enter those unique after: they are still so, laid bare, or nobody, and add up."""
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
    if designated is not None:
        rate = one.designated_exposure
        counted = _share(round((rate or 0.0) * designated), designated, sheet)
    return ExposureShown(cells, counted, rate)


def utility_tables(found: Evaluation) -> tuple[list[Table], list[Table]]:
    """Return the narrow and the wide tables on what the analyst gets."""
    told = "Ratio: 1 or less where nobody can tell original and synthetic."
    propensity = [replace(one, notes=[*one.notes, told]) for one in found.propensity.tables()]
    narrow = [_homogeneity(found.homogeneity), *propensity]
    wide = [*found.moments.tables(), *found.correlations.tables()]
    wide += [_coefficients(found.coefficients)] if found.coefficients else []
    return narrow, wide


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
