"""The chapter of the report on the synthesis: goals, what is protected, what the analyst gets.

Counts of records by level, and of those that are still exposed, are protected like others. The
number of a level's records by how many of their variables changed adds up to the level's size;
those unique after are unique still, laid bare, or nobody. Each such row is protected as a whole,
and where one of its counts is hidden its mean is told as a band. The seed is not in the stored
result, and so not here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.notes import Note
from keyhole.results import Table, share
from keyhole.reviews.limits import VERDICTS
from keyhole.reviews.settings import Review
from keyhole.reviews.small_counts import (
    BAND_HOLDS,
    WITHHELD,
    Shown,
    as_it_is,
    hide_counts,
    in_band,
    protect_share,
    smallest_shown,
)
from keyhole.reviews.stages import study_stage
from keyhole.reviews.study_chapters import protected_rates
from keyhole.synthesis.changes import LevelChanges
from keyhole.synthesis.evaluation import Evaluation
from keyhole.synthesis.goals import Goal
from keyhole.synthesis.remaining_risk import FileExposure, SelfMatch, TrueExposure, VisibleChanges
from keyhole.synthesis.result import Synthesis
from keyhole.utility import Coefficients, Distributions, Moments
from keyhole.utility.distributions import VariableTest
from keyhole.utility.figures import amount, probability
from keyhole.utility.moments import Correlation

__all__ = [
    "Cell",
    "ExposureShown",
    "GoalShown",
    "Heat",
    "HeatRow",
    "SynthesisChapter",
    "heat_map",
    "synthesis_chapter",
    "true_exposures",
    "utility_tables",
]

# The widths of bands of means, and the shades of a heat map.
STEPS = (0.1, 0.2, 0.5, 1.0)
SHADES = 10
KINDS = {"pearson": "correlation", "cramers_v": "Cramér’s V"}


@dataclass(frozen=True, slots=True)
class GoalShown:
    """A goal as the report shows it."""

    name: str
    measured: str
    wanted: str
    state: str
    verdict: str
    advice: str


@dataclass(frozen=True, slots=True)
class SynthesisChapter:
    """What the report shows of a synthesis; `met` and `missed` count the goals judged."""

    done: str
    goals: Sequence[GoalShown]
    met: int
    missed: int
    heats: Sequence[Heat]
    protection: Sequence[Table]
    utility: Sequence[Table]
    wide: Sequence[Table]
    notes: Sequence[str]


def synthesis_chapter(review: Review, results: Mapping[str, Any]) -> SynthesisChapter | None:
    """Return the chapter on the synthesis, if there is one."""
    if "synthesis" not in results:
        return None
    made: Synthesis = results["synthesis"]
    found, smallest = made.evaluation, smallest_shown(review.exposure.cutoff)
    heats = _heats(found, smallest)
    exposed = true_exposures(found.exposure, made.at_risk, smallest)
    goals = [
        _goal(goal, goal.goal.code, found, heats[0], exposed, smallest)
        for goal in found.goals
        if isinstance(goal.goal, Note)
    ]
    goals += _attack_goals(review, results)
    narrow, wide = utility_tables(found)
    return SynthesisChapter(
        done=_done(made),
        goals=goals,
        met=sum(goal.state == "met" for goal in goals),
        missed=sum(goal.state == "unmet" for goal in goals),
        heats=heats,
        protection=[
            _exposure_table(exposed),
            _matches(found.self_match, smallest),
            _visible(found.visible, smallest),
        ],
        utility=narrow,
        wide=wide,
        notes=_sentences(made.notes, smallest),
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
        measured = f"{_suspected(after)} (before the synthesis {_suspected(before)})"
        name = f"Conditional rate of the study by {metric}, on implicate 1"
        advice = "" if met else "See the study’s own chapter for what it links on."
        wanted = f"{percentage(limit)} or less"
        found.append(GoalShown(name, measured, wanted, state, verdict, advice))
    return found


def _suspected(rate: float | None) -> str:
    return "nobody is suspected" if rate is None else share(rate)


def _done(made: Synthesis) -> str:
    many = made.evaluation.implicates
    decoys = f" and of {made.decoys:,} decoys" if made.decoys else ""
    times = "once" if many == 1 else f"{many} times over"
    return (
        f"Values of {', '.join(made.targets)} of {made.at_risk:,} records at risk on the key "
        f"{', '.join(made.keys)}{decoys}, of {made.records:,}, were replaced by those of records "
        f"like them, {times}. What is protected is protected on this key."
    )


def _heats(found: Evaluation, smallest: int) -> list[Heat]:
    """Return the changes by level, and what is left of them after an attack."""
    many, levels, count = found.implicates, found.changed.average, len(found.changed.variables)
    if many == 1:
        return [heat_map("In the implicate", levels, count, 1, smallest)]
    first, attacked = f"In the implicates (mean of {many})", found.mean_mode.rows
    caption = "After an attack (mean or mode of the implicates)"
    return [
        heat_map(first, levels, count, many, smallest),
        heat_map(caption, attacked, count, 1, smallest),
    ]


def _goal(
    goal: Goal,
    code: str,
    found: Evaluation,
    heat: Heat,
    exposed: Sequence[ExposureShown],
    smallest: int,
) -> GoalShown:
    measured, advice = _measured(goal, code, found, heat, exposed, smallest), goal.advice
    if code == "goal.unique" and not _is_exact(measured) and goal.met is False:
        advice = "Ask for more decoys."  # how many would tell what is hidden
    state, verdict = VERDICTS[goal.met]
    name = goal.goal[0].upper() + goal.goal[1:]
    return GoalShown(name, measured, goal.wanted, state, verdict, advice)


def _measured(
    goal: Goal,
    code: str,
    found: Evaluation,
    heat: Heat,
    exposed: Sequence[ExposureShown],
    smallest: int,
) -> str:
    """Write what a goal measured, as far as the tables below tell it."""
    value, worst, seen = goal.measured, found.self_match.worst, found.visible.records
    if isinstance(value, tuple):
        return ", ".join(row.mean or "none" for row in heat.rows)
    if value is None or code == "goal.homogeneity":
        return probability(value)
    if code == "goal.exposure.attacked":
        return exposed[-1].counted
    if code == "goal.exposure":
        return max(exposed[:-1], key=lambda one: one.rate or 0).counted
    if code == "goal.self-match.metric" and worst is not None:
        return protect_share(worst.matched, worst.records, smallest)
    if code == "goal.unique" and seen is not None:
        return protect_share(round(value * seen), seen, smallest)
    return share(value)


def _is_exact(text: str) -> bool:
    return re.fullmatch(r"[\d.]+", text) is not None


def _exposure_table(exposed: Sequence[ExposureShown]) -> Table:
    columns = ["file", "unique before", "still, own key", "true exposure", "unique after",
               "with another key", "newly alone"]  # fmt: skip
    rows = [one.cells for one in exposed]
    notes = [
        "Of those unique after: with another key than their own, so that who finds one has found "
        "nobody; and newly alone with their own key, which others shared before."
    ]
    return Table("True exposure: unique on the key, before and after", columns, rows, notes)


def _matches(found: SelfMatch, smallest: int) -> Table:
    """Return the self-match rates, or say why there are none."""
    rows = []
    for one in found.metrics:
        tried, before = one.records, one.baseline.unchanged or 0.0
        rate = protect_share(one.matched, tried, smallest)
        bounds = one.interval if _is_exact(rate) else None
        unchanged = protect_share(round(before * tried), tried, smallest)
        interval = f"{bounds[0]:.4f} to {bounds[1]:.4f}" if bounds else ""
        chance = share(one.baseline.chance)
        rows.append([one.metric, f"{tried:,}", rate, interval, unchanged, chance])
    columns = ["metric", "records tried", "linked to itself", "95% interval", "if unchanged",
               "by chance"]  # fmt: skip
    notes = _sentences(found.notes, smallest)
    title = "Self-match: protected records that link to themselves in the original"
    return Table(title, columns if rows else [], rows, notes)


def _visible(found: VisibleChanges, smallest: int) -> Table:
    """Return what differences between the implicates give away."""
    seen, replaced = found.records, found.replaced
    rows = [["records replaced", f"{replaced:,}"]]
    if seen is not None:
        few = 0 < replaced - seen < smallest
        rows.append(["visibly changed", f"> {replaced - smallest:,}" if few else f"{seen:,}"])
        for what, part in (("unique", found.p_unique), ("at risk", found.p_at_risk)):
            shown = protect_share(round((part or 0.0) * seen), seen, smallest)
            rows.append([f"P({what} | visibly changed)", shown])
    notes = _sentences(found.notes, smallest)
    return Table("What differences between implicates tell", ["figure", "value"], rows, notes)


def _sentences(notes: Sequence[str], smallest: int) -> list[str]:
    """Write notes as sentences, small counts in them hidden."""
    told = [note.hiding(smallest) if isinstance(note, Note) else note for note in notes]
    return [f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in told]


@dataclass(frozen=True, slots=True)
class Cell:
    """A share, and how dark it is drawn, from 0 to 10; what is hidden is light."""

    text: str
    shade: int


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A level of risk."""

    level: str
    records: str
    cells: Sequence[Cell]
    mean: str


