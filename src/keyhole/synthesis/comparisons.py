"""Comparisons of the implicates with the original: what the analyst gets (section 3.2).

Targets of very many categories are pooled until a test of their distribution has power, rare ones
with their neighbours in order, as codes of areas or occupations are made. The distributions that
are drawn have no bar so small that it shows a record: rare categories make one together, and the
edges of bins are round numbers that no record need have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from keyhole.data import Microdata, Variable
from keyhole.data.columns import Codes
from keyhole.errors import InputError
from keyhole.exposure.regrouping import round_widths
from keyhole.exposure.uniques import NAMED_FROM
from keyhole.kernels.arrays import Floats, Ints
from keyhole.synthesis.associations import NEVER_RELEASED, compare_relations
from keyhole.synthesis.implicates import Implicates, Progress
from keyhole.synthesis.regressions import compare_regressions, compare_subgroups
from keyhole.utility import (
    Coefficients,
    Correlations,
    compare_coefficients,
    compare_correlations,
    compare_distributions,
    compare_moments,
    propensity_score,
)
from keyhole.utility.formulas import formula_columns

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
    notes = []
    for target in implicates.targets:
        codes, groups = implicates.data.codes(target), None
        if implicates.data.variable(target).kind in ("category", "text"):
            groups = pool_rare(np.bincount(codes.values, minlength=codes.size))
        if groups is None:
            continue
        values = groups[codes.values]
        original = _with(original, pl.Series(target, values))
        files = [
            _with(one, pl.Series(target, values[implicates.source(place, target)]))
            for place, one in enumerate(files)
        ]
        pooled = len(np.unique(groups))
        notes.append(
            f"{target} has {codes.size:,} categories, too many to be tested one by one: they are "
            f"pooled into {pooled:,}, rare ones with their neighbours in order"
            + ("" if pooled > 1 else ", which leaves nothing to judge")
        )
    return original, files, notes


def _with(data: Microdata, column: pl.Series) -> Microdata:
    plain = Variable(column.name, "category")
    variables = [plain if one.name == column.name else one for one in data.variables]
    return Microdata(data.frame.with_columns(column), tuple(variables), data.name)


@dataclass(frozen=True, slots=True)
class TargetBars:
    """Shares of records by bar, before and after.

    `synthetic` is the mean over the implicates, `lowest` and `highest` are the range of them.
    `ordered` tells bins of numbers from categories.
    """

    variable: str
    ordered: bool
    labels: tuple[str, ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]


def target_bars(implicates: Implicates, target: str) -> TargetBars:
    """Count a target's values before and after."""
    data = implicates.data
    codes = data.codes(target)
    sources = [np.arange(data.records)]
    sources += [implicates.source(place, target) for place in range(len(implicates))]
    counts = np.stack(
        [np.bincount(codes.values[source], minlength=codes.size) for source in sources]
    ).astype(np.float64)
    numbers = _numbers(data, target, codes)
    ordered = numbers is not None and len(numbers) > MOST_CATEGORIES
    if ordered and numbers is not None:
        places, labels = _bins(numbers, counts[0], codes)
    else:
        places, labels = _categories(data, target, counts[0], codes)
    summed = np.stack([np.bincount(places, row, len(labels)) for row in counts])
    if ordered and not summed[:, 0].any():  # nothing is below the first edge
        summed, labels = summed[:, 1:], labels[1:]
    before, after = summed[0] / max(data.records, 1), summed[1:] / max(data.records, 1)
    figures = (before, after.mean(axis=0), after.min(axis=0), after.max(axis=0))
    return TargetBars(target, ordered, tuple(labels), *(tuple(one.tolist()) for one in figures))


