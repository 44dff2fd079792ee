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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhole.charts import percentage
from keyhole.core.notes import restore_notes
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
    protect_notes,
    protect_share,
    smallest_shown,
)
from keyhole.reviews.stages import restored, study_stage
from keyhole.reviews.study_chapters import protected_rates
from keyhole.utility.figures import amount, probability

__all__ = [
    "Cell",
    "GoalShown",
    "Heat",
    "HeatRow",
    "SynthesisChapter",
    "heat_map",
    "synthesis_chapter",
    "true_exposures",
    "utility_tables",
]

Figures = Mapping[str, Any]
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


def synthesis_chapter(review: Review, records: Mapping[str, Figures]) -> SynthesisChapter | None:
    """Return the chapter on the synthesis, if there is one."""
    if "synthesis" not in records:
        return None
    record, smallest = records["synthesis"], smallest_shown(review.exposure.cutoff)
    result, notes = record["result"], restore_notes(record)
    heats = _heats(result, smallest)
    exposed = true_exposures(result, smallest)
    goals = [
        _goal(goal, notes[goal["goal"]].code, result, heats[0], exposed, smallest)
        for goal in result["goals"]
        if goal["goal"] in notes
    ]
    goals += _attack_goals(review, restored(records))
    narrow, wide = utility_tables(result)
    return SynthesisChapter(
        done=_done(result),
        goals=goals,
        met=sum(goal.state == "met" for goal in goals),
        missed=sum(goal.state == "unmet" for goal in goals),
        heats=heats,
        protection=[
            _exposure_table(exposed),
            _matches(result, smallest),
            _visible(record, smallest),
        ],
        utility=narrow,
        wide=wide,
        notes=[_sentence(note) for note in protect_notes(record, result["notes"], smallest)],
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


def _done(result: Figures) -> str:
    many = result["implicates"]
    decoys = f" and of {result['decoys']:,} decoys" if result["decoys"] else ""
    times = "once" if many == 1 else f"{many} times over"
    return (
        f"Values of {', '.join(result['targets'])} of {result['at_risk']:,} records at risk on "
        f"the key {', '.join(result['keys'])}{decoys}, of {result['records']:,}, were replaced by "
        f"those of records like them, {times}. What is protected is protected on this key."
    )


def _heats(result: Figures, smallest: int) -> list[Heat]:
    """Return the changes by level, and what is left of them after an attack."""
    changed, attack, many = result["changed_by_level"], result["mean_mode_attack"], 1
    first = "In the implicate"
    if result["implicates"] > 1:
        many = result["implicates"]
        first = f"In the implicates (mean of {many})"
    count = len(changed["variables"])
    heats = [heat_map(first, changed["average"], count, many, smallest)]
    if many > 1:
        caption = "After an attack (mean or mode of the implicates)"
        heats.append(heat_map(caption, attack["rows"], count, 1, smallest))
    return heats


def _goal(
    goal: Figures, code: str, result: Figures, heat: Heat, exposed: Sequence[Figures], smallest: int
) -> GoalShown:
    name, advice = goal["goal"], goal["advice"]
    measured = _measured(goal, code, result, heat, exposed, smallest)
    if code == "goal.unique" and not _is_exact(measured) and goal["met"] is False:
        advice = "Ask for more decoys."  # how many would tell what is hidden
    state, verdict = VERDICTS[goal["met"]]
    advice = advice.replace("=False", " = false").replace("=True", " = true")
    return GoalShown(name[0].upper() + name[1:], measured, goal["wanted"], state, verdict, advice)


def _measured(
    goal: Figures, code: str, result: Figures, heat: Heat, exposed: Sequence[Figures], smallest: int
) -> str:
    """Write what a goal measured, as far as the tables below tell it."""
    value = goal["measured"]
    if code == "goal.changed":
        return ", ".join(row.mean or "none" for row in heat.rows)
    if value is None or code == "goal.homogeneity":
        return probability(value)
    if code == "goal.exposure.attacked":
        return str(exposed[-1]["counted"])
    if code == "goal.exposure":
        worst = max(exposed[:-1], key=lambda one: one["rate"] or 0)
        return str(worst["counted"])
    if code == "goal.self-match.metric":
        worst = max(result["self_match"]["metrics"], key=lambda one: one["matched"])
        return protect_share(worst["matched"], worst["records"], smallest)
    if code == "goal.unique":
        seen = result["visibly_changed"]["records"]
        return protect_share(round(value * seen), seen, smallest)
    return share(value)


def _is_exact(text: str) -> bool:
    return re.fullmatch(r"[\d.]+", text) is not None


def _exposure_table(exposed: Sequence[Figures]) -> Table:
    columns = ["file", "unique before", "still, own key", "true exposure", "unique after",
               "with another key", "newly alone"]  # fmt: skip
    names = ("of", "unique_before", "still", "exposure", "unique_after", "nobody", "laid_bare")
    rows = [[str(one[name]) for name in names] for one in exposed]
    notes = [
        "Of those unique after: with another key than their own, so that who finds one has found "
        "nobody; and newly alone with their own key, which others shared before."
    ]
    return Table("True exposure: unique on the key, before and after", columns, rows, notes)


def _matches(result: Figures, smallest: int) -> Table:
    """Return the self-match rates, or say why there are none."""
    found, rows = result["self_match"], []
    for one in found["metrics"]:
        tried = one["records"]
        rate = protect_share(one["matched"], tried, smallest)
        bounds = one["interval"] if _is_exact(rate) else None
        unchanged = protect_share(round(one["baseline"]["unchanged"] * tried), tried, smallest)
        interval = f"{bounds[0]:.4f} to {bounds[1]:.4f}" if bounds else ""
        rows.append([one["metric"], f"{tried:,}", rate, interval, unchanged,
                     share(one["baseline"]["chance"])])  # fmt: skip
    columns = ["metric", "records tried", "linked to itself", "95% interval", "if unchanged",
               "by chance"]  # fmt: skip
    notes = [_sentence(note) for note in found["notes"]]
    title = "Self-match: protected records that link to themselves in the original"
    return Table(title, columns if rows else [], rows, notes)


def _visible(record: Figures, smallest: int) -> Table:
    """Return what differences between the implicates give away."""
    found = record["result"]["visibly_changed"]
    seen, replaced = found["records"], found["replaced"]
    rows = [["records replaced", f"{replaced:,}"]]
    if seen is not None:
        few = 0 < replaced - seen < smallest
        rows.append(["visibly changed", f"> {replaced - smallest:,}" if few else f"{seen:,}"])
        for name, words in (("p_unique", "P(unique | visibly changed)"),
                            ("p_at_risk", "P(at risk | visibly changed)")):  # fmt: skip
            count = 0 if found[name] is None else round(found[name] * seen)
            rows.append([words, protect_share(count, seen, smallest)])
    notes = [_sentence(note) for note in protect_notes(record, found["notes"], smallest)]
    return Table("What differences between implicates tell", ["figure", "value"], rows, notes)


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."


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
    caption: str, levels: Sequence[Figures], variables: int, files: int, smallest: int
) -> Heat:
    """Lay out changes by level; shares are over so many files.

    Examples
    --------
    >>> rows = [{"level": "low", "records": 400, "shares": [0.0025, 0.5, 0.4975], "mean": 1.495}]
    >>> row = heat_map("", rows, 2, 1, 3).rows[0]
    >>> [cell.text for cell in row.cells], row.mean
    (['0.00–0.02', '0.5000', 'withheld'], '1.4–1.5')
    """
    sizes = hide_counts([level["records"] for level in levels], smallest)
    rows = [
        _row(level, size, variables, files, smallest)
        for level, size in zip(levels, sizes, strict=True)
    ]
    return Heat(caption, range(variables + 1), rows)