@dataclass(frozen=True, slots=True)
class Heat:
    """Shares of each level's records by the number of their variables changed."""

    caption: str
    numbers: Sequence[int]
    rows: Sequence[HeatRow]


def heat_map(
    caption: str, levels: Sequence[LevelChanges], variables: int, files: int, smallest: int
) -> Heat:
    """Lay out changes by level; shares are over so many files.

    Examples
    --------
    >>> rows = [LevelChanges("low", 400, 1.0, (0.0025, 0.5, 0.4975), 1.495)]
    >>> row = heat_map("", rows, 2, 1, 3).rows[0]
    >>> [cell.text for cell in row.cells], row.mean
    (['0.00–0.02', '0.5000', 'withheld'], '1.4–1.5')
    """
    sizes = hide_counts([level.records for level in levels], smallest)
    rows = [
        _row(level, size, variables, files, smallest)
        for level, size in zip(levels, sizes, strict=True)
    ]
    return Heat(caption, range(variables + 1), rows)


def _row(level: LevelChanges, size: Shown, variables: int, files: int, smallest: int) -> HeatRow:
    if not size.exact or level.shares is None or level.mean is None:
        return HeatRow(level.level, size.text, [Cell("", 0)] * (variables + 1), "")
    total = level.records * files
    counts = [round(part * total) for part in level.shares]
    # Where all records are in one cell the others are empty, whatever is told of them.
    told = [*map(as_it_is, counts)] if total in counts else hide_counts(counts, smallest)
    cells = [
        _cell(part, one, total, smallest) for part, one in zip(level.shares, told, strict=True)
    ]
    whole = all(one.exact for one in told)
    mean = f"{level.mean:.2f}" if whole else _mean_band(level.mean, total, variables, smallest)
    return HeatRow(level.level, size.text, cells, mean)