def _numbers(data: Microdata, target: str, codes: Codes) -> Floats | None:
    """Return the levels as numbers, dates as years; None for what has no such order."""
    levels = codes.levels
    if levels.dtype in (pl.Date, pl.Datetime):
        levels = levels.dt.year()
    elif data.variable(target).kind != "measure" or not levels.dtype.is_numeric():
        return None
    found: Floats = levels.cast(pl.Float64).to_numpy()
    return found if np.isfinite(found).all() else None


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
        tried = _edges(low, high, wanted, whole=bool((numbers % 1 == 0).all()))
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


def _edges(low: float, high: float, wanted: int, *, whole: bool) -> Floats:
    """Return round numbers between two others, at most so many."""
    if high <= low:
        return np.array([low])
    step = next(round_widths((high - low) / wanted))
    step = max(step, 1.0) if whole else step
    return np.arange(math.ceil(low / step), math.floor(high / step) + 1).astype(np.float64) * step


def _short(value: float) -> str:
    size = abs(value)
    for unit, word in ((1e9, "bn"), (1e6, "m"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if word == 'k' else unit):.4g}{word}"
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
    before, after, pooled = pooled_sides(implicates, original, files)
    homogeneity = compare_distributions(before, after, variables=targets, crosses=crosses)
    tell(0.6)
    relations = compare_relations(implicates)
    tell(0.65)
    moments = compare_moments(data, files, variables=targets)
    correlations = _correlations(data, files, targets, keys)
    regressions = compare_regressions(implicates, keys)
    tell(0.8)
    notes, names, sides = list(pooled), list(dict.fromkeys([*targets, *keys])), [data, *files]
    if data.records > MOST_FOR_PROPENSITY:
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(13, 0)))
        kept = np.zeros(data.records, dtype=np.bool_)
        kept[random.choice(data.records, MOST_FOR_PROPENSITY, replace=False)] = True
        sides = [one.select(names).filter(kept) for one in sides]
        notes.append(f"the propensity score is of {MOST_FOR_PROPENSITY:,} records drawn at random")
    propensity = propensity_score(sides[0], sides[1:], variables=names)
    tell(0.9)
    coefficients = None
    try:
        if formula is not None:
            found = compare_coefficients(data, files, formula=formula)
            coefficients = _without_rare(found, data)
    except InputError as error:  # a regression that cannot be fitted costs nothing else
        notes.append(f"coefficients are not estimable: {' '.join(error.problems)}".rstrip("."))
    tell(1.0)
    return {
        "homogeneity": homogeneity,
        "relations": relations,
        "moments": moments,
        "correlations": correlations,
        "regressions": regressions,
        "subgroups": compare_subgroups(implicates),
        "propensity": propensity,
        "coefficients": coefficients,
        "notes": tuple(notes),
    }


def _measures(data: Microdata, first: Sequence[str]) -> list[str]:
    """Return the measures among the columns named, and a good many others."""
    fit = [v.name for v in data.variables if v.kind == "measure" and v.role not in NEVER_RELEASED]
    fit = [name for name in fit if data.column(name).dtype.is_numeric()]
    mine = [name for name in dict.fromkeys(first) if name in fit]
    return mine + [name for name in fit if name not in mine][:MOST_MEASURES]


def _correlations(
    data: Microdata, files: Sequence[Microdata], targets: Sequence[str], keys: Sequence[str]
) -> Correlations:
    """Compare the pairs that have a target; the others are as they were."""
    either = dict.fromkeys([*targets, *keys])
    groups = [name for name in either if data.variable(name).kind == "category"]
    numeric = _measures(data, tuple(either))
    if not any(name in targets for name in numeric):
        numeric = []
    if not any(name in targets for name in groups):
        groups = []
    found = compare_correlations(data, list(files), numeric=numeric, categorical=groups)
    concerned = [one for one in found.pairs if one.first in targets or one.second in targets]
    return Correlations(tuple(concerned), found.implicates)


def _without_rare(found: Coefficients, data: Microdata) -> Coefficients:
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

    named = (
        replace(one, name=":".join(map(hide, one.name.split(":")))) for one in found.coefficients
    )
    return replace(found, coefficients=tuple(named))
