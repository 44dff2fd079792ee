"""Evaluation of a synthesis: what it protects, and what it costs (Hawala & Funk, section 3).

For what the analyst gets, targets of very many categories are pooled until a test of their
distribution has power, rare ones with their neighbours in order, as codes of areas or occupations
are made. The distributions that are drawn have no bar so small that it shows a record: rare
categories make one together, and the edges of bins are round numbers that no record need have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from keyhole.core.marks import HIDDEN, WHEN_SET, Named, figure
from keyhole.core.tables import Table
from keyhole.data import Microdata, Variable
from keyhole.data.columns import LARGEST, Codes
from keyhole.errors import InputError
from keyhole.exposure.regrouping import round_widths
from keyhole.exposure.uniques import NAMED_FROM
from keyhole.kernels.arrays import Floats, Ints
from keyhole.results import Result, drawn_by, tables_of
from keyhole.synthesis import associations, changes, goals, remaining_risk
from keyhole.synthesis.constancy import Constancy, constancy
from keyhole.synthesis.constraints import find_constraints
from keyhole.synthesis.designate import Designation
from keyhole.synthesis.goals import Goal, GoalLimits
from keyhole.synthesis.implicates import Implicates, Progress
from keyhole.synthesis.marginals import Marginals, compare_marginals, summarise_marginals
from keyhole.synthesis.regressions import (
    Regressions,
    SubgroupMeans,
    compare_regressions,
    compare_subgroups,
)
from keyhole.synthesis.rules import EditRules
from keyhole.utility import coefficients as fits
from keyhole.utility.distributions import Distributions, compare_distributions
from keyhole.utility.figures import sentences
from keyhole.utility.formulas import formula_columns
from keyhole.utility.moments import Correlations, Moments, compare_correlations, compare_moments
from keyhole.utility.propensity import Propensity, propensity_score

if TYPE_CHECKING:
    import altair

# A category of fewer records than this is rare.
RARE = 25
# Rare categories are put into groups if there are more of them than this.
MOST_RARE = 20
MOST_CATEGORIES = 12
# Tried from the left until no bin is too small.
BIN_COUNTS = (20, 12, 6, 3)
TAIL = 0.01
# Measures beyond the targets and keys whose correlations with targets are compared, at most.
MOST_MEASURES = 20
# The propensity score holds all terms of all files in memory.
MOST_FOR_PROPENSITY = 20_000


@dataclass(frozen=True, slots=True)
class TargetBars:
    """Shares of records by bar, before and after: mean, lowest and highest of the implicates."""

    variable: str
    ordered: bool
    labels: tuple[str, ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Evaluation(Result):
    """What the implicates protect and what they cost; no record is in it.

    `changed` and `mean_mode` count the variables changed by risk level (Hawala & Funk's Tables 1
    and 2); `exposure`, `visible`, `self_match` and `constancy` say what an intruder has of it,
    `homogeneity` to `coefficients` what the analyst gets; `rules` count the records that break
    each, `households` the households or pairs of members that do, and `bars` are the targets'
    distributions, to be drawn.
    """

    implicates: int
    changed: Annotated[
        changes.ChangeTable,
        Named("changed_by_level"),
        "In the first implicate, and the mean of all.",
    ]
    mean_mode: Annotated[
        changes.ChangeTable, Named("mean_mode_attack"), "After means and modes over the implicates."
    ]
    exposure: Annotated[remaining_risk.TrueExposure, Named("true_exposure")]
    visible: Annotated[remaining_risk.VisibleChanges, Named("visibly_changed")]
    self_match: remaining_risk.SelfMatch
    homogeneity: Distributions
    relations: associations.Relations
    moments: Moments
    correlations: Correlations
    regressions: Regressions
    subgroups: Annotated[SubgroupMeans, Named("subgroup_means")]
    propensity: Propensity
    coefficients: Annotated[fits.Coefficients | None, "Null without a formula, or where it fails."]
    goals: tuple[Goal, ...]
    bars: Annotated[tuple[TargetBars, ...], HIDDEN] = ()
    notes: tuple[str, ...] = ()
    rules: tuple[remaining_risk.RuleCount, ...] = ()
    marginals: Annotated[Marginals | None, WHEN_SET] = None
    households: Annotated[tuple[remaining_risk.RuleCount, ...], WHEN_SET] = ()
    constancy: Annotated[Constancy | None, "Null with a single implicate."] = None

    @property
    @figure(Named("goals_met"), "Those not judged do not count.")
    def met(self) -> bool:
        """Whether no goal is missed; those that cannot be judged do not count."""
        return all(goal.met is not False for goal in self.goals)

    @property
    def changed_average(self) -> changes.ChangeTable:
        """The changes by level in the mean of the implicates."""
        name = f"mean of {self.implicates} implicates"
        return changes.ChangeTable(name, self.changed.variables, self.changed.average)

    def to_frame(self) -> pl.DataFrame:
        """Return the tables of changes by level below each other."""
        found = (self.changed, self.changed_average, self.mean_mode)
        return pl.concat([table.to_frame() for table in found])

    def tables(self) -> list[Table]:
        """Return the goals, then protection, then what the analyst gets."""
        attacked = (self.changed_average, self.mean_mode) if self.implicates > 1 else ()
        protected = (self.changed, *attacked, self.exposure, self.visible, self.self_match)
        related = (self.relations, self.marginals)
        alike = (self.homogeneity, *related, self.moments, self.correlations)
        models = (self.regressions, self.subgroups, self.propensity, self.coefficients)
        parts = (*protected, *alike, *models)
        told = tables_of(self.constancy)
        told += [remaining_risk.rule_table(self.rules)] if self.rules else []
        told += [remaining_risk.household_table(self.households)] if self.households else []
        return [goals.goal_table(self.goals, sentences(self.notes)), *tables_of(*parts), *told]

    plot = drawn_by(
        "synthesis.charts.changes_chart",
        "Draw the tables of changes by level as heat maps; `plots` returns all pictures.",
    )

    def plots(self) -> dict[str, altair.TopLevelMixin]:
        """Return all pictures by name: changes, distributions, relations, coefficients if any."""
        from keyhole.synthesis.charts import evaluation_charts

        return evaluation_charts(self)


def evaluate(
    implicates: Implicates,
    designation: Designation,
    *,
    crosses: Iterable[Sequence[str]] = (),
    formula: str | None = None,
    counted: Sequence[str] = (),
    self_match: int = 2_000,
    limits: GoalLimits | None = None,
    rules: EditRules | None = None,
    asked: Mapping[str, Any] | None = None,
    seed: int,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate implicates against the original; options are those of `synthesise`.

    `asked` are the options of the run: what it had already is not advised.
    """
    data, targets = implicates.data, implicates.targets
    tell = progress or (lambda _: None)
    guessed = changes.reconstruct(implicates, seed=seed)
    tell(0.15)
    constraints = find_constraints(data, targets, associations.comparable_columns(data))
    counted = tuple(counted) or implicates.telling
    against = remaining_risk.contradictions(implicates, constraints)
    found: dict[str, Any] = {
        "changed": changes.changes_by_level(implicates, designation, counted),
        "mean_mode": changes.changes_after_attack(implicates, designation, guessed, counted),
        "exposure": remaining_risk.true_exposure(implicates, designation, guessed),
        "visible": remaining_risk.visibly_changed(implicates, designation, against),
        "rules": remaining_risk.count_broken(implicates, rules),
        "households": remaining_risk.count_households(implicates, asked or {}),
        "constancy": constancy(implicates, designation),
        "bars": tuple(target_bars(implicates, target) for target in targets),
    }
    tell(0.3)
    found["self_match"] = remaining_risk.match_to_self(
        implicates, designation, most=self_match, seed=seed
    )
    tell(0.45)
    crossed = [tuple(cross) for cross in crosses]
    found |= compare_with_original(implicates, designation.keys, crossed, formula, seed, tell)
    if found["exposure"].designated_only:
        found["notes"] += (
            "true exposure is judged on the uniques that were designated as at risk",
        )
    limits, asked = limits or GoalLimits(), asked or {}
    judged = (
        goals.rules_goal(found["rules"]),
        *goals.constancy_goals(found["constancy"], asked),
        goals.homogeneity_goal(found["homogeneity"], limits, asked),
        goals.relations_goal(found["relations"], limits),
        goals.correlations_goal(found["correlations"], limits, data.records),
        goals.differences_goal(found["moments"], limits, data.records),
        *goals.subgroups_goals(found["subgroups"], limits),
        *goals.regressions_goals(found["regressions"], limits),
        goals.monotone_goal(found["changed"].average),
        *goals.exposure_goals(found["exposure"], limits, targets, asked),
        goals.self_match_goal(found["self_match"], limits, targets, asked),
        goals.decoy_goal(found["visible"], designation),
    )
    return Evaluation(implicates=len(implicates), goals=judged, **found)