def _row(level: Figures, size: Shown, variables: int, files: int, smallest: int) -> HeatRow:
    if not size.exact or not level["records"]:
        return HeatRow(level["level"], size.text, [Cell("", 0)] * (variables + 1), "")
    total = level["records"] * files
    counts = [round(part * total) for part in level["shares"]]
    # Where all records are in one cell the others are empty, whatever is told of them.
    told = [*map(as_it_is, counts)] if total in counts else hide_counts(counts, smallest)
    cells = [
        _cell(part, one, total, smallest) for part, one in zip(level["shares"], told, strict=True)
    ]
    whole = all(one.exact for one in told)
    mean = f"{level['mean']:.2f}" if whole else _mean_band(level, total, variables, smallest)
    return HeatRow(level["level"], size.text, cells, mean)


def _cell(part: float, told: Shown, total: int, smallest: int) -> Cell:
    if told.exact:
        return Cell(share(part), round(SHADES * part))
    return Cell(told.text if told.kept_back else in_band(part, total, smallest).text, 0)


def _mean_band(level: Figures, total: int, variables: int, smallest: int) -> str:
    """Tell a mean between round numbers: with the shares that are told it would tell the others."""
    # One record more or less in a cell moves the sum by as much as there are variables.
    wide = [step for step in STEPS if step * total >= BAND_HOLDS * smallest * variables]
    if not wide:
        return WITHHELD.text
    low = math.floor(level["mean"] / wide[0] + 1e-9) * wide[0]
    return f"{low:.1f}–{low + wide[0]:.1f}"


def true_exposures(result: Figures, smallest: int) -> list[dict[str, Any]]:
    """Return the true exposure of each implicate, then after the attack, as far as it is told.

    `counted` is the figure that counts for the goals, and `rate` that figure itself, to find the
    largest by.
    """
    found = result["true_exposure"]
    only = found["designated_only"]
    return [
        _exposed(one, result["at_risk"] if only else None, smallest)
        for one in (*found["implicates"], found["reconstruction"])
    ]