def _cell(part: float, told: Shown, total: int, smallest: int) -> Cell:
    if told.exact:
        return Cell(share(part), round(SHADES * part))
    return Cell(told.text if told.kept_back else in_band(part, total, smallest).text, 0)


def _mean_band(mean: float, total: int, variables: int, smallest: int) -> str:
    """Tell a mean between round numbers: with the shares that are told it would tell the others."""
    # One record more or less in a cell moves the sum by as much as there are variables.
    wide = [step for step in STEPS if step * total >= BAND_HOLDS * smallest * variables]
    if not wide:
        return WITHHELD.text
    low = math.floor(mean / wide[0] + 1e-9) * wide[0]
    return f"{low:.1f}–{low + wide[0]:.1f}"


@dataclass(frozen=True, slots=True)
class ExposureShown:
    """The true exposure of a file as far as it is told, as the cells of a row.

    `counted` is the figure that counts for the goals, and `rate` that figure itself, to find the
    largest by.
    """

    cells: Sequence[str]
    counted: str
    rate: float | None


def true_exposures(found: TrueExposure, at_risk: int, smallest: int) -> list[ExposureShown]:
    """Return the true exposure of each implicate, then after the attack, as far as it is told."""
    designated = at_risk if found.designated_only else None
    return [
        _exposed(one, designated, smallest) for one in (*found.implicates, found.reconstruction)
    ]