def pool_rare(counts: Ints) -> Ints | None:
    """Return the group of each category, or None if few enough are rare."""
    rare = np.flatnonzero(counts < RARE)
    if len(rare) <= MOST_RARE:
        return None
    groups = np.zeros(len(counts), dtype=np.int64)
    common = np.flatnonzero(counts >= RARE)
    groups[common] = np.arange(len(common))
    total = int(counts[rare].sum())
    among = max(1, min(MOST_RARE, total // RARE))
    middle = np.cumsum(counts[rare]) - counts[rare] / 2
    groups[rare] = len(common) + np.minimum(middle * among / max(total, 1), among - 1).astype(int)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def pooled_sides(
    implicates: Implicates, original: Microdata, files: list[Microdata]
) -> tuple[Microdata, list[Microdata], list[str]]:
    """Return the original and the implicates with sparse targets pooled, and what was pooled."""

    def pooled(data: Microdata, target: str, values: Ints) -> Microdata:
        plain, column = Variable(target, "category"), pl.Series(target, values)
        variables = tuple(plain if one.name == target else one for one in data.variables)
        return Microdata(data.frame.with_columns(column), variables, data.name)

    notes = []
    for target in implicates.targets:
        codes, groups = implicates.data.codes(target), None
        if implicates.data.variable(target).kind in ("category", "text"):
            groups = pool_rare(np.bincount(codes.values, minlength=codes.size))
        if groups is None:
            continue
        values, count = groups[codes.values], len(np.unique(groups))
        original = pooled(original, target, values)
        files = [
            pooled(one, target, values[implicates.source(place, target)])
            for place, one in enumerate(files)
        ]
        notes.append(
            f"{target} has {codes.size:,} categories, too many to be tested one by one: they are "
            f"pooled into {count:,}, rare ones with their neighbours in order"
            + ("" if count > 1 else ", which leaves nothing to judge")
        )
    return original, files, notes


def target_bars(implicates: Implicates, target: str) -> TargetBars:
    """Count a target's values before and after."""
    data, codes = implicates.data, implicates.data.codes(target)
    sources = [np.arange(data.records)]
    sources += [implicates.source(place, target) for place in range(len(implicates))]
    counts = np.stack(
        [np.bincount(codes.values[source], minlength=codes.size) for source in sources]
    ).astype(np.float64)
    # Numbers and dates, by their years, have bins; what has no such order a bar a category.
    levels, numbers = codes.levels, np.empty(0)
    dated = levels.dtype in (pl.Date, pl.Datetime)
    if dated or (data.variable(target).kind == "measure" and levels.dtype.is_numeric()):
        numbers = (levels.dt.year() if dated else levels).cast(pl.Float64).to_numpy()
    ordered = len(numbers) > MOST_CATEGORIES and bool((np.abs(numbers) < LARGEST).all())
    if ordered:
        places, labels = _bins(numbers, counts[0], codes)
    else:
        places, labels = _categories(data, target, counts[0], codes)
    summed = np.stack([np.bincount(places, row, len(labels)) for row in counts])
    if ordered and not summed[:, 0].any():  # nothing is below the first edge
        summed, labels = summed[:, 1:], labels[1:]
    before, after = summed[0] / max(data.records, 1), summed[1:] / max(data.records, 1)
    figures = (before, after.mean(axis=0), after.min(axis=0), after.max(axis=0))
    return TargetBars(target, ordered, tuple(labels), *(tuple(one.tolist()) for one in figures))


def _categories(
    data: Microdata, target: str, counts: Floats, codes: Codes
) -> tuple[Ints, list[str]]:
    """Give the frequent categories a bar each, in their order, and the others one together."""
    frequent = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
    named = np.sort(frequent[counts[frequent] >= NAMED_FROM])
    names = data.variable(target).value_labels
    values = codes.levels.gather(named[named < len(codes.levels)]).to_list()
    labels = [str(names.get(value, value)) for value in values]
    if len(labels) < len(named):
        labels.append("missing")
    places = np.full(codes.size, len(named), dtype=np.int64)
    places[named] = np.arange(len(named))
    others = codes.size - len(named)
    if others:
        labels.append(f"{others:,} other{'s' if others > 1 else ''}")
    return places, labels


def _bins(numbers: Floats, counts: Floats, codes: Codes) -> tuple[Ints, list[str]]:
    """Give each level its bin between round edges; what is missing has one of its own."""
    held = counts[: len(numbers)]
    total = np.cumsum(held) / max(held.sum(), 1)
    low, high = (float(numbers[np.searchsorted(total, x)]) for x in (TAIL, 1 - TAIL))
    edges, places = np.empty(0), np.zeros(len(numbers), dtype=np.int64)
    for wanted in BIN_COUNTS:
        tried = np.array([low])
        if high > low:
            step = next(round_widths((high - low) / wanted))
            step = max(step, 1.0) if (numbers % 1 == 0).all() else step
            tried = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * float(step)
        there = np.searchsorted(tried, numbers, side="right")
        sizes = np.bincount(there, held, len(tried) + 1)
        if not ((sizes > 0) & (sizes < NAMED_FROM)).any():
            edges, places = tried, there
            break
    years = codes.levels.dtype.is_temporal()
    texts = [f"{edge:.0f}" if years else _short(float(edge)) for edge in edges]
    labels = [f"below {texts[0]}", *texts[:-1], f"{texts[-1]} or more"] if texts else ["all"]
    if codes.has_missing:
        places, labels = np.append(places, len(labels)), [*labels, "missing"]
    return places, labels


def _short(value: float) -> str:
    for least, unit, word in ((1e9, 1e9, "bn"), (1e6, 1e6, "m"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / unit:.4g}{word}"
    return f"{value:.6g}"


def compare_with_original(
    implicates: Implicates,
    keys: Sequence[str],
    crosses: Sequence[Sequence[str]],
    formula: str | None,
    seed: int,
    tell: Progress,
) -> dict[str, Any]:
    """Return the parts of an evaluation that tell what the analyst gets, by name."""
    data, targets = implicates.data, implicates.targets
    needed = [*targets, *keys, *(name for cross in crosses for name in cross)]
    needed += [] if formula is None else formula_columns(formula, data.names)
    original = data.select(dict.fromkeys([*needed, *_measures(data, (*targets, *keys))]))
    files = []
    for place in range(len(implicates)):
        drawn = [implicates.column(place, target) for target in targets]
        frame = original.frame.with_columns(drawn)
        files.append(original.replace(frame=frame, name=f"implicate-{place + 1}"))
    before, after, notes = pooled_sides(implicates, original, files)
    found: dict[str, Any] = {}
    found["homogeneity"] = compare_distributions(before, after, variables=targets, crosses=crosses)
    tell(0.6)
    found["relations"] = associations.compare_relations(implicates)
    marginals = compare_marginals(implicates, keys, found["relations"], seed=seed)
    found["marginals"] = summarise_marginals(marginals) if marginals else None
    tell(0.65)
    found["moments"] = compare_moments(data, files, variables=targets)
    # The pairs that have a target; the others are as they were.
    either = tuple(dict.fromkeys([*targets, *keys]))
    groups = [name for name in either if data.variable(name).kind == "category"]
    numeric, groups = (
        names if any(name in targets for name in names) else []
        for names in (_measures(data, either), groups)
    )
    every = compare_correlations(data, files, numeric=numeric, categorical=groups)
    concerned = [one for one in every.pairs if one.first in targets or one.second in targets]
    found["correlations"] = Correlations(tuple(concerned), every.implicates)
    found["regressions"] = compare_regressions(implicates, keys)
    found["subgroups"] = compare_subgroups(implicates)
    tell(0.8)
    sides = [data, *files]
    if data.records > MOST_FOR_PROPENSITY:
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(13, 0)))
        kept = np.zeros(data.records, dtype=np.bool_)
        kept[random.choice(data.records, MOST_FOR_PROPENSITY, replace=False)] = True
        sides = [one.select(either).filter(kept) for one in sides]
        notes.append(f"the propensity score is of {MOST_FOR_PROPENSITY:,} records drawn at random")
    found["propensity"] = propensity_score(sides[0], sides[1:], variables=either)
    tell(0.9)
    found["coefficients"] = None
    try:
        if formula is not None:
            fitted = fits.compare_coefficients(data, files, formula=formula)
            found["coefficients"] = _without_rare(fitted, data)
    except InputError as error:  # a regression that cannot be fitted costs nothing else
        notes.append(f"coefficients are not estimable: {' '.join(error.problems)}".rstrip("."))
    tell(1.0)
    return found | {"notes": tuple(notes)}


def _measures(data: Microdata, first: Sequence[str]) -> list[str]:
    """Return the measures among the columns named, and a good many others."""
    kept = [v for v in data.variables if v.role not in associations.NEVER_RELEASED]
    fit = [v.name for v in kept if v.kind == "measure"]
    fit = [name for name in fit if data.column(name).dtype.is_numeric()]
    mine = [name for name in dict.fromkeys(first) if name in fit]
    return mine + [name for name in fit if name not in mine][:MOST_MEASURES]


def _without_rare(found: fits.Coefficients, data: Microdata) -> fits.Coefficients:
    """Hide the categories of very few records in the names of terms."""
    rare: dict[str, set[str]] = {}
    for name in formula_columns(found.formula, data.names):
        codes = data.codes(name)
        counts = np.bincount(codes.values, minlength=codes.size)[: len(codes.levels)]
        few = codes.levels.gather(np.flatnonzero(counts < NAMED_FROM)).to_list()
        rare[name] = {re.sub(r"\.0$", "", str(value)) for value in few}

    def hide(factor: str) -> str:
        head, bracket, tail = factor.partition("[")
        value = tail.removesuffix("]").removeprefix("T.")
        hidden = any(name in head and value in values for name, values in rare.items())
        return f"{head}[a rare category]" if bracket and hidden else factor

    terms = ((one, ":".join(map(hide, one.name.split(":")))) for one in found.coefficients)
    return replace(found, coefficients=tuple(replace(one, name=name) for one, name in terms))