def _exposed(one: Figures, designated: int | None, smallest: int) -> dict[str, Any]:
    """Tell those unique after: they are still so, laid bare, or nobody, and add up."""
    before, after, still = (one[name] for name in ("unique_before", "unique_after", "still_unique"))
    shares = [one[name] or 0.0 for name in ("nobody", "laid_bare")]
    counts = [still, *(round(part * after) for part in shares)]
    told = hide_counts(counts, smallest)
    exposure = _part(still, before, told[0], smallest)
    counted, rate = exposure, one["true_exposure"]
    if designated is not None:
        rate = one["designated_exposure"]
        counted = protect_share(round((rate or 0.0) * designated), designated, smallest)
    return {
        "of": one["of"],
        "unique_before": f"{before:,}",
        "still": told[0].text,
        "exposure": exposure,
        "unique_after": f"{after:,}",
        "nobody": _share_of(counts[1], after, told[1], smallest),
        "laid_bare": _share_of(counts[2], after, told[2], smallest),
        "counted": counted,
        "rate": rate,
    }


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


def utility_tables(result: Figures) -> tuple[list[Table], list[Table]]:
    """Return the narrow and the wide tables on what the analyst gets."""
    moments = result["moments"]
    narrow = [_homogeneity(result["homogeneity"])]
    narrow += [_shares(moments)] if moments["shares"] else []
    narrow.append(_relations(result))
    wide = [_measures(moments)] if moments["measures"] else []
    wide += [_coefficients(result["coefficients"])] if result["coefficients"] else []
    return narrow, wide


def _coefficients(fit: Figures) -> Table:
    """Return the regression on the original beside the one combined over the implicates."""
    rows = [
        [one["name"], amount(one["original"]), _interval(one, "original_low", "original_high"),
         amount(one["estimate"]), _interval(one, "low", "high"), share(one["overlap"], 2)]
        for one in fit["coefficients"]
    ]  # fmt: skip
    columns = ["term", "original", "95% interval", "combined", "95% interval", "overlap"]
    notes = ["Overlap: the mean share of the two intervals that lies in both."]
    notes += [f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in fit["notes"]]
    return Table(f"Regression: {fit['formula']}", columns, rows, notes)


def _interval(one: Figures, low: str, high: str) -> str:
    if one[low] is None or one[high] is None:
        return ""
    return f"{amount(one[low])} to {amount(one[high])}"


def _homogeneity(found: Figures) -> Table:
    """Return of each variable the test that is worst."""
    tests: dict[str, list[Figures]] = {}
    for test in found["tests"]:
        tests.setdefault(" × ".join(test["variables"]), []).append(test)
    rows = [
        [name, f"{mine[0]['categories']:,}", _least(mine, "p"), _least(mine, "adjusted")]
        for name, mine in tests.items()
    ]
    columns = ["variable", "categories or bins", "smallest p", "adjusted"]
    notes = ["Stuart-Maxwell tests of all implicates; p adjusted after Holm."]
    return Table("Homogeneity of distributions", columns, rows, notes)


def _least(tests: Sequence[Figures], name: str) -> str:
    return probability(min((test[name] for test in tests if test[name] is not None), default=None))


def _shares(moments: Figures) -> Table:
    rows = [
        [one["variable"], f"{one['categories']:,}", share(one["largest_difference"]),
         share(one["moved"])]
        for one in moments["shares"]
    ]  # fmt: skip
    columns = ["variable", "categories", "largest difference", "share moved"]
    return Table("Shares of categories", columns, rows)


def _measures(moments: Figures) -> Table:
    # Figures in the variable's own units, and those that have none.
    names = ("mean", "synthetic_mean"), ("variance", "synthetic_variance")
    rows = [
        [one["variable"], *(amount(one.get(n)) for n in names[0]),
         share(one.get("relative_difference")), *(amount(one.get(n)) for n in names[1]),
         share(one.get("variance_ratio"))]
        for one in moments["measures"]
    ]  # fmt: skip
    columns = ["variable", "mean", "synthetic", "relative difference", "variance", "synthetic",
               "ratio"]  # fmt: skip
    return Table("Means and variances", columns, rows)


def _relations(result: Figures) -> Table:
    """Return how far relations between variables moved, in a figure each."""
    rows = [_widest(result["correlations"]["pairs"], kind) for kind in KINDS]
    found = result["propensity"]
    rows.append(["propensity score, ratio to the expected", "", share(found["ratio"])])
    fit = result["coefficients"]
    if fit is not None:
        overlaps = [one["overlap"] for one in fit["coefficients"] if one["overlap"] is not None]
        least = min(overlaps, default=None)
        rows.append(["smallest overlap of intervals", fit["formula"], share(least)])
        rows.append(["mean overlap of intervals", fit["formula"], share(fit["mean_overlap"])])
    notes = ["Propensity: 1 or less where nobody can tell original and synthetic."]
    columns = ["figure", "of", "value"]
    return Table("Relations", columns, [row for row in rows if row], notes)


def _widest(pairs: Sequence[Figures], kind: str) -> list[str]:
    """Return the pair of a kind whose figure moved most."""
    mine = [one for one in pairs if one["kind"] == kind and one["difference"] is not None]
    if not mine:
        return []
    most = max(mine, key=lambda one: abs(one["difference"]))
    between = f"{most['first']}, {most['second']}"
    return [f"largest move of a {KINDS[kind]}", between, f"{most['difference']:+.4f}"]