def _exposed(one: FileExposure, designated: int | None, smallest: int) -> ExposureShown:
    """Tell those unique after: they are still so, laid bare, or nobody, and add up."""
    after = one.unique_after
    counts = [one.still, *(round((part or 0.0) * after) for part in (one.nobody, one.laid_bare))]
    told = hide_counts(counts, smallest)
    exposure = _part(one.still, one.unique_before, told[0], smallest)
    counted, rate = exposure, one.exposure
    if designated is not None:
        rate = one.designated_exposure
        counted = protect_share(round((rate or 0.0) * designated), designated, smallest)
    others = [_share_of(counts[i], after, told[i], smallest) for i in (1, 2)]
    before = [one.name, f"{one.unique_before:,}", told[0].text, exposure]
    return ExposureShown([*before, f"{after:,}", *others], counted, rate)


def _share_of(count: int, total: int, told: Shown, smallest: int) -> str:
    """Write a share of a known total; where the rest is small it would tell the rest."""
    if told.exact and 0 < total - count < smallest:
        return in_band(count / total, total, smallest).text
    return _part(count, total, told, smallest)


def _part(count: int, total: int, told: Shown, smallest: int) -> str:
    if not total:
        return share(None)
    if told.exact:
        return share(count / total)
    return told.text if told.kept_back else in_band(count / total, total, smallest).text


def utility_tables(found: Evaluation) -> tuple[list[Table], list[Table]]:
    """Return the narrow and the wide tables on what the analyst gets."""
    narrow = [_homogeneity(found.homogeneity)]
    narrow += [_shares(found.moments)] if found.moments.shares else []
    narrow.append(_relations(found))
    wide = [_measures(found.moments)] if found.moments.measures else []
    wide += [_coefficients(found.coefficients)] if found.coefficients else []
    return narrow, wide


def _coefficients(fit: Coefficients) -> Table:
    """Return the regression on the original beside the one combined over the implicates."""
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
    """Return of each variable the test that is worst."""
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


def _shares(moments: Moments) -> Table:
    rows = [
        [one.variable, f"{one.categories:,}", share(one.largest), share(one.moved)]
        for one in moments.shares
    ]
    columns = ["variable", "categories", "largest difference", "share moved"]
    return Table("Shares of categories", columns, rows)


def _measures(moments: Moments) -> Table:
    # Figures in the variable's own units, and those that have none.
    rows = [
        [one.variable, amount(one.mean), amount(one.synthetic_mean),
         share(one.relative_difference), amount(one.variance), amount(one.synthetic_variance),
         share(one.variance_ratio)]
        for one in moments.measures
    ]  # fmt: skip
    columns = ["variable", "mean", "synthetic", "relative difference", "variance", "synthetic",
               "ratio"]  # fmt: skip
    return Table("Means and variances", columns, rows)


def _relations(found: Evaluation) -> Table:
    """Return how far relations between variables moved, in a figure each."""
    rows = [_widest(found.correlations.pairs, kind) for kind in KINDS]
    ratio = found.propensity.ratio
    rows.append(["propensity score, ratio to the expected", "", share(ratio)])
    fit = found.coefficients
    if fit is not None:
        overlaps = [one.overlap for one in fit.coefficients if one.overlap is not None]
        least = min(overlaps, default=None)
        rows.append(["smallest overlap of intervals", fit.formula, share(least)])
        rows.append(["mean overlap of intervals", fit.formula, share(fit.mean_overlap)])
    notes = ["Propensity: 1 or less where nobody can tell original and synthetic."]
    columns = ["figure", "of", "value"]
    return Table("Relations", columns, [row for row in rows if row], notes)


def _widest(pairs: Sequence[Correlation], kind: str) -> list[str]:
    """Return the pair of a kind whose figure moved most."""
    moves = [(one.difference, one) for one in pairs if one.kind == kind]
    known = [(move, one) for move, one in moves if move is not None]
    if not known:
        return []
    most, pair = max(known, key=lambda one: abs(one[0]))
    return [f"largest move of a {KINDS[kind]}", f"{pair.first}, {pair.second}", f"{most:+.4f}"]
